"""Choose the groups of blocks to list: those that say something new, the most important first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from treedot.clones.groups import DuplicateGroup
from treedot.clones.places import PLACE
from treedot.trees import Forest

SAME_PLACE = 0.5  # share of the lines of a block in a listed block from which on they are the same place


class Lines(NamedTuple):
    """A range of lines of a file."""

    file: Any
    start: int
    end: int

    @property
    def n_lines(self) -> int:
        """The number of lines."""
        return self.end - self.start + 1

    def holds(self, other: Lines) -> bool:
        """Return whether the other lines, of the same file, are among these."""
        return self.start <= other.start and other.end <= self.end

    def shared(self, other: Lines) -> int:
        """Return the number of lines that are also among the others, of the same file."""
        return max(0, min(self.end, other.end) - max(self.start, other.start) + 1)


def lines_of(trees: Forest) -> list[Lines]:
    """Return the lines of all trees."""
    if not len(trees):  # without trees, a forest may lack the columns
        return []
    places = zip(*(trees.columns[name] for name in PLACE), strict=True)
    return [Lines(file, int(start), int(end)) for file, start, end in places]


def telling(groups: Iterable[DuplicateGroup], places: Sequence[Lines]) -> Iterator[DuplicateGroup]:
    """Yield, in order, the groups whose places earlier groups do not link.

    A block is at the place of an earlier one that has half of its lines. So k copies of
    a block take k - 1 pairs in the list, not all pairs.
    """
    linked: list[int] = []  # for each place, an earlier place that is linked with it, or itself
    known: dict[Any, list[tuple[Lines, int]]] = {}

    def root(place: int) -> int:
        while linked[place] != place:
            linked[place] = place = linked[linked[place]]
        return place

    def place_of(run: Lines) -> int:
        some = known.setdefault(run.file, [])
        for lines, place in some:
            if lines.shared(run) >= SAME_PLACE * run.n_lines:
                return place
        linked.append(len(linked))
        some.append((run, len(linked) - 1))
        return len(linked) - 1

    for group in groups:
        found = {root(place_of(places[i])) for i in group.members}
        if len(found) > 1:
            first = min(found)
            for other in found:
                linked[other] = first
            yield group
