"""The command ``treedot compile``: compile everything before its first use."""

from __future__ import annotations

import argparse
import math

from treedot._runtime.timing import timed
from treedot.cli.check import compiled_code
from treedot.errors import ParameterError


def add_options(command: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options."""


def run(options: argparse.Namespace) -> None:
    """Compile everything now, instead of on first use.

    Compile everything now, a few minutes, instead of on first use: for images of containers. The code is for
    this processor and this version. It is found again where the folder that it is kept in can be written to,
    also by those who run the image; set NUMBA_CACHE_DIR for another folder, NUMBA_CPU_NAME=generic for code
    that runs on other processors too, both also at run time.

    Example: NUMBA_CACHE_DIR=/opt/treedot treedot compile
    """
    from treedot._runtime.jit import COMPILED, compiles

    if not COMPILED:
        raise ParameterError(f"compiled code: {compiled_code()}")
    from treedot.cli.compilation import kinds

    compiles(math.inf)
    total = 0.0
    for name, use in kinds().items():
        _, seconds = timed(use)
        total += seconds
        print(f"{seconds:6.1f} s  {name}", flush=True)
    print(f"{total:6.1f} s  in all\n\ncompiled code: {compiled_code()}")
