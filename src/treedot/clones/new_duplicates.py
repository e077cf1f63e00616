"""Find the near-duplicates that a baseline does not know, or that involve changed code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from treedot.clones.baseline import Baseline, Label
from treedot.clones.groups import DuplicateGroup, all_groups, group_of_two, outermost
from treedot.clones.identities import Unit
from treedot.clones.near_duplicates import NearDuplicates


class _State(NamedTuple):
    """The baseline's label of a tree, if it is known, and whether it was changed."""

    label: Label | None
    is_changed: bool


_IsAsked = Callable[[_State, _State], bool]  # whether to report the first tree because of the second


def new_duplicates(
    found: NearDuplicates,
    *,
    known: Baseline | None = None,
    units: Sequence[Unit] = (),
    changed: Sequence[bool] | None = None,
) -> list[DuplicateGroup]:
    """Return the groups that contain a new pair, and the best new pair of each other tree.

    A pair is new if the baseline does not know it and one of its trees has changed. Complete linkage may
    separate a tree from its best new partner; the two then form a group of their own, so that every tree with
    a new partner is reported. ``new`` of a group are the trees that it is reported for.

    Parameters
    ----------
    found : NearDuplicates
        All pairs of near-duplicates.
    known : Baseline, optional
        The known pairs. A baseline of version 1 does not store pairs outside of groups; such pairs are
        reported only if ``changed`` is given. One of version 1 or 2 does not store pairs below the threshold;
        they are not reported.
    units : sequence of Unit
        One unit for each tree, to be looked up in the baseline.
    changed : sequence of bool, optional
        Whether each tree is new or changed; by default, all may be.
    """
    if known is not None and not known.knows_lower:
        found = found.not_below_threshold()
    labels = [None] * len(found.kind) if known is None else known.labels(found, units)
    states = [_State(label, changed is None or changed[i]) for i, label in enumerate(labels)]

    def is_asked(one: _State, other: _State) -> bool:
        if known is not None and known.knows(one.label, other.label):
            return False
        # If all trees may have changed, a known tree is not reported for each similar new tree.
        return one.is_changed and (changed is not None or one.label is None or other.label is not None)

    groups = [group for group in all_groups(found) if _asked(group, states, is_asked)]
    if known is None or known.knows_pairs or changed is not None:
        groups += _best_pairs(found, states, is_asked, groups)
    return [replace(group, new=_asked(group, states, is_asked)) for group in outermost(found, groups)]


def _asked(group: DuplicateGroup, states: Sequence[_State], is_asked: _IsAsked) -> tuple[int, ...]:
    """Return the members to report because of another member."""
    counts = Counter(states[i] for i in group.members)
    asked = {x for x in counts if any(is_asked(x, y) for y in counts if x != y or counts[x] > 1)}
    return tuple(i for i in group.members if states[i] in asked)


def _best_pairs(
    found: NearDuplicates, states: Sequence[_State], is_asked: _IsAsked, groups: Sequence[DuplicateGroup]
) -> list[DuplicateGroup]:
    """Return as groups the trees with their best partners, unless a best partner is in the same group."""
    by_state: list[dict[_State, list[int]]] = []
    for copies in found.trees.copies:
        some: dict[_State, list[int]] = {}
        for i in copies:
            some.setdefault(states[i], []).append(i)
        by_state.append(some)
    number = {i: k for k, group in enumerate(groups) for i in group.members}
    best: dict[tuple[int, int], float] = {}
    for kind, partners in enumerate(found.partners()):
        for state, trees in by_state[kind].items():
            asked = [
                (similarity, others)
                for similarity, partner in partners
                for other, others in by_state[partner].items()
                if is_asked(state, other)
            ]
            for i in trees:
                for j, similarity in _best(found, i, asked, number):
                    best[min(i, j), max(i, j)] = similarity
    return [group_of_two(found, i, j, similarity) for (i, j), similarity in sorted(best.items())]


def _best(
    found: NearDuplicates, i: int, asked: Sequence[tuple[float, Sequence[int]]], group: dict[int, int]
) -> Iterator[tuple[int, float]]:
    """Yield the best partner of tree i, unless an equally similar partner is in the same group."""
    best: tuple[int, float] | None = None
    for similarity, others in asked:
        if best is not None and similarity < best[1]:
            break
        for j in others:
            if i != j and not found.places.overlap(i, j):
                if i in group and group[i] == group.get(j):
                    return
                best = best or (j, similarity)
    if best is not None:
        yield best
