"""Find the pairs of blocks that are not already reported as functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treedot._runtime.array_types import Array
from treedot.clones.blocks.listing import Lines, lines_of
from treedot.clones.blocks.similar_runs import SimilarRuns
from treedot.clones.blocks.statements import Statements
from treedot.clones.groups import DuplicateGroup
from treedot.trees import Forest

LEFT = 0.2  # the least share of the nodes of a block that are not in reported functions


def places_of_groups(functions: Forest | None, groups: Iterable[DuplicateGroup]) -> list[list[Lines]]:
    """Return the places of the members of groups of functions."""
    lines = [] if functions is None else lines_of(functions)
    return [[lines[i] for i in group.members] for group in groups]


def unreported(
    files: Forest, statements: Statements, pairs: SimilarRuns, groups: Sequence[Sequence[Lines]]
) -> Array:
    """Return whether each pair says more than the groups of functions at some places.

    It does not if its blocks lie in two functions of a group, or consist to 80 % of functions of groups with
    members in both blocks.
    """
    keep = np.ones(len(pairs.bits), bool)
    reported = _Reported(groups)
    tree = statements.tree[pairs.first_a], statements.tree[pairs.first_b]
    for k, ends in enumerate(zip(*(column.tolist() for column in pairs[:4]), strict=True)):
        runs = ends[:2], ends[2:]
        a, b = (
            Lines(
                files.columns["file"][i[k]],
                int(statements.lines[first, 0]),
                int(statements.lines[last, 1]),
            )
            for i, (first, last) in zip(tree, runs, strict=True)
        )
        inside = reported.inside(a, b), reported.inside(b, a)
        if reported.around(a, b):
            keep[k] = False
        elif all(inside):
            keep[k] = max(map(_left, (statements, statements), runs, inside)) >= LEFT
    return keep


class _Reported:
    """The functions of groups, by file."""

    def __init__(self, groups: Sequence[Sequence[Lines]]) -> None:
        self._by_file: dict[Any, list[tuple[Lines, int]]] = {}
        for number, members in enumerate(groups):
            for lines in members:
                self._by_file.setdefault(lines.file, []).append((lines, number))

    def around(self, a: Lines, b: Lines) -> bool:
        """Return whether two blocks lie in two functions of one group."""
        around_a, around_b = (
            [(lines, number) for lines, number in self._by_file.get(run.file, ()) if lines.holds(run)]
            for run in (a, b)
        )
        return any(x != y and n == m for x, n in around_a for y, m in around_b)

    def inside(self, a: Lines, b: Lines) -> list[Lines]:
        """Return the functions in block a that are in a group with a function in block b."""
        numbers = {number for lines, number in self._by_file.get(b.file, ()) if b.holds(lines)}
        some = self._by_file.get(a.file, ()) if numbers else ()
        return [lines for lines, number in some if number in numbers and a.holds(lines)]


def _left(statements: Statements, ends: tuple[int, int], functions: Sequence[Lines]) -> float:
    """Return the share of the nodes of a block that are not in some functions."""
    places = slice(ends[0], ends[1] + 1)
    start, end = statements.lines[places].T
    covered = np.zeros(len(start))
    for function in functions:
        covered += np.maximum(0, np.minimum(end, function.end) - np.maximum(start, function.start) + 1)
    left = 1 - np.minimum(1, covered / (end - start + 1))
    sizes = statements.node[places] + 1 - statements.first[places]
    return float((sizes * left).sum() / sizes.sum())
