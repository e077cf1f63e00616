"""Extract functions, classes or the whole file from the syntax tree of a source file."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit
from treedot._runtime.ragged import places_of
from treedot.readers.code.settings import CodeSettings
from treedot.readers.folders import IGNORED_UNIT, STUB
from treedot.trees import Forest
from treedot.trees.forest import used_labels

IGNORE = re.compile(rb"treedot:[ \t]*ignore\b")
MAX_NESTING = 20  # deeper nested definitions are not units: each is part of all enclosing ones
_NUMBER = re.compile(r"~\d+$")
COMMENTS = (b"#", b"//", b"/*")
MAX_DECORATORS = 20  # most lines between a comment and its definition


NO_NODES = np.zeros(0, np.int64)


class Definition(NamedTuple):
    """A function or a class: its position in the syntax tree and in the file."""

    node: int
    unit: str
    name: str  # qualified: Class.method
    start: int  # line numbers from 1, inclusive
    end: int
    min_nodes: int = 1  # smaller ones are not units; counted with blurred names and literals
    n_dropped: int = 0  # names and literals that are not nodes of the tree
    is_stub: bool = False


class SyntaxTree(NamedTuple):
    """The nodes of a file in pre-order."""

    label: IntArray  # indices into labels
    depth: IntArray
    labels: tuple[str, ...]
    definitions: list[Definition]  # in the order of their nodes
    blurred_node: IntArray  # leaves whose text was blurred
    blurred_hash: IntArray  # hashes of their texts
    errors: IntArray  # nodes where the source does not follow the grammar
    statements: IntArray  # rows of a node, its first and its last line
    texts: IntArray = NO_NODES  # leaves that are the text of a name or a literal


def cut_units(
    tree: SyntaxTree, source: bytes, file: str, language: str, settings: CodeSettings
) -> tuple[Forest, dict[str, int]]:
    """Return the units of a file with their columns, and the numbers of units left out, by reason."""
    order, size, arity = post_order(tree.depth)
    lines = source.count(b"\n") + (not source.endswith(b"\n"))
    whole = Definition(0, "file", "", 1, max(1, lines))
    everything = [whole, *tree.definitions]
    ignored = _ignored(everything, source, size)
    of_kind = [d for d in everything if d.unit == settings.unit and _is_large(d, tree, int(size[d.node]))]
    named = zip(of_kind, unique_names([d.name for d in of_kind]), strict=True)
    wanted = [d._replace(name=name) for d, name in named if size[d.node] >= settings.min_nodes]
    kept = [d for d in wanted if d.node not in ignored and (settings.stubs or not d.is_stub)]
    n_ignored = sum(d.node in ignored for d in wanted)
    left_out = {IGNORED_UNIT: n_ignored, STUB: len(wanted) - len(kept) - n_ignored}
    with_file = settings.statements and 0 not in ignored and size[0] >= settings.min_nodes
    if with_file and settings.unit != "file":
        kept.append(whole)
    node = np.array([d.node for d in kept], np.int64)
    forest = cut_out(order, size, arity, tree, node)
    forest.columns.update(
        file=[file] * len(kept),
        start=[d.start for d in kept],
        end=[d.end for d in kept],
        name=[d.name for d in kept],
        language=[language] * len(kept),
        errors=_counts(tree.errors, node, size),
    )
    if settings.blurred:
        first = np.searchsorted(tree.blurred_node, node)
        last = np.searchsorted(tree.blurred_node, node + size[node])
        forest.columns["blurred"] = [tree.blurred_hash[a:b].copy() for a, b in zip(first, last, strict=True)]
    if with_file:
        rows = _statements(tree, order, size, ignored)
        forest.columns["statements"] = [*[None] * (len(kept) - 1), rows]
    return forest, {reason: count for reason, count in left_out.items() if count}


def _statements(tree: SyntaxTree, order: IntArray, size: IntArray, ignored: set[int]) -> IntArray:
    """Return the statements of a file outside ignored definitions: the rows of the column."""
    node, start, end = tree.statements.T
    left_out = np.zeros(len(size) + 1, np.int64)  # how many ignored definitions begin, less those that end
    for i in ignored:
        left_out[i] += 1
        left_out[i + size[i]] -= 1
    kept = np.cumsum(left_out)[node] == 0
    node = node[kept]
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first, last = (np.searchsorted(tree.blurred_node, place) for place in (node, node + size[node]))
    return np.column_stack((rank[node], start[kept], end[kept], first, last))


def _is_large(definition: Definition, tree: SyntaxTree, size: int) -> bool:
    """Return whether a definition is large enough to be a unit, however names and literals are treated."""
    if definition.min_nodes == 1:
        return True
    n_texts = np.diff(np.searchsorted(tree.texts, [definition.node, definition.node + size]))[0]
    return size - n_texts + definition.n_dropped >= definition.min_nodes


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names that identify the units of a file: the second unit of a name is ``name~2``."""
    given, times, found = set(names), Counter[str](), []
    for name in names:
        times[name] += 1
        unique = name if times[name] == 1 else f"{name}~{times[name]}"
        while unique != name and unique in given:
            times[name] += 1
            unique = f"{name}~{times[name]}"
        found.append(unique)
    return found


