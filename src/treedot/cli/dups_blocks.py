"""The blocks in a report of near-duplicates: whether they are searched, and among which files."""

from __future__ import annotations

import argparse

import numpy as np

import treedot as td
from treedot.clones.blocks import DuplicateBlocks, find_duplicate_blocks
from treedot.clones.duplicates import OnLimit
from treedot.clones.groups import DuplicateGroup
from treedot.clones.listed import in_sections
from treedot.errors import ParameterError

GATE = ("changed_since", "baseline", "write_baseline", "fail_on_new")


def check_blocks(options: argparse.Namespace) -> None:
    """Raise an error if blocks are requested with an option that applies only to functions."""
    given = [name.replace("_", "-") for name in GATE if getattr(options, name)]
    if options.blocks and given:
        raise ParameterError(
            f"--{given[0]} does not apply to blocks: leave out --blocks, or find blocks in a separate run"
        )


def searches_blocks(options: argparse.Namespace) -> bool:
    """Return whether to find blocks: by default where functions are compared, without a gate."""
    if any(getattr(options, name) for name in GATE):
        return False
    return options.unit == "function" if options.blocks is None else bool(options.blocks)


def units_and_files(forest: td.Forest, unit: str) -> tuple[td.Forest, td.Forest]:
    """Return the trees to compare, and those of whole files with their statements."""
    rows = forest.columns.get("statements", ())
    is_file = np.array([some is not None for some in rows], bool)
    if unit == "file" or not len(rows):
        return forest, forest[np.flatnonzero(is_file)]
    return forest[np.flatnonzero(~is_file)], forest[np.flatnonzero(is_file)]


def find_blocks(
    options: argparse.Namespace,
    files: td.Forest,
    functions: td.Forest,
    groups: list[DuplicateGroup],
    on_limit: OnLimit,
) -> DuplicateBlocks:
    """Return the similar blocks in files that the groups of functions do not report."""
    found = find_duplicate_blocks(
        files,
        threshold=options.threshold,
        min_nodes=options.min_nodes,
        functions=functions,
        groups=groups,
        on_limit=on_limit,
    )
    return found._replace(groups=in_sections(found.groups, options.tests))
