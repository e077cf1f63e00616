"""Collect the places, source lines and differences that all reports show of a group."""

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

MAX_LINES = 1000  # of a member that are compared and shown
MAX_WIDTH = 2000  # characters of a line: a record may be one line
TITLE_NAMES = 3  # different names of members in a group's title

Sources = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Member:
    """One copy: where it stands, and its lines without their common indentation, where they can be read."""

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
    """A group with its members.

    Attributes
    ----------
    rank : int
        From 1 on.
    group : DuplicateGroup
    members : tuple of Member
    other : int
        The member, by its place among them, that is compared with the first: the one with the most lines that
        the first has not.
    difference : Difference or None
        What differs between these two; None where the source of one cannot be read.
    """

    rank: int
    group: DuplicateGroup
    members: tuple[Member, ...]
    other: int
    difference: Difference | None

    @property
    def title(self) -> str:
        """The names of the members, each once; their files where they have no names."""
        names = list(dict.fromkeys(printable(member.name or member.file) for member in self.members))
        more = ["…"] if len(names) > TITLE_NAMES else []
        return " ~ ".join(names[:TITLE_NAMES] + more)

    @property
    def facts(self) -> str:
        """What the group is, in figures."""
        group = self.group
        shape = ", shape alone" if group.is_shape_only else ""
        return (
            f"{group.band}{shape}, similarity {group.similarity:.2f}, {len(self.members)} copies, "
            f"{group.nodes} nodes, score {group.score:.0f}"
        )


def findings(forest: Forest, groups: Iterable[DuplicateGroup], sources: Sources) -> list[Finding]:
    """Return groups with their members; every file is read once."""
    groups = list(groups)
    if not groups:  # then there may be no trees, whose columns no one knows
        return []
    lacking = [name for name in ("file", "start", "end") if name not in forest.columns]
    if lacking:
        raise ParameterError(
            f"a report needs to know where the trees stand: there is no column {lacking[0]!r}, "
            "which readers of source code give"
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
    """Return lines without the indentation that all have, without blanks at their ends, long ones cut."""
    cut = (line if len(line) <= MAX_WIDTH else line[:MAX_WIDTH] + "…" for line in lines)
    expanded = [line.expandtabs(4).rstrip() for line in cut]
    indent = min((len(line) - len(line.lstrip()) for line in expanded if line), default=0)
    return tuple(line[indent:] for line in expanded)
