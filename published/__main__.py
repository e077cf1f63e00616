"""Measures results on public data beside published ones: ``python -m published --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from published import TABLES, bigclonebench, clone_search, corpora, programs, run
from treedot.errors import TreedotError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m published",
        description="Measure treedot on public data, beside published results.",
        epilog="\n\n".join(source.LAYOUT for source in (programs, bigclonebench, clone_search, corpora)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "tables",
        nargs="*",
        default="all",
        choices=[*TABLES, "all"],
        metavar="TABLE",
        help=f"{', '.join(TABLES)}, or all (default)",
    )
    parser.add_argument("--data", required=True, type=Path, metavar="DIR", help="folder of the data")
    parser.add_argument(
        "--out", type=Path, default=Path("results/published"), metavar="DIR",
        help="folder of results (default: results/published)",
    )  # fmt: skip
    parser.add_argument(
        "--page", action="store_true", help="measure nothing; write the page of what is there"
    )
    options = parser.parse_args(arguments)
    names = TABLES if "all" in options.tables else options.tables
    try:
        run(
            () if options.page else names, options.data, options.out, say=lambda line: print(line, flush=True)
        )
    except (TreedotError, OSError) as error:
        print(f"published: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("published: interrupted; what was measured is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
