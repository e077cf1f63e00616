"""The trees of the tour: functions of Python's standard library, and pieces of them."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import numpy as np

import treedot as td
from treedot._runtime.ragged import places_of
from treedot.clones.duplicates import MIN_NODES
from treedot.errors import SourceError

SMALLEST, LARGEST = 30, 600  # nodes of a function in ``standard_library``
SMALLEST_PIECE, LARGEST_PIECE = 10, 100  # nodes
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "encodings", "idlelib", "lib2to3", "turtledemo"}


def library_root() -> Path:
    """Return the folder of the standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def units(root: Path, n_functions: int) -> td.Forest:
    """Return the first functions of the library, file by file, names and literals blurred."""
    settings = td.readers.CodeSettings(identifiers="blur", literals="blur", min_nodes=MIN_NODES, blurred=True)
    parts, found = [], 0
    for forest in td.iter_code(_files(root), settings=settings, on_bad=lambda error: None, n_jobs=-1):
        forest.columns["file"] = [Path(file).relative_to(root).as_posix() for file in forest.columns["file"]]
        parts.append(forest)
        found += len(forest)
        if found >= n_functions:
            break
    return td.Forest.concat(parts)[:n_functions]


def standard_library(root: Path, n_functions: int) -> td.Forest:
    """Return different functions of moderate size from all over the library, always the same ones."""
    parts, found = [], 0
    for path in _files(root):
        forest = td.read_trees(path, on_bad=lambda error: None)
        forest.columns["file"] = [str(path.relative_to(root))] * len(forest)
        parts.append(forest[(forest.sizes >= SMALLEST) & (forest.sizes <= LARGEST)])
        found += len(parts[-1])
        if found >= n_functions:
            break
    forest = td.Forest.concat(parts)
    _, first = np.unique(forest.root_subtree, return_index=True)  # of equal trees
    return forest[np.sort(first)[:n_functions]]


def pieces(forest: td.Forest, most: int) -> td.Forest:
    """Return different subtrees of moderate size in random order, always the same: statements and such."""
    size = forest.subtree_size
    moderate = np.flatnonzero((size >= SMALLEST_PIECE) & (size <= LARGEST_PIECE))
    _, first = np.unique(forest.subtree[moderate], return_index=True)
    root = np.random.default_rng(0).permutation(moderate[np.sort(first)])[:most]
    nodes, offsets = places_of(
        root - size[root] + 1, size[root]
    )  # in post-order, a subtree ends with its root
    return td.Forest(forest.label[nodes], forest.arity[nodes], offsets, forest.labels)


def _files(root: Path) -> list[Path]:
    """Return the files of the library, shuffled, always in the same order."""
    paths = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED]  # they may hold thousands
        paths += [Path(folder, name) for name in names if name.endswith(".py")]
    if not paths:
        raise SourceError(f"there is no Python source in {root}: the demo needs the standard library's files")
    paths.sort()
    np.random.default_rng(0).shuffle(paths)
    return paths
