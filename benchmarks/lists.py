"""Lists of groups of places in files, and when a reader of a list sees planted copies."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treedot.clones.testing import are_tests


class Place(NamedTuple):
    """A range of lines of a file."""

    file: str
    start: int
    end: int

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self.end - self.start + 1

    def shared(self, other: Place) -> int:
        """Return the number of lines that are in both places."""
        return 0 if self.file != other.file else min(self.end, other.end) - max(self.start, other.start) + 1


Group = Sequence[Place]
Shows = Callable[[Place, Place], bool]  # whether a reported place shows a planted one


def is_same(a: Place, b: Place) -> bool:
    """Return whether two places share at least half of the lines of each."""
    return 2 * a.shared(b) >= max(a.lines, b.lines)


def touches(a: Place, b: Place) -> bool:
    """Return whether two places share at least half of the lines of the shorter one."""
    return 2 * a.shared(b) >= min(a.lines, b.lines)


def merged(groups: Iterable[Group]) -> list[Group]:
    """Return the groups, those joined that share a place; a group is at the position of its first part."""
    every = [list(group) for group in groups]
    part = list(range(len(every)))

    def first(number: int) -> int:
        while part[number] != number:
            part[number] = number = part[part[number]]
        return number

    near: list[tuple[Place, int]] = []  # that may share lines with the next one
    for place, number in sorted((place, number) for number, group in enumerate(every) for place in group):
        near = [(a, k) for a, k in near if a.file == place.file and a.end >= place.start]
        for a, k in near:
            if is_same(a, place):
                low, high = sorted((first(k), first(number)))
                part[high] = low
        near.append((place, number))
    joined: dict[int, list[Place]] = {}
    for number, group in enumerate(every):
        joined.setdefault(first(number), []).extend(group)
    return [_distinct(group) for group in joined.values()]


def _distinct(group: Iterable[Place]) -> list[Place]:
    """Return the places of a group, of those that are the same only the first."""
    found: list[Place] = []
    for place in sorted(set(group)):
        before = takewhile(lambda other, file=place.file: other.file == file, reversed(found))
        if not any(is_same(other, place) for other in before):
            found.append(place)
    return found


def with_tests_last(groups: Iterable[Group], files: Sequence[str]) -> list[Group]:
    """Return the groups with those that lie wholly in tests last; ``files`` are all that were read."""
    is_test = dict(zip(files, are_tests(files), strict=True))
    return sorted(groups, key=lambda group: all(is_test.get(place.file, False) for place in group))


def n_pairs(groups: Iterable[Group]) -> int:
    """Return the number of pairs to read: a group of k counts k - 1."""
    return sum(len(group) - 1 for group in groups)


def seen_after(
    groups: Sequence[Group], truth: Sequence[tuple[Place, Place]], shows: Shows
) -> list[int | None]:
    """Return for each planted pair the number of pairs up to the group that shows it, or None."""
    ends = np.cumsum([len(group) - 1 for group in groups])
    by_file: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        for file in {place.file for place in group}:
            by_file.setdefault(file, []).append(number)
    return [
        next(
            (int(ends[k]) for k in by_file.get(b.file, ()) if _show(groups[k], a, b, shows)),
            None,
        )
        for a, b in truth
    ]


def _show(group: Group, a: Place, b: Place, shows: Shows) -> bool:
    """Return whether two members of a group show the two places."""
    first = [k for k, place in enumerate(group) if shows(place, a)]
    second = [k for k, place in enumerate(group) if shows(place, b)]
    return bool(first and second) and len({*first, *second}) > 1


def our_list(folder: Path, section: str, *options: str) -> list[Group]:
    """Return ``groups`` or ``blocks`` as ``treedot dups`` lists them; a partner of a member is a pair."""
    command = [sys.executable, "-P", "-m", "treedot", "dups", ".", "--format", "json", "--no-cache"]
    done = subprocess.run([*command, *options], cwd=folder, check=True, capture_output=True)
    found: list[Group] = []
    for group in json.loads(done.stdout)[section]:
        members = [_place(member) for member in group["members"]]
        found.append(members)
        found += [[members[also["of"]], _place(also)] for also in group["also"]]
    return found


def _place(member: dict[str, object]) -> Place:
    return Place(str(member["file"]), int(str(member["start"])), int(str(member["end"])))
