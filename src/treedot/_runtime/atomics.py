"""Counters that threads share in compiled code, to take the next piece of work and to wait for others.

In Python, threads would wait for each other at every piece, for as long as a small piece takes.
"""

from __future__ import annotations

import threading

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import in_compiled_code, njit_inside

GLANCES = 1 << 12  # at a counter, some microseconds

_LOCK = threading.Lock()


@in_compiled_code("treedot._runtime.atomic_intrinsics")
def next_number(counter: IntArray) -> int:
    """Return the single element of a counter, and increment it."""
    with _LOCK:
        counter[0] += 1
        return int(counter[0]) - 1


@in_compiled_code("treedot._runtime.atomic_intrinsics")
def current_number(counter: IntArray) -> int:
    """Return the single element of a counter."""
    return int(counter[0])


@njit_inside
def reaches(counter: IntArray, number: int) -> bool:
    """Return whether a counter has a number, or a larger one, within some microseconds."""
    glances = 0
    while current_number(counter) < number and glances < GLANCES:
        glances += 1
    return glances < GLANCES
