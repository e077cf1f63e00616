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

    Compile everything now, which takes a minute or two, for example when you build a container image. The
    code is for this processor and this version of treedot. Users of the image need write access to the
    folder of the compiled code. Set NUMBA_CACHE_DIR to use another folder, and NUMBA_CPU_NAME=generic for
    code that other processors can run; both must also be set when the image runs.

    Example: NUMBA_CACHE_DIR=/opt/treedot treedot compile
    """
    from treedot._runtime.jit import COMPILED

    if not COMPILED:
        raise ParameterError(f"compiled code: {compiled_code()}")
    from treedot.batch.engines import opened
    from treedot.cli.compilation import compile_kind, kinds

    watch = Stopwatch()
    first, *others = ((name,) for name in kinds())  # the first is reading, which all others need
    with opened(None, n_threads(options.jobs)) as call:
        for tasks in ([first], others):
            for (name,), seconds in call(compile_kind, tasks):
                if isinstance(seconds, Exception):
                    raise seconds
                print(f"{seconds:6.1f} s  {name}", flush=True)
    print(f"{watch.seconds:6.1f} s  in all\n\ncompiled code: {compiled_code()}")
