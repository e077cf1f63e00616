"""Parse in other processes, since a parser may hang or crash.

A parser is a compiled program that other people wrote, and there are texts of 500 bytes on which it takes
hours. So the system ends a process that works too long on a text, and the next text gets a new one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from treedot._runtime.processes import LostProcessError, Process
from treedot.errors import SourceError, TreedotError

R = TypeVar("R")


class TooSlowError(SourceError):
    """A file takes longer to parse than it may."""


class CrashError(SourceError):
    """A file crashes the parser."""


_idle: list[Process] = []  # kept for the next task: starting one takes longer than most files


def do_apart(function: Callable[..., R], *arguments: Any, file: str, max_seconds: float) -> R:
    """Return ``function(*arguments)``, computed in another process; errors of treedot are raised here.

    Where the process crashes, or works longer than it may, the error names the file.
    """
    process = _borrow()
    try:
        result: R = process.do(function, *arguments, max_seconds=max_seconds)
    except LostProcessError as error:
        if error.code == -getattr(signal, "SIGPROF", 0):
            message = (
                f"takes longer than {max_seconds:g} s to parse: split it, or raise the limit in Python with "
                "read_code(max_seconds=…)"
            )
            raise TooSlowError(f"{file}: {message}") from None
        raise CrashError(f"{file}: crashes the parser, and cannot be read") from None
    except TreedotError:
        _idle.append(process)
        raise
    except Exception as error:
        _idle.append(process)
        raise CrashError(f"{file}: crashes the parser ({type(error).__name__}: {error})") from error
    except BaseException:  # interrupted: an answer to this task must not be taken for that to another
        process.end()
        raise
    _idle.append(process)
    return result


def _borrow() -> Process:
    while True:
        try:
            process = _idle.pop()
        except IndexError:
            # Modules of the folder that is read are not imported.
            return Process(filter(None, [os.environ.get("PYTHONPATH")]), begin=_begin)
        if process.owner == os.getpid():  # and not one of the process that this one was forked from
            return process


def _begin() -> None:
    """Compile what is needed first: it is not to count as a task's time."""
    from treedot.readers.code.units import post_order

    post_order(np.zeros(1, np.int64))
