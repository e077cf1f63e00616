"""Runs of statements as trees of their own, for groups and reports."""

from __future__ import annotations

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.ragged import ends_of, places_of
from treedot._runtime.sorted_arrays import runs
from treedot.clones.blocks.listing import Lines, lines_of
from treedot.clones.blocks.run_similarity import Productions
from treedot.clones.blocks.statements import Statements
from treedot.clones.information import Information
from treedot.clones.similarity import Multisets
from treedot.trees import Forest

ROOT = "block"


def rows_of_runs(statements: Statements, first: IntArray, last: IntArray) -> IntArray:
    """Return a row for the run from statement ``first[k]`` to ``last[k]``, for every k.

    It holds the number of the file, the first node and the one after the last, the first and the last line,
    and the range of names and literals among those of the file.
    """
    nodes = statements.first[first], statements.node[last] + 1
    lines = statements.lines[first, 0], statements.lines[last, 1]
    texts = statements.texts[first, 0], statements.texts[last, 1]
    return np.column_stack((statements.tree[first], *nodes, *lines, *texts))


def trees_of_runs(files: Forest, rows: IntArray) -> Forest:
    """Return a tree for each of the runs that ``rows_of_runs`` describes, with its place."""
    tree, begin, end, start, stop, first_text, last_text = rows.T
    nodes, ends = places_of(begin, end - begin)
    n_statements = np.diff(ends_of(1 - files.arity[nodes])[ends])
    index = {text: number for number, text in enumerate(files.labels)}
    root = index.setdefault(ROOT, len(index))
    forest = Forest(
        np.insert(files.label[nodes], ends[1:], root),
        np.insert(files.arity[nodes], ends[1:], n_statements),
        ends + np.arange(len(ends)),
        tuple(index),
    )
    for name in {"file", "language"} & set(files.columns):
        forest.columns[name] = [files.columns[name][i] for i in tree]
    forest.columns["start"] = start.tolist()
    forest.columns["end"] = stop.tolist()
    if "blurred" in files.columns:
        texts = zip(tree, first_text, last_text, strict=True)
        forest.columns["blurred"] = [files.columns["blurred"][i][first:last] for i, first, last in texts]
    return forest


def names_of_runs(blocks: Forest, functions: Forest) -> list[str]:
    """Return the name of the innermost function around each run, or an empty one."""
    by_file: dict[str, list[tuple[Lines, str]]] = {}
    for lines, name in zip(lines_of(functions), functions.columns.get("name", ()), strict=True):
        by_file.setdefault(lines.file, []).append((lines, name))
    for some in by_file.values():
        some.sort(key=lambda function: function[0].n_lines)
    return [
        next((name for lines, name in by_file.get(run.file, ()) if lines.holds(run)), "")
        for run in lines_of(blocks)
    ]


def contents(
    productions: Productions, statements: Statements, first: IntArray, last: IntArray
) -> tuple[Multisets, Information]:
    """Return the productions of runs as multisets, and as sets with their information."""
    start = statements.first[first]
    nodes, ends = places_of(start, statements.node[last] + 1 - start)
    production = productions.of_node[nodes].astype(np.int64)
    run = np.repeat(np.arange(len(first)), np.diff(ends))[production >= 0]
    production = production[production >= 0]
    order = np.lexsort((production, run))
    run, production = run[order], production[order]
    n = len(productions.bits)
    distinct, begin = runs(run * n + production)
    occurrence = np.arange(len(run)) - np.repeat(begin[:-1], np.diff(begin))
    elements = production * (occurrence.max(initial=0) + 1) + occurrence
    multisets = Multisets(elements, ends_of(np.bincount(run, minlength=len(first))))
    numbers = np.arange(len(first) + 1) * n
    bounds = np.searchsorted(distinct, numbers)
    information = Information(distinct % max(1, n), bounds, productions.frequency, productions.n_stretches)
    return multisets, information
