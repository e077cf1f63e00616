"""Collect the places, source lines and differences of groups, which all reports show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from treedot._pages.printable import printable
from treedot.clones.differences import Difference, difference
from treedot.clones.groups import DuplicateGroup
from treedot.errors import ParameterError
from treedot.languages import LANGUAGES
from treedot.trees import Forest

MAX_LINES = 1000  # lines of a member to compare and show
MAX_WIDTH = 2000  # characters of a line to show: a whole file may be one line
TITLE_NAMES = 3  # names in the title of a group

Sources = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Member:
    """One copy: its place, and its lines without common indentation, if they can be read."""

    file: str
    start: int
    end: int
    name: str
    language: str
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        """The file with the first and the last line."""
        return f"{printable(self.file)}:{self.start}-{self.end}"


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
        The copies.
    other : int
        The index of the member to compare with the first: the one with the most lines that the first lacks.
    difference : Difference or None
        The differences of these two; None if the source of one cannot be read.
    """

    rank: int
    group: DuplicateGroup
    members: tuple[Member, ...]
    other: int
    difference: Difference | None

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
        return (
            f"{group.band}{shape}, similarity {group.similarity:.2f}, {len(self.members)} copies, "
            f"{group.nodes} nodes, score {group.score:.0f}"
        )


def findings(forest: Forest, groups: Iterable[DuplicateGroup], sources: Sources) -> list[Finding]:
    """Return groups with their members; every file is read once."""
    groups = list(groups)
    if not groups:  # a forest without trees may lack the columns
        return []
    lacking = [name for name in ("file", "start", "end") if name not in forest.columns]
    if lacking:
        raise ParameterError(
            f"a report needs the places of the trees, but there is no column {lacking[0]!r}: "
            "read the trees from source code, or add the column"
        )
    members = _members(forest, sorted({i for group in groups for i in group.members}), sources)
    return [
        _finding(rank, group, tuple(members[i] for i in group.members))
        for rank, group in enumerate(groups, 1)
    ]


def _finding(rank: int, group: DuplicateGroup, members: tuple[Member, ...]) -> Finding:
    first = Counter(members[0].lines)
    other = max(range(1, len(members)), key=lambda k: (Counter(members[k].lines) - first).total())
    pair = members[0].lines, members[other].lines
    known = LANGUAGES.get(members[0].language)
    found = difference(*pair, known.keywords if known else ()) if all(pair) else None
    return Finding(rank, group, members, other, found)


def _members(forest: Forest, numbers: Sequence[int], sources: Sources) -> dict[int, Member]:
    files, starts, ends = (forest.columns[name] for name in ("file", "start", "end"))
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
