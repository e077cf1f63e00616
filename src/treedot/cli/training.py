"""Options, checkpoints and printed results that ``treedot train`` and ``treedot batch fit`` share."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import treedot as td
from treedot._pages.printable import printable
from treedot._runtime.ending import Advice
from treedot.cli.options import add_class, add_output
from treedot.cli.pipes import show


def add_training(command: argparse.ArgumentParser, source: str) -> None:
    """Add the options of both commands; ``source`` describes the files of trees."""
    command.add_argument("trees", nargs="+", metavar="TREES", help=source)
    add_class(command, required=True)
    add_output(command, "MODEL", "the folder to write")
    command.add_argument("--overwrite", action="store_true", help="replace an existing model")
    command.add_argument(
        "--decay",
        type=float,
        nargs="+",
        metavar="λ",
        help="from 0 to 1: a fragment with p productions counts λ^(p-1) (default: 0.1 0.2 0.4)",
    )
    command.add_argument(
        "--C", type=float, nargs="+", metavar="C", help="cost of training errors (default: 1 10 100)"
    )
    command.add_argument(
        "--cv", type=int, default=5, metavar="N", help="folds of cross-validation (default: 5)"
    )
    command.add_argument(
        "--balanced", action="store_true", help="weight errors so that all classes count the same"
    )


def training_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of both commands that the options give."""
    given = {name: getattr(options, name) for name in ("decay", "C") if getattr(options, name)}
    return {**given, "cv": options.cv, "class_weight": "balanced" if options.balanced else None}


@contextlib.contextmanager
def resumable(options: argparse.Namespace) -> Iterator[Path]:
    """Yield the folder from which a training can be resumed; the message of an interrupt names it."""
    from treedot.batch.checkpoint import is_written
    from treedot.models.model_folder import check_model_target

    target = Path(options.output)
    folder = Path(options.checkpoint or f"{target}.training")
    check_model_target(target, options.overwrite or is_written(folder, target))

    def advice() -> str:
        return f"run the same command to resume from {printable(str(folder))}" if folder.exists() else ""

    with Advice(advice):
        yield folder


def show_streamed(model: td.LinearModel, output: str) -> None:
    """Print a summary of a model that was trained on streamed files."""
    training, n_trees = model.facts["training"], model.facts["data"]["trees"]
    assert model.classes is not None
    print(f"{n_trees:,} trees of {model.classes.size} classes, with {model.columns.size:,} columns")
    show_trials(training["trials"], training["decay"], training["C"], output)


def show_trials(
    trials: Iterable[dict[str, Any]], decay: float | None, C: float, output: str, beside: Sequence[str] = ()
) -> None:
    """Print the accuracy of each choice of settings that was tried on all folds, and that of the model."""
    listed = list(trials)
    most = max((trial.get("folds") or 0 for trial in listed), default=0)
    dropped = [trial for trial in listed if (trial.get("folds") or 0) < most]
    if dropped:
        print(f"  {len(dropped)} of {len(listed)} choices of settings were dropped after less training")
    for trial in listed:
        if trial not in dropped:
            more = "".join(f", {name}" for name in ("idf", "words", "labels") if trial.get(name))
            print(
                "  decay {decay:g}, C {C:g}{more}: accuracy {accuracy:.3f} in cross-validation".format(
                    more=more, **trial
                )
            )
    show(f"{output}: decay {decay:g}, C {C:g}{''.join(f', {name}' for name in beside)}")


def show_regression_trials(model: td.TreeRegressor, output: str) -> None:
    """Print R² of each choice of settings, and the choice of the model."""
    for decay, alpha, r2 in model.trials_:
        print(f"  decay {decay:g}, alpha {alpha:g}: R² {r2:.3f} in cross-validation")
    show(f"{output}: decay {model.decay_:g}, alpha {model.alpha_:g}")
