"""``Overview``: how much is copied, in which files most, and between which folders."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

MAX_FOLDERS = 12
OWN = "*"  # after a folder: its own files, without those of its subfolders

Span = tuple[str, int, int]  # a file, its first and its last line


class FileShare(NamedTuple):
    """A file, and its numbers of copied lines, of all lines (0 if unknown) and of groups."""

    file: str
    copied: int
    lines: int
    groups: int


class Shared(NamedTuple):
    """How many groups two folders share, and how many lines the shortest copies of these groups have."""

    lines: int
    groups: int


@dataclass(frozen=True)
class Overview:
    """The extent of near-duplicates.

    Attributes
    ----------
    groups, blocks, members : int
        The number of groups, of those of blocks among them, and of distinct members.
    files : tuple of FileShare
        The files with members, those with most copied lines first.
    lines : int
        The number of lines that were searched; 0 if unknown.
    folders : tuple of str
        The folders with most copied lines, at most twelve, by name; with ``*`` at the end, only the files
        directly inside.
    more_folders : int
        The number of folders beside them that have members.
    shared : mapping of (int, int) to Shared
        What two folders have in common, by their numbers, smaller first; a folder with itself if two members
        are inside.
    """

    groups: int
    blocks: int
    members: int
    files: tuple[FileShare, ...]
    lines: int
    folders: tuple[str, ...]
    more_folders: int
    shared: Mapping[tuple[int, int], Shared]

    @property
    def copied(self) -> int:
        """The number of lines that are in copies."""
        return sum(file.copied for file in self.files)


def overview(groups: Sequence[Sequence[Span]], lines: Mapping[str, int], blocks: int = 0) -> Overview:
    """Return the extent of groups of places, the last ``blocks`` of which are of blocks.

    ``lines`` are the numbers of lines of files, if they are known.
    """
    spans = sorted({span for group in groups for span in group})
    copied = _copied(spans)
    times = Counter(file for group in groups for file in {span[0] for span in group})
    files = [FileShare(file, n, lines.get(file, 0), times[file]) for file, n in copied.items()]
    folders = _folders(copied)
    shown = dict(sorted(_heaviest(folders, copied)[:MAX_FOLDERS]))
    number = {file: k for k, inside in enumerate(shown.values()) for file in inside}
    return Overview(
        len(groups),
        blocks,
        len(spans),
        tuple(sorted(files, key=lambda file: (-file.copied, file.file))),
        sum(lines.values()),
        tuple(shown),
        len(folders) - len(shown),
        _shared(groups, number),
    )


def _copied(spans: Iterable[Span]) -> dict[str, int]:
    """Return the number of lines of each file that lie in one of the spans, which are sorted."""
    copied: dict[str, int] = {}
    reached: dict[str, int] = {}
    for file, start, end in spans:
        new = end - max(start - 1, reached.get(file, 0))
        copied[file] = copied.get(file, 0) + max(0, new)
        reached[file] = max(end, reached.get(file, 0))
    return copied


def _shared(groups: Iterable[Sequence[Span]], number: Mapping[str, int]) -> dict[tuple[int, int], Shared]:
    found: defaultdict[tuple[int, int], Shared] = defaultdict(lambda: Shared(0, 0))
    for group in groups:
        times = Counter(number[file] for file, _, _ in group if file in number)
        shortest = min((end - start + 1 for _, start, end in group), default=0)
        pairs = [*combinations(sorted(times), 2), *((k, k) for k, n in times.items() if n > 1)]
        for pair in pairs:
            lines, count = found[pair]
            found[pair] = Shared(lines + shortest, count + 1)
    return dict(sorted(found.items()))


def _folders(copied: Mapping[str, int]) -> dict[str, list[str]]:
    """Return folders with their files: the folder with most copied lines is divided while there is room."""
    folders = _divided("", sorted(copied))
    while True:
        for name, files in _heaviest(folders, copied):
            inside = {} if name.endswith(OWN) else _divided(name, files)
            if 1 < len(inside) <= MAX_FOLDERS + 1 - len(folders):
                del folders[name]
                folders |= inside
                break
        else:
            return folders


def _heaviest(
    folders: Mapping[str, Sequence[str]], copied: Mapping[str, int]
) -> list[tuple[str, Sequence[str]]]:
    """Return folders with their files, those with most copied lines first."""
    return sorted(folders.items(), key=lambda item: (-sum(copied[file] for file in item[1]), item[0]))


def _divided(folder: str, files: Sequence[str]) -> dict[str, list[str]]:
    """Return the folders directly inside one, with their files; a single one is entered."""
    inside: dict[str, list[str]] = {}
    for file in files:
        rest = file[len(folder) :]
        lead = "/" if rest.startswith("/") else ""
        first, slash, _ = rest[len(lead) :].partition("/")
        inside.setdefault(f"{folder}{lead}{first if slash else OWN}", []).append(file)
    if len(inside) == 1 and not next(iter(inside)).endswith(OWN):
        return _divided(*next(iter(inside.items())))
    return inside
