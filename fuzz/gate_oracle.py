"""The right verdict of the gate, from comparing all functions and knowing their identities."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from fuzz.gate_project import Project
from treedot import Tree, read_code

SURE, NEAR, ENOUGH, NEAREST, NAMED, MIN_NODES = 0.8, 0.75, 0.7, 0.6, 0.5, 40  # as docs/duplicates.md says
BITS, NEAR_BITS, NAMED_BITS, SAME_NAMES, BACKGROUND = 40, 20, 30, 0.5, 100
TOGETHER = 0.9  # similarity and half of the agreement of names
ROUNDING = 1e-9

Pair = tuple[int, int]  # of numbers of units


class Known(NamedTuple):
    """A unit in an earlier state."""

    file: str
    name: str
    is_unique: bool
    content: tuple[str, ...]
    tree: Tree


class Now:
    """The current state of a project: its units, and which of them are near-duplicates."""

    def __init__(self, project: Project) -> None:
        forest = read_code(
            "src", identifiers="blur", literals="blur", blurred=True, min_nodes=MIN_NODES, n_jobs=1
        )
        columns = [forest.columns[name] for name in ("file", "start", "end", "name")]
        # A number after a name tells functions of a file apart: the source does not name them so.
        columns[-1] = [re.sub(r"~\d+$", "", name) for name in columns[-1]]
        self.places = list(zip(*columns, strict=True))
        self.uid = [project.placed[place[:2]][0] for place in self.places]
        self.content = [project.placed[place[:2]][1] for place in self.places]
        times = Counter((file, name) for file, _, _, name in self.places)
        self.units = {
            uid: Known(file, name, bool(name) and times[file, name] == 1, content, tree)
            for uid, (file, _, _, name), content, tree in zip(
                self.uid, self.places, self.content, forest, strict=True
            )
        }
        self.similarity: dict[Pair, float] = {}
        trees = list(forest)
        productions = [Counter(_productions(tree)) for tree in trees]
        distinct = {tree: set(some) for tree, some in zip(trees, productions, strict=True)}
        frequency = Counter(production for some in distinct.values() for production in some)
        bits: dict[Pair, float] = {}
        for i, j in combinations(range(len(trees)), 2):
            one, other = productions[i], productions[j]
            value = (one & other).total() / (one | other).total()
            rare = sum(
                math.log2((len(distinct) + BACKGROUND) / frequency[x]) for x in one.keys() & other.keys()
            )
            is_candidate = value >= ENOUGH - ROUNDING or (value >= NAMED - ROUNDING and rare >= NAMED_BITS)
            if is_candidate and not self.overlap(i, j):
                self.similarity[i, j] = self.similarity[j, i] = value
                bits[i, j] = rare
        best = {tree: float(times > 1) for tree, times in Counter(trees).items()}
        for (i, j), value in self.similarity.items():
            is_rival = value >= ENOUGH - ROUNDING or bits[min(i, j), max(i, j)] >= BITS
            if trees[i] != trees[j] and is_rival:
                best[trees[i]] = max(best[trees[i]], value)
        names = dict[Tree, list[int]]()
        for tree, some in zip(trees, forest.columns["blurred"], strict=True):
            names[tree] = min(names.get(tree, some.tolist()), some.tolist(), key=repr)

        def is_near(i: int, j: int) -> bool:
            value, rare = self.similarity[i, j], bits[i, j]
            is_best = [value >= best[trees[k]] - ROUNDING for k in (i, j)]
            if rare >= BITS and all(is_best) and value >= NEAREST - ROUNDING:
                return True
            one, other = (Counter(names[trees[k]]) for k in (i, j))
            either = (one | other).total()
            agreement = (one & other).total() / either if either else 1.0
            if rare >= BITS and any(is_best) and agreement >= SAME_NAMES:
                return True
            if rare >= NAMED_BITS and value + agreement / 2 >= TOGETHER - ROUNDING:
                return True
            if value >= NEAR - ROUNDING and rare >= NEAR_BITS:
                return True
            return value >= SURE - ROUNDING or (value >= ENOUGH - ROUNDING and rare >= BITS)

        self.near = {pair for pair in bits if is_near(*pair)}

    def overlap(self, i: int, j: int) -> bool:
        """Return whether one unit is part of the other."""
        (a, b, c, _), (x, y, z, _) = self.places[i], self.places[j]
        return bool(a == x and ((b <= y and z <= c) or (y <= b and c <= z)))

    def uids(self, pairs: Iterator[Pair] | set[Pair]) -> set[frozenset[int]]:
        """Return pairs by the identities of their functions."""
        return {frozenset((self.uid[i], self.uid[j])) for i, j in pairs}

    def is_all_in(self, now: Now) -> bool:
        """Return whether every unit that has a partner can be recognised now."""
        have_partners = {uid for pair in self.uids(set(self.similarity)) for uid in pair}
        return all(uid in now.units and _is_sure(now.units[uid], self.units[uid]) for uid in have_partners)

    def not_shown(self, changed: Sequence[int], shown: Sequence[list[tuple[str, int]]]) -> list[str]:
        """Return the changed units that no group shows with a best partner, or with a unit around it.

        Units inside others are skipped: the outer ones are shown instead.
        """
        missing = []
        for i in changed:
            values = {j: self.similarity[i, j] for pair in self.near if i in pair for j in pair if j != i}
            best = [j for j in values if values[j] == max(values.values())]
            around = [k for j in best for k in range(len(self.places)) if k == j or self.overlap(j, k)]
            together = (
                {self.places[i][:2], self.places[k][:2]} <= {*group} for k in around for group in shown
            )
            is_inside = any(self.overlap(i, j) for j in range(len(self.places)) if j != i)
            if best and not is_inside and not any(together):
                missing.append(str(self.places[i]))
        return missing


def _productions(tree: Tree) -> Iterator[tuple[str, ...]]:
    if tree.children:
        yield (tree.label, *(child.label for child in tree.children))
    for child in tree.children:
        yield from _productions(child)


def changed_units(now: Now, before: Now) -> list[int]:
    """Return the units whose content occurs more often than before."""
    more = Counter(now.content) - Counter(before.content)
    return [i for i, content in enumerate(now.content) if content in more]


def new_pairs(now: Now, known: Now) -> set[Pair]:
    """Return the pairs that a baseline of the known units does not contain."""
    near, similar = known.uids(known.near), known.uids(set(known.similarity))
    was = {i: known.units[uid] for i, uid in enumerate(now.uid) if uid in known.units}
    sure = {i for i in was if _is_sure(now.units[now.uid[i]], was[i])}
    edited = {
        i
        for i in was
        if _may_be(now.units[now.uid[i]], was[i])
        and any(
            j in sure and now.uids({pair}) <= near for pair in now.near if i in pair for j in pair if i != j
        )
    }
    same = {i for i in sure if now.units[now.uid[i]].tree == was[i].tree}

    def is_known(pair: Pair) -> bool:
        return ({*pair} <= sure | edited and now.uids({pair}) <= near) or (
            {*pair} <= same and now.uids({pair}) <= similar
        )

    return {pair for pair in now.near if not is_known(pair)}


def _is_sure(unit: Known, was: Known) -> bool:
    """Return whether a unit can be recognised by its content, or by its name if that is unique."""
    is_in_place = unit.file == was.file and unit.name == was.name and unit.is_unique and was.is_unique
    return unit.content == was.content or unit.tree == was.tree or is_in_place


def _may_be(unit: Known, was: Known) -> bool:
    has_name = unit.name == was.name and unit.is_unique and was.is_unique
    return unit.file == was.file or has_name
