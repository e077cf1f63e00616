"""The command ``treedot info``: describe a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from treedot._pages.printable import printable_json
from treedot.cli.options import SOURCE_HELP, add_reading
from treedot.cli.reading import Skipped, batches


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("file", metavar="FILE", help=SOURCE_HELP + "; or a file that treedot wrote")
    command.add_argument("--json", action="store_true", help="print JSON")
    add_reading(command)


def run(options: argparse.Namespace) -> None:
    """Describe a file.

    Describe a file of trees, vectors or kernels, an index (TreeIndex), a vectorizer, the folder of a model,
    or a folder of parts.

    Example: treedot info rows.npz
    """
    from treedot.cli.facts import file_facts, printed, tree_facts

    facts = file_facts(Path(options.file))
    if facts is None:
        skipped = Skipped(options.skip_bad)
        facts = tree_facts(batches(options.file, options, skipped))
        skipped.report()
    print(printable_json(facts) if options.json else printed(facts))
