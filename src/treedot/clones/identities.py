"""Recognise units of source code after they were moved, renamed or edited.

A unit is recognised by its content, in any file. Its name helps only if it is not empty and no other unit of
the same file has it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from treedot.readers.code.units import name_in_source
from treedot.trees import Forest


class Unit(NamedTuple):
    """A unit of source code, such as a function: its place, name and content."""

    file: str
    name: str
    is_named: bool  # whether the source names it, and names no other unit of the file so
    content: str  # a hash of the tree with its names and literals
    tree: str  # a hash of the tree only


def units_of(forest: Forest, names: Sequence[str]) -> list[Unit]:
    """Return one unit for each tree of a forest, with the given names."""
    files = forest.columns.get("file", [""] * len(forest))
    plain = [name_in_source(name) for name in names]
    times = Counter(zip(files, plain, strict=True))
    return [
        Unit(file, name, plain[i] != "" and times[file, plain[i]] == 1, *unit_keys(forest, i))
        for i, (file, name) in enumerate(zip(files, names, strict=True))
    ]


def unit_keys(forest: Forest, i: int) -> tuple[str, str]:
    """Return two stable hashes of a tree: with its names and literals, and without."""
    nodes = slice(forest.offsets[i], forest.offsets[i + 1])
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(forest.arity[nodes], "<i4").tobytes())
    digest.update("\0".join([forest.labels[k] for k in forest.label[nodes].tolist()]).encode())
    tree = digest.hexdigest()
    blurred = forest.columns["blurred"][i] if "blurred" in forest.columns else ()
    digest.update(np.asarray(blurred, "<i8").tobytes())
    return digest.hexdigest()[:16], tree[:16]


def recognised(units: Sequence[Unit], known: Sequence[Unit]) -> list[int]:
    """Return for every unit the number of the known unit that it matches, or -1.

    A known unit matches at most one unit, so additional copies of it get -1. The most reliable criteria are
    tried first.
    """
    found, free = [-1] * len(units), set(range(len(known)))
    for sign in _SIGNS:
        waiting: dict[Hashable, list[int]] = {}
        for k in sorted(free, reverse=True):
            waiting.setdefault(sign(known[k]), []).append(k)
        waiting.pop(None, None)
        for i, unit in enumerate(units):
            if found[i] < 0 and (some := waiting.get(sign(unit))):
                found[i] = some.pop()
                free.remove(found[i])
    return found


_SIGNS: tuple[Callable[[Unit], Hashable], ...] = (
    lambda unit: (unit.file, unit.name, unit.content),
    lambda unit: (unit.file, unit.name) if unit.is_named else None,  # edited
    lambda unit: (unit.file, unit.content),
    lambda unit: unit.content,  # moved
    lambda unit: (unit.file, unit.tree) if unit.tree else None,  # names or literals changed
    lambda unit: unit.tree or None,
)
