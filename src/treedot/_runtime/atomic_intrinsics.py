"""The functions of ``atomics`` in compiled code, as atomic LLVM instructions.

A thread that reads a number also sees all that was written before the counter reached it.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic


@intrinsic
def next_number(typing: Any, counter: Any) -> Any:
    """Return the single element of a counter, and increment it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "acq_rel")

    return numba.types.int64(counter), generate


@intrinsic
def current_number(typing: Any, counter: Any) -> Any:
    """Return the single element of a counter."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(place, "acquire", 8)

    return numba.types.int64(counter), generate
