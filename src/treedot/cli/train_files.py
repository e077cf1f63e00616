"""``treedot train`` with a checkpoint: trees are streamed, and what is killed goes on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from treedot import __version__
from treedot.cli.progress import Passes
from treedot.cli.reading import Skipped
from treedot.errors import ParameterError
from treedot.files import remove_folder
from treedot.learn import train_files
from treedot.model import LinearModel


def train_streamed(options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Train a model, write it to a folder, and remove the checkpoint."""
    folder, target = Path(options.checkpoint), Path(options.output)
    if options.group is not None:
        raise ParameterError("--group wants all trees in memory: leave out --checkpoint")
    inner, outer = folder.resolve(), target.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise ParameterError(f"neither of the model {target} and the checkpoint {folder} may be in the other")
    try:
        model = _train(options, settings, folder)
    except KeyboardInterrupt:
        if folder.exists():
            print(f"treedot: the same command goes on from what is kept in {folder}", file=sys.stderr)
        raise
    model.facts["treedot"] = __version__
    model.save(target, overwrite=options.overwrite)
    remove_folder(folder)
    training, n_trees = model.facts["training"], model.facts["data"]["trees"]
    print(f"{n_trees:,} trees of {model.classes.size} classes, with {model.columns.size:,} columns")
    for trial in training["trials"]:
        print("  decay {decay:g}, C {C:g}: accuracy {accuracy:.3f} in cross-validation".format(**trial))
    print(f"{target}: decay {training['decay']:g}, C {training['C']:g}")


def _train(options: argparse.Namespace, settings: dict[str, Any], folder: Path) -> LinearModel:
    skipped = Skipped(options.skip_bad)
    with Passes() as progress:
        model = train_files(
            options.trees,
            options.label,
            checkpoint=folder,
            format=options.format,
            column=options.column,
            unit=options.unit,
            on_bad=skipped.callback,
            progress=progress,
            **settings,
        )
    skipped.report()
    return model
