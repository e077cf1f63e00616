"""The command ``treedot explain``: explain the decision of a model about one tree."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import treedot as td
from treedot._storage.files import check_target, write_whole
from treedot.cli.examples import read_examples
from treedot.cli.options import MODEL_HELP, TREE_HELP, add_reading
from treedot.errors import ParameterError
from treedot.parameters import checked_integer


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    command.add_argument("tree", metavar="TREE", help=TREE_HELP)
    command.add_argument(
        "--number",
        type=int,
        default=1,
        metavar="N",
        help="which tree of a file, or which row of a table (default: 1, the first)",
    )
    command.add_argument(
        "--where",
        metavar="COLUMN=VALUE",
        help="choose among the rows of a table that have this value, such as --where id=q17",
    )
    command.add_argument(
        "--target", metavar="CLASS", help="the class whose score to explain (default: the predicted one)"
    )
    command.add_argument(
        "--no-flip",
        dest="find_flip",
        action="store_false",
        help="do not search for a subtree whose removal changes the decision; the search is slow for large "
        "trees",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--html", metavar="FILE", help="also write an HTML page that shows the tree")
    add_reading(command)


def run(options: argparse.Namespace) -> None:
    """Explain the decision of a model about one tree.

    Print how much each node of a tree adds to the score of a class, or to the predicted number (Shapley
    values), the strongest fragments for and against it, and the smallest subtree whose removal changes the
    class.

    Example: treedot explain questions.model '(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))'
    """
    if options.html is not None:
        check_target(Path(options.html), options.tree)
    number = checked_integer("--number", options.number, at_least=1)
    model = td.LinearModel.load(options.model)
    options.remembered_column = model.tree_column
    forest = read_examples([options.tree], options, model.reads)
    rows = range(len(forest)) if options.where is None else _rows_where(forest, options.where)
    if number > len(rows):
        having = "" if options.where is None else f" with {options.where}"
        count = f"{len(rows)} tree{'s' * (len(rows) > 1)}" if len(rows) else "no tree"
        raise ParameterError(f"cannot explain tree {number}: {options.tree} has {count}{having}")
    by_name = {} if model.classes is None else {str(name): name for name in model.classes.tolist()}
    target = by_name.get(options.target, options.target)
    found = td.explain(model, forest[[rows[number - 1]]], target, find_flip=options.find_flip)
    if options.html is not None:
        with write_whole(options.html) as aside:
            aside.write_text(found.to_html(), encoding="utf-8")
    print(found.to_json() if options.json else found.to_text(color=sys.stdout.isatty()))


def _rows_where(forest: td.Forest, condition: str) -> Sequence[int]:
    """Return the rows of which a column has a value, given as COLUMN=VALUE."""
    from treedot.models.classes import column_values

    column, equals, value = condition.partition("=")
    if not equals:
        raise ParameterError(f"--where needs a column and a value, such as id=q17, not {condition!r}")
    return [row for row, found in enumerate(column_values(forest, column)) if str(found) == value]
