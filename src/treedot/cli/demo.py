"""The command ``treedot demo``: a tour of treedot as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from treedot.parameters import checked_integer


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument(
        "-o",
        "--output",
        "--out",
        default="demo",
        metavar="DIR",
        help="folder of the page (default: demo)",
    )
    command.add_argument(
        "--functions", type=int, default=10_000, metavar="N", help="the most functions (default: 10000, all)"
    )


def run(options: argparse.Namespace) -> None:
    """Write a tour of treedot: one page with pictures.

    Compare vectors with the exact kernel, classify questions and explain a decision, and find near-duplicate
    functions in Python's standard library. Write DIR/index.html.

    Example: treedot demo --out tour
    """
    from treedot.cli.tour.page import write_tour

    checked_integer("--functions", options.functions, at_least=50)
    write_tour(Path(options.output), options.functions)
