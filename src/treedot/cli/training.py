"""Options, checkpoints and printed results that ``treedot train`` and ``treedot batch fit`` share."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import treedot as td
from treedot._pages.printable import printable
from treedot._runtime.ending import Advice
from treedot.cli.options import add_class, add_output
from treedot.cli.pipes import show
from treedot.cli.vector_options import CHOOSE
from treedot.parameters import DAMPINGS, SCORINGS

BESIDE = ("idf", "words", "labels")
SHOWN = 5  # trials


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
        help="from 0 to 1: a fragment with p productions counts λ^(p-1) (default: 0.2 0.4)",
    )
    command.add_argument(
        "--C",
        type=float,
        nargs="+",
        metavar="C",
        help="cost of training errors (default: 0.01 0.1 1 10; with --kernel also 30)",
    )
    command.add_argument(
        "--cv",
        type=int,
        default=5,
        metavar="N",
        help="folds of cross-validation, at most the number of trees of the smallest class (default: 5)",
    )
    command.add_argument(
        "--scoring",
        choices=SCORINGS,
        help="the score by which cross-validation chooses settings (default: accuracy; for two classes of "
        "which one has ten times the trees of the other, neg_log_loss)",
    )
    command.add_argument(
        "--balanced",
        action=argparse.BooleanOptionalAction,
        help="weight errors so that all classes count the same (default: cross-validation decides, if the "
        "largest class has ten times the trees of the smallest; streamed trees: no)",
    )


def training_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of both commands that the options give."""
    names = ("decay", "C", "scoring", "damping")
    given = {name: getattr(options, name) for name in names if getattr(options, name)}
    if CHOOSE in given.get("damping", ()):
        given["damping"] = DAMPINGS
    if options.balanced is not None:
        given["class_weight"] = "balanced" if options.balanced else None
    return {**given, "cv": options.cv}


@contextlib.contextmanager
def resumable(options: argparse.Namespace) -> Iterator[Path]:
    """Yield the folder from which a training can be resumed; the message of an interrupt names it."""
    from treedot.batch.checkpoint import is_written
    from treedot.models.model_folder import MODEL

    target = Path(options.output)
    folder = Path(options.checkpoint or f"{target}.training")
    MODEL.check_target(target, options.overwrite or is_written(folder, target))

    def advice() -> str:
        return f"run the same command to resume from {printable(str(folder))}" if folder.exists() else ""

    with Advice(advice):
        yield folder


def show_streamed(model: td.LinearModel, output: str) -> None:
    """Print a summary of a model that was trained on streamed files."""
    n_trees = model.facts["data"]["trees"]
    assert model.classes is not None
    print(f"{n_trees:,} trees of {model.classes.size} classes, with {model.columns.size:,} columns")
    show_trials(model.facts["training"], output)


def show_trials(training: dict[str, Any], output: str) -> None:
    """Print the first trials, the best of all, and the settings of the model."""
    trials = training["trials"]
    if trials:
        print(f"  {training.get('scoring', 'accuracy'):>13}  folds  examples  settings")
    for trial in trials[:SHOWN]:
        line = _settings_line(trial, "C")
        print(f"  {trial['score']:13.3f}  {trial['folds']:5}  {trial['examples']:8,}  {line}")
    _show_rest(trials)
    show(f"{output}: {_settings_line(training, 'C')}")


def show_regression_trials(training: dict[str, Any], output: str) -> None:
    """Print R² of the best choices of settings, and the choice of the model."""
    trials = sorted(training["trials"], key=lambda trial: -trial["r2"])
    for trial in trials[:SHOWN]:
        print(f"  {_settings_line(trial, 'alpha')}: R² {trial['r2']:.3f} in cross-validation")
    _show_rest(trials)
    show(f"{output}: {_settings_line(training, 'alpha')}")


def _show_rest(trials: Sequence[dict[str, Any]]) -> None:
    if len(trials) > SHOWN:
        print(f"  and {len(trials) - SHOWN} more")


def _settings_line(settings: dict[str, Any], penalty: str) -> str:
    numbers = [f"{name} {settings[name]:g}" for name in ("decay", penalty) if settings[name] is not None]
    damping = [settings["damping"]] if settings.get("damping") else []
    return ", ".join([*numbers, *damping, *(name for name in (*BESIDE, "balanced") if settings.get(name))])
