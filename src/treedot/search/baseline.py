"""Groups of duplicates that are known already, in a file, so that only new ones need attention."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot.array_types import Array
from treedot.errors import SourceError
from treedot.files import read_plain, write_whole
from treedot.search.duplicate_groups import DuplicateGroup
from treedot.trees import Forest

VERSION = 1
ANEW = "write it anew with --write-baseline"


class Member(NamedTuple):
    """A tree of a group: where it was, and what it is, wherever it may be."""

    file: str
    name: str
    content: str


def write_baseline(path: Path, forest: Forest, groups: Sequence[DuplicateGroup]) -> None:
    """Write down groups as known."""
    known = sorted(sorted(_members(forest, group)) for group in groups)
    text = json.dumps(
        {"treedot_baseline": VERSION, "groups": [[m._asdict() for m in members] for members in known]},
        ensure_ascii=False,
        indent=1,
    )
    with write_whole(path) as aside:
        aside.write_text(text + "\n", encoding="utf-8")


def read_baseline(path: Path) -> list[list[Member]]:
    """Return the known groups of a file that ``write_baseline`` wrote."""
    if not path.exists():
        raise SourceError(f"there is no file {path}: --write-baseline {path} makes a baseline")
    content = read_plain(path)
    try:
        found = json.loads(content.decode("utf-8"))
        if found.get("treedot_baseline") != VERSION:
            raise SourceError(f"{path} is no baseline of version {VERSION}: {ANEW}")
        groups = [[Member(**member) for member in members] for members in found["groups"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SourceError(f"{path} is no baseline: {ANEW}") from error
    if not all(isinstance(text, str) for members in groups for member in members for text in member):
        raise SourceError(f"{path} is no baseline: {ANEW}")
    return groups


def new_groups(
    forest: Forest, groups: Sequence[DuplicateGroup], known: Sequence[Sequence[Member]]
) -> Iterator[DuplicateGroup]:
    """Yield the groups that are not known: their members are not all members of one known group.

    A member is known by its place, its file and name, so that it may be edited; or by its content, so that it
    may be moved, renamed or reformatted. Each known member stands for one, so a further copy is new.
    """
    by_place: dict[tuple[str, str], set[int]] = {}
    by_content: dict[str, set[int]] = {}
    for number, members in enumerate(known):
        for member in members:
            by_place.setdefault(member[:2], set()).add(number)
            by_content.setdefault(member.content, set()).add(number)
    for group in groups:
        members = list(_members(forest, group))
        candidates = set().union(
            *(by_place.get(m[:2], set()) | by_content.get(m.content, set()) for m in members)
        )
        if not any(_are_all_in(members, known[number]) for number in sorted(candidates)):
            yield group


def _are_all_in(members: Sequence[Member], known: Sequence[Member]) -> bool:
    """Tell whether each member is one of the known ones, each of which stands for one."""
    changed = list((Counter(members) - Counter(known)).elements())
    left = list((Counter(known) - Counter(members)).elements())
    if not changed or len(changed) > len(left):
        return not changed
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    may_be = _equal([m[:2] for m in changed], [m[:2] for m in left])
    may_be |= _equal([m.content for m in changed], [m.content for m in left])
    partner = maximum_bipartite_matching(csr_matrix(may_be), perm_type="column")
    return bool((partner >= 0).all())


def _equal(a: Sequence[object], b: Sequence[object]) -> Array:
    """Tell of every two things of two lists whether they are equal."""
    number: dict[object, int] = {}
    x, y = ([number.setdefault(thing, len(number)) for thing in things] for things in (a, b))
    return np.equal.outer(x, y)


def _members(forest: Forest, group: DuplicateGroup) -> Iterator[Member]:
    for i in group.members:
        yield Member(forest.columns["file"][i], forest.columns["name"][i], content_key(forest, i))


def content_key(forest: Forest, i: int) -> str:
    """Return a name for a tree with its names and literals, the same in every process and place."""
    nodes = slice(forest.offsets[i], forest.offsets[i + 1])
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(forest.arity[nodes], "<i4").tobytes())
    digest.update("\0".join(forest.labels[k] for k in forest.label[nodes]).encode())
    blurred: Any = forest.columns["blurred"][i] if "blurred" in forest.columns else ()
    digest.update(np.asarray(blurred, "<i8").tobytes())
    return digest.hexdigest()[:16]
