"""Measures the tables and figures of *Distributed Tree Kernels* anew: ``python -m paper --help``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from paper import EXPERIMENTS, run
from paper.corpora import LAYOUT
from treedot.errors import TreedotError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m paper",
        description="Measure the tables and figures of 'Distributed Tree Kernels' anew. This needs "
        "matplotlib (pip install '.[plots]') and the corpora; --sample needs no corpora.",
        epilog=LAYOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "experiments",
        nargs="*",
        default="all",
        choices=[*EXPERIMENTS, "all"],
        metavar="EXPERIMENT",
        help=f"{', '.join(EXPERIMENTS)}, or all (default)",
    )
    parser.add_argument(
        "--data",
        default=os.environ.get("TREEDOT_DATA"),
        metavar="DIR",
        help="folder of the corpora (default: TREEDOT_DATA)",
    )
    parser.add_argument(
        "-o",
        "--out",
        "--output",
        metavar="DIR",
        help="folder of results and report (default: results/paper, with -quick or -sample after it)",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small samples: minutes instead of an hour")
    size.add_argument(
        "--sample",
        action="store_true",
        help="trees that ship with Python and with the repository, in place of the corpora: minutes",
    )
    options = parser.parse_args(arguments)
    names = EXPERIMENTS if "all" in options.experiments else options.experiments
    kind = "-sample" if options.sample else "-quick" if options.quick else ""
    out = Path(options.out or f"results/paper{kind}")
    try:
        run(names, options.data, out, options.quick, options.sample, say=lambda line: print(line, flush=True))
    except (TreedotError, OSError) as error:
        print(f"paper: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("paper: interrupted; what was measured is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
