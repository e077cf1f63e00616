"""Failures on purpose, in a module that another process can import."""

import os
import signal
import time

from fuzz.worker import Outcome


def on_purpose(target, data, folder):
    """Do what the case says."""
    match data:
        case b"crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case b"hang":
            time.sleep(600)
        case b"grow":
            bytearray(b"x") * (1 << 26)
    return Outcome("accepted")


def all_but_brackets(target, *case_and_folder):
    return Outcome("accepted") if target == "brackets" else Outcome("failed", "on purpose")


class Careless:
    """A target that raises an error, such as no one should see."""

    def __init__(self, error=None):
        self.error = error or IndexError("of no use to anybody")

    def run(self, data, folder):
        raise self.error
