"""A counter that threads share in compiled code, to take the next piece of work.

Threads that take every piece in Python wait for each other there, for as long as a small one takes.
"""

from __future__ import annotations

import threading
from typing import Any

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import COMPILED

if not COMPILED:
    _LOCK = threading.Lock()

    def next_number(counter: IntArray) -> int:
        """Return what the one element of a counter is, which is then one more."""
        with _LOCK:
            counter[0] += 1
            return int(counter[0]) - 1

else:
    import numba
    from llvmlite import ir
    from numba.extending import intrinsic

    @intrinsic
    def next_number(typing: Any, counter: Any) -> Any:
        """Return what the one element of a counter is, which is then one more."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

        return numba.types.int64(counter), generate
