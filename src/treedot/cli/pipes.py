"""Pipelines whose reader leaves, as ``head`` does once it has seen enough."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Go on after a block that prints where no one reads that any more; what comes later is dropped too.

    So the exit code is that of the work, however much of the output is read.
    """
    with contextlib.suppress(BrokenPipeError):
        yield
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # it is closed in `treedot check >&-`
            continue
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
