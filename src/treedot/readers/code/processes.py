"""Parse in other processes, since a parser may hang or crash.

A parser is third-party compiled code, and some texts of 500 bytes take it hours. So the system ends a process
that takes too long for a text, and the next text gets a new process.
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
    """A file takes too long to parse."""


class CrashError(SourceError):
    """A file crashes the parser."""


_is_expendable = False  # whether this process may itself hang or crash


def parse_here() -> None:
    """Parse in this process from now on: whoever started it limits its time, and replaces it."""
    global _is_expendable
    _is_expendable = True


_idle: list[Process] = []  # reused for the next task: starting a process takes longer than most files


def do_apart(function: Callable[..., R], *arguments: Any, file: str, max_seconds: float) -> R:
    """Return ``function(*arguments)``, computed in another process; errors of treedot are raised here.

    If the process crashes or exceeds ``max_seconds``, the error names the file.
    """
    if _is_expendable:
        try:
            return function(*arguments)
        except TreedotError:
            raise
        except Exception as error:
            raise _crash(file, error) from error
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
        raise CrashError(f"{file}: crashes the parser and cannot be read") from None
    except TreedotError:
        _idle.append(process)
        raise
    except Exception as error:
        _idle.append(process)
        raise _crash(file, error) from error
    except BaseException:  # interrupted: a late answer must not be taken for that of the next task
        process.end()
        raise
    _idle.append(process)
    return result


def _crash(file: str, error: Exception) -> CrashError:
    return CrashError(f"{file}: crashes the parser ({type(error).__name__}: {error})")


def _borrow() -> Process:
    while True:
        try:
            process = _idle.pop()
        except IndexError:
            # Modules in the folder that is read must not be imported.
            return Process(filter(None, [os.environ.get("PYTHONPATH")]), begin=_begin)
        if process.owner == os.getpid():  # not inherited from the process that forked this one
            return process


def _begin() -> None:
    """Compile the needed code first, so that it does not count as time of a task."""
    from treedot.readers.code.units import post_order

    post_order(np.zeros(1, np.int64))
