"""``treedot train`` with a checkpoint or with workers: trees are streamed, and what is killed goes on."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any

from treedot._pages.printable import printable
from treedot._runtime.ending import Advice
from treedot._version import __version__
from treedot.batch.checkpoint import check_apart, is_written, save_model
from treedot.batch.streaming import held_training
from treedot.cli.batch import train_by_many, wants_workers
from treedot.cli.pipes import show
from treedot.cli.progress import Passes
from treedot.cli.reading import Skipped
from treedot.errors import ParameterError
from treedot.models.linear_model import LinearModel
from treedot.models.model_folder import check_model_target


def train_on_files(options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Train a model, by one process or by many, write it to a folder, and remove the checkpoint."""
    target = Path(options.output)
    by_many = wants_workers(options)
    folder = Path(options.checkpoint or f"{target}.training")
    check_model_target(target, options.overwrite or is_written(folder, target))

    def advice() -> str:
        return f"the same command resumes from {printable(str(folder))}" if folder.exists() else ""

    with Advice(advice):
        model = train_by_many(options, settings) if by_many else _train_streamed(options, settings, folder)
    training, n_trees = model.facts["training"], model.facts["data"]["trees"]
    print(f"{n_trees:,} trees of {model.classes.size} classes, with {model.columns.size:,} columns")
    for trial in training["trials"]:
        print("  decay {decay:g}, C {C:g}: accuracy {accuracy:.3f} in cross-validation".format(**trial))
    show(f"{target}: decay {training['decay']:g}, C {training['C']:g}")


def _train_streamed(options: argparse.Namespace, settings: dict[str, Any], folder: Path) -> LinearModel:
    target = Path(options.output)
    for name in ("group", "weight"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} wants all trees in memory: leave out --checkpoint")
    check_apart(target, folder)
    skipped = Skipped(options.skip_bad)
    reading = {"format": options.format, "column": options.column, "unit": options.unit}
    with contextlib.ExitStack() as stack:
        with Passes() as progress:
            training = held_training(
                options.trees, options.class_column, folder, reading, skipped.callback, progress, settings
            )
            model = stack.enter_context(training)
        skipped.report()
        model.facts["treedot"] = __version__
        save_model(model, target, folder, options.overwrite)
    return model
