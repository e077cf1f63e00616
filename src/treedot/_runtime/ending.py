"""End the program on a signal in order, with the exit code 128 + its number and at most one line.

A signal does not raise an exception. An exception could appear anywhere: in an import, or where Numba loads
compiled code, which loses it and then crashes. The process removes its temporary files, ends the processes
that it started, and exits.

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
_ending = threading.RLock()  # held by the thread that ends the process, which a second signal may interrupt
_reported = False


def before_end(action: Callable[[], object]) -> Callable[[], object]:
    """Call a function when a signal ends the process; return it, so that this works as a decorator."""
    _actions.append(action)
    return action


def take_signals() -> None:
    """End this process in order on SIGINT, SIGTERM and SIGHUP; a signal that is ignored stays so."""
    if threading.current_thread() is not threading.main_thread():  # no other thread may set handlers
        return
    taken = False
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _on_signal)
            taken = True
    if taken and os.name == "posix":
        # Python calls handlers in the main thread, between two instructions. Compiled code that runs there
        # would delay them, so a thread waits for signals, too.
        receiver, sender = os.pipe()
        os.set_blocking(sender, False)
        signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(receiver,), daemon=True).start()


def ignore_signals() -> None:
    """Let no signal interrupt the exit of a process that has done its work."""
    for number in SIGNALS:
        if signal.getsignal(number) is _on_signal:
            signal.signal(number, signal.SIG_IGN)


def interruption() -> str:
    """Return the text that reports an interrupt, with advice from the command that was running."""
    advice = [text() for text in _advice]
    _advice.clear()
    return "; ".join(["interrupted", *filter(None, advice)])


class Advice:
    """Adds a text to the report of an interrupt while a block runs; ``text`` returns "" for none."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text

    def __enter__(self) -> None:
        _advice.append(self._text)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not KeyboardInterrupt:  # which is still to be reported
            _advice.remove(self._text)


def clean_up() -> None:
    """Remove what this process is writing, and end the processes that it started."""
    for action in reversed(_actions):
        try:
            action()
        except Exception:  # the others still have to be called
            continue


def open_closed_streams() -> None:
    """Open the standard streams that are closed, on the null device.

    Otherwise the next file that is opened takes the number of one, and gets what is printed there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            os.set_inheritable(number, True)


def _on_signal(number: int, frame: object) -> None:
    _end(number)


def _watch(receiver: int) -> None:
    while True:
        for number in os.read(receiver, 1):
            if number in SIGNALS and signal.getsignal(number) is _on_signal:
                # The main thread ends the process itself, unless compiled code keeps it. It must not be
                # about to create a file when this thread has just removed all.
                time.sleep(TURN)
                _end(number)


def _end(number: int) -> None:
    """Clean up and exit, in the first thread that gets here; the others wait, so that they report nothing."""
    global _reported
    while not _ending.acquire(blocking=False):
        time.sleep(1)
    clean_up()
    if number == signal.SIGINT and not _reported:
        _reported = True
        _report(f"treedot: {interruption()}\n")
    os._exit(128 + number)


def _report(line: str) -> None:
    """Write a line to standard error by its number: Python's stream may be in the midst of another line."""
    try:
        start = "\r\x1b[K" if os.isatty(2) else ""  # removes a progress bar
        os.write(2, (start + line).encode(errors="backslashreplace"))
    except OSError:
        return
