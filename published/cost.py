"""What work costs: processor time, also of processes that parse, and memory."""

from __future__ import annotations

import os
import resource

from treedot.readers.code import processes


def spent() -> float:
    """Return the processor time so far in seconds, including that of processes that parse; it ends these."""
    while processes._idle:
        processes._idle.pop().end()  # the time of a process is known when it has ended
    return sum(os.times()[:4])


def peak() -> float:
    """Return the largest memory of the process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
