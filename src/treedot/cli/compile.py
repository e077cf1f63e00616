"""The command ``treedot compile``: compile everything before its first use."""

from __future__ import annotations

import argparse

from treedot._runtime.timing import Stopwatch
from treedot.cli.check import compiled_code
from treedot.cli.options import add_jobs
from treedot.errors import ParameterError
from treedot.parameters import n_threads


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the option of the command."""
    add_jobs(command, "processes")


def run(options: argparse.Namespace) -> None:
    """Compile everything now, instead of on first use.

    Compile everything now, a minute or two, instead of on first use: for images of containers. The code is
    for this processor and this version. It is found again where the folder that it is kept in can be written
    to, also by those who run the image; set NUMBA_CACHE_DIR for another folder, NUMBA_CPU_NAME=generic for
    code that runs on other processors too, both also at run time.

    Example: NUMBA_CACHE_DIR=/opt/treedot treedot compile
    """
    from treedot._runtime.jit import COMPILED

    if not COMPILED:
        raise ParameterError(f"compiled code: {compiled_code()}")
    from treedot.batch.engines import opened
    from treedot.cli.compilation import compile_kind, kinds

    watch = Stopwatch()
    first, *others = ((name,) for name in kinds())  # all read trees, which is compiled first
    with opened(None, n_threads(options.jobs)) as call:
        for tasks in ([first], others):
            for (name,), seconds in call(compile_kind, tasks):
                if isinstance(seconds, Exception):
                    raise seconds
                print(f"{seconds:6.1f} s  {name}", flush=True)
    print(f"{watch.seconds:6.1f} s  in all\n\ncompiled code: {compiled_code()}")