def name_in_source(name: str) -> str:
    """Return the name of a unit without the number that makes it unique in its file."""
    return _NUMBER.sub("", name)


def _counts(places: IntArray, node: IntArray, size: IntArray) -> list[int]:
    """Return the number of ``places`` within the subtree of each node."""
    counts = np.searchsorted(places, node + size[node]) - np.searchsorted(places, node)
    return [int(count) for count in counts]


@njit
def post_order(depth: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the post-order of nodes in pre-order, and their sizes and arities.

    The first result lists the nodes' pre-order numbers in post-order.
    """
    n = depth.size
    size, arity = np.ones(n, np.int64), np.zeros(n, np.int32)
    order = np.empty(n, np.int64)
    path = np.empty(n + 1, np.int64)  # the open node at each depth
    open_ = done = 0
    for i in range(n + 1):
        level = depth[i] if i < n else 0
        while open_ > level:
            open_ -= 1
            node = path[open_]
            size[node] = i - node
            order[done] = node
            done += 1
        if i < n:
            if level > 0:
                arity[path[level - 1]] += 1
            path[level] = i
            open_ = level + 1
    return order, size, arity


def cut_out(order: IntArray, size: IntArray, arity: IntArray, tree: SyntaxTree, node: IntArray) -> Forest:
    """Return the subtrees of some nodes; the first three arguments are those of ``post_order``."""
    # In post-order, descendants precede a node, and its ancestors, one per level, follow it.
    places, offsets = places_of(node - tree.depth[node], size[node])
    nodes = order[places]
    label, labels = used_labels(tree.label[nodes], tree.labels)
    return Forest._trusted(label, arity[nodes], offsets, labels)


def _ignored(definitions: list[Definition], source: bytes, size: IntArray) -> set[int]:
    """Return the nodes of definitions that a comment ignores, including nested ones.

    A comment applies to the definition that starts on its line or just after it, otherwise to the innermost
    enclosing one.
    """
    if b"treedot:" not in source:
        return set()
    begins = {d.start: d for d in reversed(definitions[1:])}
    lines = source.split(b"\n")
    around: list[Definition] = []
    roots: set[int] = set()
    seen = 0
    for number, line in enumerate(lines, 1):
        if not _says_ignore(line):
            continue
        while seen < len(definitions) and definitions[seen].start <= number:
            around.append(definitions[seen])
            seen += 1
        while around[-1].end < number and len(around) > 1:
            around.pop()
        after = number + 1
        while after - number < MAX_DECORATORS and lines[after - 1 : after] and _decorates(lines[after - 1]):
            after += 1
        roots.add((begins.get(number) or begins.get(after) or around[-1]).node)
    ignored: set[int] = set()
    end = 0
    for d in definitions:
        if d.node < end or d.node in roots:
            ignored.add(d.node)
            end = max(end, d.node + size[d.node])
    return ignored


def _says_ignore(line: bytes) -> bool:
    found = IGNORE.search(line)
    return found is not None and any(mark in line[: found.start()] for mark in COMMENTS)


def _decorates(line: bytes) -> bool:
    """Return whether a line is a decorator, an annotation or an attribute of the next definition."""
    return line.lstrip().startswith((b"@", b"[", b"#["))


def stable_hash(text: bytes) -> int:
    """Return a 64-bit hash of a text that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)
