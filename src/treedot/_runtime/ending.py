"""Exit cleanly on a signal, with the exit code 128 + its number and at most one line of output.

A signal does not raise an exception. An exception could appear anywhere: in an import, or while Numba loads
compiled code, which loses it and then crashes. Instead the process removes its temporary files, ends the
processes that it started, and exits.

This module imports little, so that signals are handled as early as possible.
"""

from __future__ import annotations

import os
import signal
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP

TURN = 0.1  # seconds for the main thread to end the process

_actions: list[Callable[[], object]] = []
_advice: list[Callable[[], str]] = []
_ending = threading.RLock()  # held by the thread that ends the process; a second signal may interrupt it
_reported = False


def before_end(action: Callable[[], object]) -> Callable[[], object]:
    """Register a function to call when a signal ends the process; works as a decorator."""
    _actions.append(action)
    return action


def take_signals() -> None:
    """Exit cleanly on SIGINT, SIGTERM and SIGHUP; ignored signals stay ignored."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        return
    taken = False
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _on_signal)
            taken = True
    if taken and os.name == "posix":
        # Python calls handlers in the main thread, between two instructions. Compiled code in this thread
        # would delay them, so another thread waits for signals, too.
        receiver, sender = os.pipe()
        os.set_blocking(sender, False)
        signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(receiver,), daemon=True).start()


def ignore_signals() -> None:
    """Ignore signals while a finished process exits."""
    for number in SIGNALS:
        if signal.getsignal(number) is _on_signal:
            signal.signal(number, signal.SIG_IGN)


def interruption() -> str:
    """Return the text that reports an interrupt, with advice from the running command."""
    advice = [text() for text in _advice]
    _advice.clear()
    return "; ".join(["interrupted", *filter(None, advice)])


class Advice:
    """Adds advice to the report of an interrupt in a ``with`` block; ``text`` returns "" for none."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text

    def __enter__(self) -> None:
        _advice.append(self._text)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not KeyboardInterrupt:  # an interrupt is still to be reported
            _advice.remove(self._text)


def clean_up() -> None:
    """Remove the temporary files of this process, and end the processes that it started."""
    for action in reversed(_actions):
        try:
            action()
        except Exception:  # the other actions still have to run
            continue


def open_closed_streams() -> None:
    """Open closed standard streams on the null device.

    Otherwise the next opened file would take the descriptor of such a stream, and receive its output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
            os.set_inheritable(number, True)


def _on_signal(number: int, frame: object) -> None:
    _end(number)


def _watch(receiver: int) -> None:
    while True:
        for number in os.read(receiver, 1):
            if number in SIGNALS and signal.getsignal(number) is _on_signal:
                # The main thread ends the process itself, unless compiled code blocks it. It must not
                # create a file after this thread has removed all temporary files.
                time.sleep(TURN)
                _end(number)


def _end(number: int) -> None:
    """Clean up and exit, in the first thread that gets here; other threads wait and report nothing."""
    global _reported
    while not _ending.acquire(blocking=False):
        time.sleep(1)
    clean_up()
    if number == signal.SIGINT and not _reported:
        _reported = True
        _report(f"treedot: {interruption()}\n")
    os._exit(128 + number)


def _report(line: str) -> None:
    """Write a line to standard error by its descriptor; Python's stream may be in the middle of a line."""
    try:
        start = "\r\x1b[K" if os.isatty(2) else ""  # removes a progress bar
        os.write(2, (start + line).encode(errors="backslashreplace"))
    except OSError:
        return
