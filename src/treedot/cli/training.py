"""What ``treedot train`` and ``treedot batch fit`` share: options, resuming, and what is printed."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import treedot as td
from treedot._pages.printable import printable
from treedot._runtime.ending import Advice
from treedot.cli.options import add_class, add_output
from treedot.cli.pipes import show


def add_training(command: argparse.ArgumentParser, source: str) -> None:
    """Add the options of every training; ``source`` describes the files of trees."""
    command.add_argument("trees", nargs="+", metavar="TREES", help=source)
    add_class(command, required=True)
    add_output(command, "MODEL", "the folder to write")
    command.add_argument("--overwrite", action="store_true", help="replace the model if there is one")
    command.add_argument(
        "--decay",
        type=float,
        nargs="+",
        metavar="λ",
        help="from 0 to 1: a fragment with p productions counts λ^(p-1) (default: 0.1 0.2 0.4)",
    )
    command.add_argument(
        "--C", type=float, nargs="+", metavar="C", help="the cost of errors (default: 1 10 100)"
    )
    command.add_argument("--cv", type=int, default=5, metavar="N", help="folds (default: 5)")
    command.add_argument(
        "--balanced",
        action="store_true",
        help="let errors in rare classes cost more, so that all classes count",
    )


def training_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of every training that the options give."""
    given = {name: getattr(options, name) for name in ("decay", "C") if getattr(options, name)}
    return {**given, "cv": options.cv, "class_weight": "balanced" if options.balanced else None}


@contextlib.contextmanager
def resumable(options: argparse.Namespace) -> Iterator[Path]:
    """Yield the folder in which a training can be resumed; an interrupt names it."""
    from treedot.batch.checkpoint import is_written
    from treedot.models.model_folder import check_model_target

    target = Path(options.output)
    folder = Path(options.checkpoint or f"{target}.training")
    check_model_target(target, options.overwrite or is_written(folder, target))

    def advice() -> str:
        return f"the same command resumes from {printable(str(folder))}" if folder.exists() else ""

    with Advice(advice):
        yield folder


def show_streamed(model: td.LinearModel, output: str) -> None:
    """Print what a training on files found."""
    training, n_trees = model.facts["training"], model.facts["data"]["trees"]
    print(f"{n_trees:,} trees of {model.classes.size} classes, with {model.columns.size:,} columns")
    show_trials(training["trials"], training["decay"], training["C"], output)


def show_trials(trials: Iterable[dict[str, Any]], decay: float | None, C: float, output: str) -> None:
    """Print how good each choice of settings was, and which was taken."""
    for trial in trials:
        print("  decay {decay:g}, C {C:g}: accuracy {accuracy:.3f} in cross-validation".format(**trial))
    show(f"{output}: decay {decay:g}, C {C:g}")
