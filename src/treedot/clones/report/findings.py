"""Collect the places, source lines and differences of groups, which all reports show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from treedot._pages.printable import printable
from treedot.clones.differences import Difference, difference
from treedot.clones.groups import DuplicateGroup
from treedot.clones.places import PLACE
from treedot.errors import ParameterError
from treedot.languages import LANGUAGES
from treedot.trees import Forest

MAX_LINES = 1000  # lines of a member to compare and show
MAX_WIDTH = 2000  # characters of a line to show: a whole file may be one line
TITLE_NAMES = 3  # names in the title of a group

Sources = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Member:
    """One copy: its place, and its lines without common indentation, if they can be read.

    ``is_new`` says whether it is new or changed, in a report of new near-duplicates.
    """

    file: str
    start: int
    end: int
    name: str
    language: str
    lines: tuple[str, ...]
    is_new: bool = False

    @property
    def place(self) -> str:
        """The file with the first and the last line."""
        return f"{printable(self.file)}:{self.start}-{self.end}"


class Also(NamedTuple):
    """A near-duplicate of a member that is in no group with it."""

    of: int  # the index of the member
    member: Member
    similarity: float


@dataclass(frozen=True)
class Finding:
    """A group with its members and their differences.

    Attributes
    ----------
    rank : int
        The position of the group in the report, from 1.
    group : DuplicateGroup
        The group.
    members : tuple of Member
        The copies, new ones first.
    other : int
        The index of the member to compare with the first: the one with the most lines that the first lacks. A
        new member is compared with an old one, if there is one.
    difference : Difference or None
        The differences of these two; None if the source of one cannot be read.
    is_block : bool
        Whether the members are blocks of statements; their names are those of the functions around them.
    also : tuple of Also
        Near-duplicates of members that are in no group with them.
    """

    rank: int
    group: DuplicateGroup
    members: tuple[Member, ...]
    other: int
    difference: Difference | None
    is_block: bool = False
    also: tuple[Also, ...] = ()

    @property
    def rule(self) -> str:
        """The name of the group's kind in formats for programs: its band, or ``block``."""
        return "block" if self.is_block else self.group.band

    @property
    def title(self) -> str:
        """The distinct names of the members, or the files of members without names."""
        names = list(dict.fromkeys(printable(member.name or member.file) for member in self.members))
        more = ["…"] if len(names) > TITLE_NAMES else []
        return " ~ ".join(names[:TITLE_NAMES] + more)

    @property
    def facts(self) -> str:
        """The band, the similarity, the sizes and the score of the group, in words."""
        group = self.group
        shape = ", shape only" if group.is_shape_only else ""
        order = ", in another order" if group.similarity == 1 and group.band == "near" else ""
        block = "block, " if self.is_block else ""
        return (
            f"{block}{group.band}{shape}, similarity {rounded_down(group.similarity)}{order}, "
            f"{len(self.members)} copies, {group.nodes} nodes, score {group.score:.0f}"
        )

    @property
    def changes(self) -> str:
        """The difference of the two compared members in words; empty if it is not known."""
        if self.difference is None:
            return ""
        has_names = self.group.agreement is not None  # so that identical means equal names, too
        if self.group.band == "identical" and has_names and self.difference.different:
            return "only layout or comments differ"
        return str(self.difference)


def rounded_down(similarity: float) -> str:
    """Return a similarity with two decimals, which are 1.00 only for 1."""
    return f"{math.floor(similarity * 100 + 1e-9) / 100:.2f}"


def findings(
    forest: Forest,
    groups: Iterable[DuplicateGroup],
    sources: Sources,
    first_rank: int = 1,
    *,
    are_blocks: bool = False,
) -> list[Finding]:
    """Return groups with their members; every file is read once."""
    groups = list(groups)
    if not groups:  # a forest without trees may lack the columns
        return []
    lacking = [name for name in PLACE if name not in forest.columns]
    if lacking:
        raise ParameterError(
            f"a report needs the places of the trees, but there is no column {lacking[0]!r}: "
            "read the trees from source code, or add the column"
        )
    shown = {i for group in groups for i in (*group.members, *(partner.tree for partner in group.also))}
    members = _members(forest, sorted(shown), sources)
    found = [_finding(rank, group, members) for rank, group in enumerate(groups, first_rank)]
    return [replace(finding, is_block=True) for finding in found] if are_blocks else found


def _finding(rank: int, group: DuplicateGroup, every: dict[int, Member]) -> Finding:
    new = set(group.new)
    ordered = sorted(group.members, key=lambda i: i not in new)
    members = tuple(replace(every[i], is_new=i in new) for i in ordered)
    also = tuple(Also(ordered.index(of), every[tree], value) for of, tree, value in group.also)
    first = Counter(members[0].lines)

    def lacks(k: int) -> tuple[bool, int]:
        """Return whether member k is old, and how many of its lines the first member lacks."""
        return not members[k].is_new, (Counter(members[k].lines) - first).total()

    other = max(range(1, len(members)), key=lacks) if len(members) > 2 else 1
    pair = members[0].lines, members[other].lines
    found = difference(*pair, LANGUAGES.get(members[0].language)) if all(pair) else None
    return Finding(rank, group, members, other, found, also=also)


def _members(forest: Forest, numbers: Sequence[int], sources: Sources) -> dict[int, Member]:
    files, starts, ends = (forest.columns[name] for name in PLACE)
    names, languages = (forest.columns.get(name) for name in ("name", "language"))
    by_file: dict[str, list[int]] = {}
    for i in numbers:
        by_file.setdefault(files[i], []).append(i)
    found = {}
    for file, inside in by_file.items():
        lines = sources(file)
        for i in inside:
            start, end = int(starts[i]), int(ends[i])
            found[i] = Member(
                file,
                start,
                end,
                str(names[i] or "") if names is not None else "",
                str(languages[i] or "") if languages is not None else "",
                _dedented(lines[start - 1 : min(end, start - 1 + MAX_LINES)]),
            )
    return found


def _dedented(lines: Sequence[str]) -> tuple[str, ...]:
    """Remove common indentation and trailing blanks from lines, and cut long lines."""
    cut = (line if len(line) <= MAX_WIDTH else line[:MAX_WIDTH] + "…" for line in lines)
    expanded = [line.expandtabs(4).rstrip() for line in cut]
    indent = min((len(line) - len(line.lstrip()) for line in expanded if line), default=0)
    return tuple(line[indent:] for line in expanded)
