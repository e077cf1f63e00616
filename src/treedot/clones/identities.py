"""Recognise units of source code after they were moved, renamed or edited.

A unit is recognised by its content, wherever it is. Its name says something only if no other unit of the file
has it: an empty or repeated name says nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from treedot.trees import Forest


class Unit(NamedTuple):
    """A unit: where it is, and what it is."""

    file: str
    name: str
    is_named: bool  # by a name that no other unit of the file has
    content: str  # a key of the tree with its names and literals
    tree: str  # a key of the tree


def units_of(forest: Forest, names: Sequence[str]) -> list[Unit]:
    """Return the units of a forest, which have these names."""
    files = forest.columns.get("file", [""] * len(forest))
    times = Counter(zip(files, names, strict=True))
    return [
        Unit(file, name, name != "" and times[file, name] == 1, *unit_keys(forest, i))
        for i, (file, name) in enumerate(zip(files, names, strict=True))
    ]


def unit_keys(forest: Forest, i: int) -> tuple[str, str]:
    """Return a key of a tree with its names and literals, and one of the tree, the same in every process."""
    nodes = slice(forest.offsets[i], forest.offsets[i + 1])
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(forest.arity[nodes], "<i4").tobytes())
    digest.update("\0".join([forest.labels[k] for k in forest.label[nodes].tolist()]).encode())
    tree = digest.hexdigest()
    blurred = forest.columns["blurred"][i] if "blurred" in forest.columns else ()
    digest.update(np.asarray(blurred, "<i8").tobytes())
    return digest.hexdigest()[:16], tree[:16]


def recognised(units: Sequence[Unit], known: Sequence[Unit]) -> list[int]:
    """Return for every unit the number of the known one that it is, -1 where it is none of them.

    Each known unit is at most one unit now, so a further copy is not recognised. The surest signs count
    first.
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
    lambda unit: (unit.file, unit.name) if unit.is_named else None,  # it was edited
    lambda unit: (unit.file, unit.content),
    lambda unit: unit.content,  # it was moved
    lambda unit: (unit.file, unit.tree) if unit.tree else None,  # names in it were changed, perhaps its own
    lambda unit: unit.tree or None,
)
