"""The standard streams of a command: closed ones, full disks, and readers that leave, as ``head`` does."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from typing import IO, Any

from treedot._pages.printable import printable
from treedot._storage.files import reason
from treedot.errors import SourceError


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Run a block with standard streams that can be used, and flush them after it.

    Where standard output cannot be written, a ``SourceError`` says why. Where only its reader has left, the
    rest is dropped: the exit code is that of the work, however much of the output is read.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # of characters that its encoding lacks
    with contextlib.redirect_stdout(_Output(sys.stdout)):
        try:
            with reader_may_leave():
                yield
        except SystemExit:  # after a help text
            with reader_may_leave():
                pass
            raise


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Run a block that prints, and continue after it where no one reads that any more."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)


def ignore_closed_output() -> None:
    """Drop what a command prints to a closed standard output: its result is a file, and these are remarks."""
    if isinstance(sys.stdout, _Output):
        sys.stdout.needed = False


def binary_output() -> IO[bytes]:
    """Return standard output for bytes."""
    return sys.stdout.buffer


def show(text: str) -> None:
    """Print lines for people; what would disturb a terminal is escaped."""
    print("\n".join(map(printable, text.split("\n"))))


def note(text: str) -> None:
    """Print a remark or an error to standard error, in one line, where that is possible.

    Names that it holds are escaped where they would disturb a terminal.
    """
    if sys.stderr is None:  # it is closed, and print would write to standard output instead
        return
    try:
        print("treedot:", printable(text), file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)


@contextlib.contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print the warnings of a block as notes, in one line each, without a place in the source."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        yield


class _Output(io.TextIOBase):
    """Standard output, which names itself where it cannot be written; None where it is closed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.needed = True

    def write(self, text: str) -> int:
        with self._clear_errors():
            if self._stream is not None:
                self._stream.write(text)
            elif self.needed:
                raise SourceError("cannot write to standard output: it is closed")
        return len(text)

    def flush(self) -> None:
        with self._clear_errors():
            if self._stream is not None:
                self._stream.flush()

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        return 1 if self._stream is None else self._stream.fileno()

    @property
    def buffer(self) -> Any:
        """The stream for bytes."""
        self.write("")
        self.flush()
        return _BinaryOutput(self)

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            _drop(self)
            raise SourceError(f"cannot write to standard output: {reason(error)}") from error


class _BinaryOutput(io.RawIOBase):
    def __init__(self, output: _Output) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        stream = self._output._stream
        left = memoryview(data).cast("B")
        size = len(left)
        with self._output._clear_errors():
            while left and stream is not None:
                left = left[stream.buffer.write(left) :]  # all of it, unless Python runs without buffers
        return size


def _drop(stream: Any) -> None:
    """Let a stream write nowhere from now on, also what it still holds."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
