"""A baseline: a file of known near-duplicates, so that only new ones are shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from treedot._storage.files import read_plain, write_whole
from treedot.clones.identities import Unit, recognised, units_of
from treedot.clones.near_duplicates import NearDuplicates
from treedot.clones.similarity import SimilarPairs
from treedot.errors import SourceError
from treedot.readers.code.grammars import checked_versions, grammar_versions
from treedot.trees import Forest

VERSION = 3
ANEW = "write it again with --write-baseline"

Pair = tuple[int, int]


class Label(NamedTuple):
    """The known unit that a unit corresponds to: its group, and whether the tree is unchanged."""

    group: int
    is_same_tree: bool


class Baseline(NamedTuple):
    """Units that have near-duplicates, and which pairs of them are known.

    A group of units is a tree with its copies; in files of version 1, a group of the report. Its units are
    known as near-duplicates of each other.
    """

    version: int
    units: list[Unit]
    group: list[int]  # the group of every unit
    near: frozenset[Pair]  # pairs of groups that are near-duplicates, smaller number first
    too_common: frozenset[Pair]  # pairs that are similar, but share too few rare productions
    grammars: dict[str, str]  # the versions that parsed the units; empty in files of earlier versions

    @property
    def knows_pairs(self) -> bool:
        """Whether it holds all pairs, including those in no group of the report."""
        return self.version > 1

    @property
    def knows_lower(self) -> bool:
        """Whether it holds the pairs below the threshold, too."""
        return self.version > 2

    def are_near(self, a: int, b: int) -> bool:
        """Return whether the units of two groups are known near-duplicates."""
        return a == b or (min(a, b), max(a, b)) in self.near

    def knows(self, x: Label | None, y: Label | None) -> bool:
        """Return whether two units are a known pair.

        An unchanged pair may become near-duplicates only because other code makes its common productions
        rarer. So similar pairs that shared too few rare productions are known, too, while both are unchanged.
        """
        if x is None or y is None:
            return False
        pair = min(x.group, y.group), max(x.group, y.group)
        return self.are_near(*pair) or (x.is_same_tree and y.is_same_tree and pair in self.too_common)

    def labels(self, found: NearDuplicates, units: Sequence[Unit]) -> list[Label | None]:
        """Return the known unit of every unit, or None if it is new."""
        matched = recognised(units, self.units)
        self._recognise_edited(found, units, matched)
        return [
            None if k < 0 else Label(self.group[k], unit.tree == self.units[k].tree)
            for k, unit in zip(matched, units, strict=True)
        ]

    def _recognise_edited(self, found: NearDuplicates, units: Sequence[Unit], matched: list[int]) -> None:
        """Recognise edited units, even without unique names, by the near-duplicates that they still have.

        An unrecognised unit is taken for a known unit that is gone if both are near-duplicates of the same
        unit, and both are in the same file or have the same name.
        """
        taken = set(matched)
        gone = [k for k in range(len(self.units)) if k not in taken]
        sure, partners = list(matched), list(found.partners()) if gone else []
        for i, unit in enumerate(units):
            if matched[i] >= 0 or found.kind[i] < 0 or not gone:
                continue
            like = {
                self.group[sure[j]]
                for _, kind in partners[found.kind[i]]
                for j in found.trees.copies[kind]
                if sure[j] >= 0 and not found.places.overlap(i, j)
            }
            for k in gone if like else ():
                is_like = any(self.are_near(self.group[k], other) for other in like)
                if is_like and _may_be(unit, self.units[k]):
                    matched[i] = k
                    gone.remove(k)
                    break


def _may_be(unit: Unit, known: Unit) -> bool:
    return unit.file == known.file or (unit.is_named and known.is_named and unit.name == known.name)


def unit_names(forest: Forest, unit: str) -> Sequence[str]:
    """Return the names of units in a baseline: the file names if units are whole files."""
    if unit == "file":
        return forest.columns.get("file", [])
    return forest.columns.get("name", [""] * len(forest))


def write_baseline(path: Path, forest: Forest, found: NearDuplicates, names: Sequence[str]) -> None:
    """Write a baseline of all pairs of near-duplicates; ``names`` are the names of the units."""
    units, copies = units_of(forest, names), found.trees.copies
    key = [units[numbers[0]].tree for numbers in copies]
    near, too_common = (_by_first(key, pairs) for pairs in (found.near, found.too_common))
    wanted = {key[k] for k, numbers in enumerate(copies) if len(numbers) > 1}
    for some in (near, too_common):
        wanted.update(some, *some.values())
    trees = [
        {
            "tree": key[k],
            "near": sorted(near.get(key[k], ())),
            "too_common": sorted(too_common.get(key[k], ())),
            "members": [_described(unit) for unit in sorted(units[i] for i in copies[k])],
        }
        for k in sorted(range(len(copies)), key=key.__getitem__)
        if key[k] in wanted
    ]
    grammars = grammar_versions(forest.columns.get("language", ()))
    content = {"treedot_baseline": VERSION, "grammars": grammars, "trees": trees}
    text = json.dumps(content, ensure_ascii=False, indent=1)
    with write_whole(path) as aside:
        aside.write_text(text + "\n", encoding="utf-8")


def _by_first(key: Sequence[str], pairs: SimilarPairs) -> dict[str, set[str]]:
    """Return a mapping from the smaller key of each pair to the larger ones."""
    found: dict[str, set[str]] = {}
    for a, b in zip(pairs.a.tolist(), pairs.b.tolist(), strict=True):
        first, second = sorted((key[a], key[b]))
        found.setdefault(first, set()).add(second)
    return found


def _described(unit: Unit) -> dict[str, Any]:
    described: dict[str, Any] = {"file": unit.file, "name": unit.name, "content": unit.content}
    return described if unit.is_named else described | {"named": False}


def read_baseline(path: Path) -> Baseline:
    """Read a file that ``write_baseline`` wrote, of this or an earlier version."""
    if not path.exists():
        raise SourceError(f"cannot open {path}: no such file; --write-baseline {path} makes a baseline")
    content = read_plain(path)
    try:
        found = json.loads(content.decode("utf-8"))
        version = found["treedot_baseline"]
        if type(version) is not int or version <= VERSION:
            return _READERS[version](found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SourceError(f"{path} is not a baseline: {ANEW}") from error
    raise SourceError(
        f"{path} is a baseline of version {version}, but this treedot reads versions up to {VERSION}: "
        f"update treedot, or {ANEW}"
    )


def _read_groups(found: dict[str, Any]) -> Baseline:
    """Return a baseline of version 1: the groups of a report, without information on repeated names."""
    groups = [[_unit(member, "") for member in members] for members in found["groups"]]
    places = Counter((unit.file, unit.name) for units in groups for unit in units)
    units = [
        unit._replace(is_named=unit.is_named and places[unit.file, unit.name] == 1)
        for units in groups
        for unit in units
    ]
    numbers = [k for k, units in enumerate(groups) for _ in units]
    return Baseline(1, units, numbers, frozenset(), frozenset(), {})


def _read_trees(found: dict[str, Any]) -> Baseline:
    """Return a baseline of version 2 or 3, which differ only in the pairs that they hold."""
    trees = found["trees"]
    number = {_text(tree["tree"]): k for k, tree in enumerate(trees)}
    units = [_unit(member, tree["tree"]) for tree in trees for member in tree["members"]]
    numbers = [k for k, tree in enumerate(trees) for _ in tree["members"]]
    near, too_common = (
        frozenset(
            (min(k, number[other]), max(k, number[other]))
            for k, tree in enumerate(trees)
            for other in tree[name]
        )
        for name in ("near", "too_common")
    )
    version = found["treedot_baseline"]
    return Baseline(version, units, numbers, near, too_common, checked_versions(found.get("grammars", {})))


_READERS: dict[Any, Callable[[dict[str, Any]], Baseline]] = {
    1: _read_groups,
    2: _read_trees,
    VERSION: _read_trees,
}


def _unit(member: dict[str, Any], tree: str) -> Unit:
    file, name, content = (_text(member[key]) for key in ("file", "name", "content"))
    return Unit(file, name, bool(member.get("named", True)) and name != "", content, tree)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
