"""The options of the commands that learn; imported with every command, so nothing heavy is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from treedot.cli.batch_options import add_fit_options, add_scale_options
from treedot.cli.find_options import AddCommand

MODEL_HELP = "a folder that treedot train wrote"

AddOptions = Callable[[argparse.ArgumentParser], None]


def add_learn_commands(
    command: AddCommand, source: str, add_reading: AddOptions, add_encoding: AddOptions
) -> None:
    """Add the commands; ``command`` makes one, ``source`` says what files of trees are."""
    train = command(
        "train",
        "learn to classify trees",
        "Train a linear model on labelled trees, and write it to a folder. Of several --decay and --C, those "
        "with the best accuracy in cross-validation are taken. With --checkpoint, trees are streamed: memory "
        "does not grow with their number, several --decay and --C are compared on a random sample of 20,000 "
        "trees, and a command that was stopped or killed goes on when it is given again. With --workers or "
        "--engine, many processes do the same side by side.",
    )
    train.add_argument("trees", nargs="+", metavar="TREES", help=source)
    _add_class(train, required=True)
    train.add_argument("-o", "--output", required=True, metavar="MODEL", help="the folder to write")
    train.add_argument("--overwrite", action="store_true", help="replace the model if there is one")
    train.add_argument(
        "--decay",
        type=float,
        nargs="+",
        metavar="λ",
        help="from 0 to 1: a fragment with p productions counts λ^(p-1) (default: 0.1 0.2 0.4)",
    )
    train.add_argument(
        "--C", type=float, nargs="+", metavar="C", help="the cost of errors (default: 1 10 100)"
    )
    train.add_argument("--cv", type=int, default=5, metavar="N", help="folds (default: 5)")
    train.add_argument(
        "--group", metavar="COLUMN", help="trees with the same value there are never on both sides of a fold"
    )
    train.add_argument(
        "--weight",
        metavar="COLUMN",
        help="the column that says how much each tree counts: 2 as two copies, 0 as if it were not there "
        "(default: 1 for all)",
    )
    train.add_argument(
        "--balanced",
        action="store_true",
        help="let errors in rare classes cost more, so that all classes count",
    )
    train.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="stream the trees, and keep there what is needed to go on; it is removed when the model is "
        "written",
    )
    train.add_argument(
        "--passes",
        type=int,
        metavar="N",
        help="the most passes over the trees (default: 1000; with --checkpoint 20)",
    )
    _add_jobs(train)
    columns = train.add_argument_group(
        "examples of several columns",
        "Each can be given several times. The model knows its columns: predict, evaluate and explain take "
        "tables that have them.",
    )
    for kind, what in (
        ("tree", "a column that holds trees (default: the one of --column)"),
        ("number", "a column of numbers, which are standardised"),
        ("text", "a column of texts, which become words and pairs of words"),
    ):
        columns.add_argument(f"--{kind}-column", action="append", metavar="COLUMN", help=what)
    add_fit_options(train)
    add_encoding(train)
    add_reading(train)

    predict = command(
        "predict",
        "tell the classes of trees",
        "Print the class of every tree, one per line.",
    )
    predict.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    predict.add_argument("trees", nargs="+", metavar="TREES", help=source)
    predict.add_argument(
        "--scores",
        action="store_true",
        help="also print the score of every class, of two classes that of the second, in columns with a head",
    )
    predict.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write there (default: print); a folder, such as out/, gets parts in Arrow, with the column "
        "predicted",
    )
    predict.add_argument(
        "--device", metavar="NAME", help="cuda to make dense vectors and scores on a GPU (default: cpu)"
    )
    add_scale_options(predict)
    add_reading(predict)
    _add_jobs(predict)

    evaluate = command(
        "evaluate",
        "say how good a model is",
        "Print the accuracy with its 95 % interval, precision, recall and F1 of every class, and the "
        "confusion matrix; with --against, also whether another model is better by more than chance "
        "(McNemar's exact test).",
    )
    evaluate.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    evaluate.add_argument("trees", nargs="+", metavar="TREES", help=source)
    _add_class(evaluate, required=False, default=" (default: the one that the model was trained with)")
    evaluate.add_argument("--against", metavar="MODEL", help="a second model to compare with")
    evaluate.add_argument("--json", action="store_true", help="print JSON")
    evaluate.add_argument(
        "--html", metavar="FILE", help="also write a page, with the most confident mistakes"
    )
    add_reading(evaluate)
    _add_jobs(evaluate)

    explain = command(
        "explain",
        "take the decision of a model about one tree apart",
        "Print what each node of a tree adds to the score of a class (Shapley values), the strongest "
        "fragments for and against it, and the smallest subtree whose removal changes the decision.",
    )
    explain.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    explain.add_argument("tree", metavar="TREE", help="a tree in brackets, or a " + source)
    explain.add_argument(
        "--number", type=int, default=1, metavar="N", help="which tree of a file (default: 1, the first)"
    )
    explain.add_argument("--target", metavar="CLASS", help="the class (default: the predicted one)")
    explain.add_argument(
        "--no-flip",
        dest="find_flip",
        action="store_false",
        help="do not look for a subtree whose removal changes the decision, which takes long for large trees",
    )
    explain.add_argument("--json", action="store_true", help="print JSON")
    explain.add_argument("--html", metavar="FILE", help="also write a page that shows the tree")
    add_reading(explain)


def _add_class(command: argparse.ArgumentParser, required: bool, default: str = "") -> None:
    command.add_argument(
        "--class",
        "--label",
        dest="class_column",
        required=required,
        metavar="COLUMN",
        help=f"the column that holds the classes{default}",
    )


def _add_jobs(command: argparse.ArgumentParser) -> None:
    command.add_argument("-j", "--jobs", type=int, default=-1, metavar="N", help="threads (default: all)")
