"""The lines of trees in files, and which trees are parts of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from treedot.errors import ParameterError

PLACE = ("file", "start", "end")  # columns

_Span = tuple[Any, Any, Any]  # a file, its first and its last line


class Places:
    """The places of trees in files, as far as they are known.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns ``file``, ``start`` and ``end`` of the trees. Lines are numbers, or texts of numbers.
    count : int
        The number of trees.

    Attributes
    ----------
    file : array of int
        The number of each tree's file; trees without a place have unique numbers.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]], count: int) -> None:
        found = [columns.get(name, [None] * count) for name in PLACE]
        self._spans = [_span(*place) for place in zip(*found, strict=True)]
        numbers: dict[Any, int] = {}
        self.file = np.array(
            [
                -1 - i if span is None else numbers.setdefault(span[0], len(numbers))
                for i, span in enumerate(self._spans)
            ],
            np.int64,
        )

    def all_overlap(self, some: Sequence[int], others: Sequence[int]) -> bool:
        """Return whether every pair of trees from the two lists overlaps in the same file."""
        return all(self.overlap(i, j) for i in some for j in others)

    def key(self, i: int) -> tuple[str, float, float]:
        """Return a key that orders trees by their places."""
        file, start, end = self._spans[i] or ("", 0, 0)
        return str(file), start, end

    def _is_inside(self, i: int, j: int) -> bool:
        inner, outer = self._spans[i], self._spans[j]
        if inner is None or outer is None or inner[0] != outer[0]:
            return False
        return bool(outer[1] <= inner[1] and inner[2] <= outer[2])

    def apart(self, members: Sequence[int]) -> list[int]:
        """Return the members that are not part of others, ascending; of equal places, the first given."""
        ends: dict[Any, int] = {}  # the last line so far of every file
        kept = []
        for i in sorted(members, key=self._outer_first):  # on the same lines, in their order
            file, _, end = self._spans[i] or (None, 0, 0)
            if file is None or file not in ends or end > ends[file]:
                ends[file] = end
                kept.append(i)
        return sorted(kept)

    def overlap(self, i: int, j: int) -> bool:
        """Return whether one of two trees is part of the other, by their lines in a file."""
        return self._is_inside(i, j) or self._is_inside(j, i)

    def _outer_first(self, i: int) -> tuple[int, int]:
        _, start, end = self._spans[i] or (None, 0, 0)
        return start, -end

    def not_repeated(self, groups: Sequence[Sequence[int]]) -> Iterator[int]:
        """Yield the numbers of the groups that do not repeat an earlier group.

        A group repeats another if each of its members is part of a member of the other, or contains one. But
        a group is kept if all of its members contain others: there is more in common around them.
        """
        spans = [[self._spans[i] for i in members] for members in groups]
        around = _around({span for members in spans for span in members if span is not None})
        inside: dict[_Span | None, list[_Span | None]] = {}
        for inner, outer_ones in around.items():
            for outer in outer_ones:
                inside.setdefault(outer, []).append(inner)
        before: dict[_Span | None, set[int]] = {}  # the groups with a member there

        def at(some: Iterable[_Span | None]) -> set[int]:
            return set[int]().union(*(before.get(span, ()) for span in some))

        for number, members in enumerate(spans):
            parts = [at(around.get(span, ())) for span in members]
            repeated = set[int]().union(*parts)
            if repeated:
                pairs = zip(parts, members, strict=True)
                repeated.intersection_update(*(part | at(inside.get(span, ())) for part, span in pairs))
            if not repeated:
                yield number
                for span in filter(None, members):
                    before.setdefault(span, set()).add(number)


def _span(file: Any, start: Any, end: Any) -> _Span | None:
    """Return the place of a tree, or None if it is unknown."""
    if file is None or start is None or end is None:
        return None
    try:
        hash(file)
        return file, _line(start), _line(end)
    except (TypeError, ValueError):
        raise ParameterError(
            "the columns file, start and end must hold a file and the numbers of a tree's first and last "
            f"lines, not {file!r}, {start!r} and {end!r}: rename them if they mean something else"
        ) from None


def _line(number: Any) -> Any:
    return number if isinstance(number, Real) else int(str(number))


def _around(spans: Iterable[_Span]) -> dict[_Span | None, list[_Span]]:
    """Return the spans that contain each span, including itself."""
    found: dict[_Span | None, list[_Span]] = {}
    open_: list[_Span] = []  # those that reach the line
    for span in sorted(spans, key=lambda span: (str(span[0]), span[1], -span[2])):
        open_ = [outer for outer in open_ if outer[0] == span[0] and outer[2] >= span[1]]
        open_.append(span)
        found[span] = [outer for outer in open_ if outer[2] >= span[2]]
    return found
