"""The standard streams of a command: closed streams, full disks, and readers such as ``head`` that stop."""

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
    """Run a block with usable standard streams, and flush them after it.

    Raise ``SourceError`` if standard output cannot be written. If its reader has only stopped reading, drop
    the rest: the exit code does not depend on how much of the output is read.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for characters that its encoding lacks
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
    """Run a block that prints; if nobody reads standard output any more, continue after the block."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)


def ignore_closed_output() -> None:
    """Ignore a closed standard output: the result of the command is a file, and it prints only remarks."""
    if isinstance(sys.stdout, _Output):
        sys.stdout.needed = False


def binary_output() -> IO[bytes]:
    """Return standard output for bytes."""
    return sys.stdout.buffer


def show(text: str) -> None:
    """Print lines for people, with control characters escaped."""
    print("\n".join(map(printable, text.split("\n"))))


def note(text: str) -> None:
    """Print a remark or an error as one line to standard error, with control characters escaped."""
    if sys.stderr is None:  # closed: print would write to standard output instead
        return
    try:
        print("treedot:", printable(text), file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)


@contextlib.contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print the warnings of a block as notes of one line, without the line of code that raised them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        yield


class _Output(io.TextIOBase):
    """Standard output that raises ``SourceError`` if it cannot be written.

    ``stream`` is None if standard output is closed; then writing fails only if the output is ``needed``.
    """

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
        return self._stream is not None and not self._stream.closed and self._stream.isatty()

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
    """The bytes of an ``_Output``."""

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
                left = left[stream.buffer.write(left) :]  # python -u may write only a part
        return size


def _drop(stream: Any) -> None:
    """Discard everything that is written to a stream from now on, and what is still in its buffer."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
