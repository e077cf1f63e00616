"""The command ``treedot cluster``: groups of units with a similar structure."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import IO, Any

import treedot as td
from treedot._storage.files import check_target, write_whole
from treedot.cli.options import PATHS_HELP, add_output, add_units
from treedot.cli.progress import Progress
from treedot.cli.units import NO_UNITS, PAGE, asked_reading, is_code, iter_units, report_skipped
from treedot.errors import ParameterError, SourceError
from treedot.readers.folders import Skipped
from treedot.search.reading import place_of

ONE_LINER = (
    25  # most functions with a single statement have fewer nodes: they would fill the largest clusters
)
CODE_THRESHOLD = 0.8  # in a large code base, most functions have a cosine of 0.6 with some other one


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("paths", nargs="+", metavar="PATH", help=PATHS_HELP)
    add_output(command, "FILE", "the table to write, as .csv")
    command.add_argument("--html", metavar="FILE", help="also write an HTML page that shows the clusters")
    command.add_argument(
        "--min-size", type=int, default=5, metavar="N", help="fewest units of a cluster (default: 5)"
    )
    command.add_argument(
        "--threshold",
        type=float,
        metavar="C",
        help="units with a lower cosine do not count as similar (default: 0.8 for source code, where a "
        "lower threshold would join most functions into one cluster; else 0.5)",
    )
    add_units(command, "25 for functions, which leaves out one-liners; else 1")


def run(options: argparse.Namespace) -> None:
    """Find groups of units with a similar structure.

    Write a table with a line for every unit: its cluster (-1 for none), the size of the cluster, the id of
    its most typical unit (medoid), and its spread, the mean of 1 - cosine to that unit. HDBSCAN finds the
    clusters, on sparse rows of fragments.

    Example: treedot cluster src -o clusters.csv --html clusters.html
    """
    from treedot.cli.cluster_page import cluster_counts, cluster_page

    targets = [Path(path) for path in (options.output, options.html) if path]
    for target in targets:
        check_target(target, *options.paths)
    if len({target.resolve() for target in targets}) < len(targets):
        raise ParameterError("--output and --html name the same file: give two different files")
    reading = asked_reading(options, 1 if options.unit not in (None, "function") else ONE_LINER)
    skipped = Skipped()
    with Progress() as progress:
        units = iter_units(options.paths, reading, on_skip=skipped, n_jobs=options.jobs)
        forest = td.Forest.concat(progress.over(units))
    report_skipped(skipped)
    for target in targets:
        check_target(target, *set(forest.columns.get("file", ())))
    if not len(forest):
        raise SourceError(f"no units found to cluster: {NO_UNITS}")
    threshold = {}
    if options.threshold is not None:
        threshold = {"threshold": options.threshold}
    elif options.unit != PAGE and any(map(is_code, options.paths)):
        threshold = {"threshold": CODE_THRESHOLD}
    found = td.cluster_trees(forest, min_size=options.min_size, **threshold, n_jobs=options.jobs)
    with (
        write_whole(options.output) as aside,
        aside.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        _write_table(file, forest, found)
    if options.html:
        with write_whole(options.html) as aside:
            aside.write_text(cluster_page(forest, found, place_of), encoding="utf-8")
    print(cluster_counts(found))


def _write_table(file: IO[str], forest: td.Forest, found: td.search.Clusters) -> None:
    writer = csv.writer(file)
    places = [name for name in ("file", "start", "end", "name") if name in forest.columns]
    writer.writerow(["id", *places, "cluster", "size", "medoid", "spread"])
    for i, label in enumerate(found.labels.tolist()):
        known = [forest.columns[name][i] for name in places]
        about: list[Any] = [-1, "", "", ""]
        if label >= 0:
            about = [label, found.sizes[label], found.medoids[label], f"{found.spreads[label]:.4f}"]
        writer.writerow([i, *known, *about])
