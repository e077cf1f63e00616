"""A counter that threads share in compiled code, to take the next piece of work.

In Python, threads would wait for each other at every piece, for as long as a small piece takes.
"""

from __future__ import annotations

import threading

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import in_compiled_code

_LOCK = threading.Lock()


@in_compiled_code("treedot._runtime.atomic_intrinsics")
def next_number(counter: IntArray) -> int:
    """Return the single element of a counter, and increment it."""
    with _LOCK:
        counter[0] += 1
        return int(counter[0]) - 1
