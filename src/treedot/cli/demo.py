"""The command ``treedot demo``: near-duplicates in Python's standard library."""

from __future__ import annotations

import argparse
from pathlib import Path

from treedot.parameters import checked_integer


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument(
        "--out", dest="output", default="demo", metavar="DIR", help="folder of the report (default: demo)"
    )
    command.add_argument(
        "--functions", type=int, default=10_000, metavar="N", help="the most functions (default: 10000, all)"
    )


def run(options: argparse.Namespace) -> None:
    """Find near-duplicate functions in Python's standard library.

    Example: treedot demo --out report
    """
    from treedot.cli.demo_page import write_demo

    checked_integer("--functions", options.functions, at_least=50)
    write_demo(Path(options.output), options.functions)
