"""The command ``treedot tune``: learn a similarity from groups of trees that should be alike."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import treedot as td
from treedot.cli.options import PATHS_HELP, add_output, add_units
from treedot.cli.pipes import show
from treedot.cli.progress import Progress
from treedot.cli.units import asked_reading, iter_units, report_skipped
from treedot.errors import ParameterError
from treedot.readers.folders import Skipped


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("paths", nargs="+", metavar="TABLE", help=PATHS_HELP)
    command.add_argument(
        "--group",
        required=True,
        metavar="COLUMN",
        help="the column of groups, whose members should be alike; for source code, folder, file or name",
    )
    add_output(command, "METRIC", "the folder to write")
    command.add_argument("--overwrite", action="store_true", help="replace an existing metric")
    command.add_argument(
        "--n-columns",
        type=int,
        nargs="+",
        default=[2**13],
        metavar="N",
        help="number of columns into which rows are hashed, a power of two up to 32768; of several, the best "
        "on held-out groups is chosen (default: 8192)",
    )
    command.add_argument(
        "--shrinkage",
        type=float,
        nargs="+",
        metavar="A",
        help="how much of the mean variance is added to each direction; of several, the best on held-out "
        "groups is chosen (default: 0.1 0.3 1 3 10)",
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="determines which groups are held out (default: 0)"
    )
    command.add_argument("--device", default="cpu", metavar="NAME", help="cuda uses a GPU (default: cpu)")
    add_units(command)


def run(options: argparse.Namespace) -> None:
    """Learn a similarity from groups of trees that should be alike.

    Learn a metric and write it to a folder. What varies within the groups counts less in it (relevant
    component analysis), so it also works for groups that it has not seen. An index built with treedot index
    --metric is searched by it.

    Example: treedot tune solutions --unit file --group folder -o solutions.metric
    """
    from treedot.models import TreeMetric
    from treedot.models.tree_metric import SHRINKAGE
    from treedot.vectors.metric.metric import METRIC

    METRIC.check_target(Path(options.output), options.overwrite)
    reading, skipped = asked_reading(options), Skipped()
    with Progress() as progress:
        units = iter_units(options.paths, reading, on_skip=skipped, n_jobs=options.jobs, folder=_folder)
        forest = td.Forest.concat(progress.over(units))
    report_skipped(skipped)
    if options.group not in forest.columns:
        known = ", ".join(forest.columns) or "none"
        raise ParameterError(f"there is no column {options.group!r} for --group; the columns are: {known}")
    model = TreeMetric(
        n_columns=options.n_columns,
        shrinkage=options.shrinkage or SHRINKAGE,
        device=options.device,
        random_state=options.seed,
        n_jobs=options.jobs,
    )
    with Progress("steps") as progress:
        model.fit(forest, forest.columns[options.group], progress=progress)
    facts = model.metric_.facts | {"group": options.group, "reading": reading.stored()}
    replace(model.metric_, facts=facts).save(options.output, overwrite=options.overwrite)
    for (n_columns, a), score in model.scores_.items():
        show(f"{n_columns:6,} columns, shrinkage {a:g}: MAP@R {score:.3f} on held-out groups")
    show(
        f"{facts['trees']:,} trees in {facts['groups']:,} groups; {model.n_columns_:,} columns, shrinkage "
        f"{model.shrinkage_:g}; in {options.output}"
    )


def _folder(path: str) -> str:
    return os.path.dirname(path)
