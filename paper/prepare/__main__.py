"""Turns a downloaded corpus into the tables that the experiments read: ``python -m paper.prepare --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from paper.prepare import CORPORA, prepare
from treedot.errors import TreedotError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 3 if sentences have to be parsed first."""
    parser = argparse.ArgumentParser(
        prog="python -m paper.prepare",
        description="Turn a downloaded corpus into the tables that the experiments, examples and benchmarks "
        "read. docs/reproduce.md says where to download each corpus.",
    )
    parser.add_argument("corpus", choices=CORPORA, metavar="CORPUS", help=", ".join(CORPORA))
    parser.add_argument(
        "downloads", nargs="+", metavar="DOWNLOAD", help="folder, zip file or file of the corpus"
    )
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="folder of the tables")
    options = parser.parse_args(arguments)
    try:
        return 0 if prepare(options.corpus, options.downloads, options.out) else 3
    except (TreedotError, OSError) as error:
        print(f"paper.prepare: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
