"""Extract functions, classes or the whole file from the syntax tree of a source file."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit
from treedot._runtime.ragged import places_of
from treedot.readers.code.settings import CodeSettings
from treedot.trees import Forest
from treedot.trees.forest import used_labels

IGNORE = re.compile(rb"treedot:[ \t]*ignore\b")
MAX_NESTING = 20  # deeper nested definitions are not units: each is part of all enclosing ones
COMMENTS = (b"#", b"//", b"/*")
MAX_DECORATORS = 20  # most lines between a comment and its definition


class Definition(NamedTuple):
    """A function or a class: its position in the syntax tree and in the file."""

    node: int
    unit: str
    name: str  # qualified: Class.method
    start: int  # line numbers from 1, inclusive
    end: int


class SyntaxTree(NamedTuple):
    """The nodes of a file in pre-order."""

    label: IntArray  # indices into labels
    depth: IntArray
    labels: tuple[str, ...]
    definitions: list[Definition]  # in the order of their nodes
    blurred_node: IntArray  # leaves whose text was blurred
    blurred_hash: IntArray  # hashes of their texts
    errors: IntArray  # nodes where the source does not follow the grammar


def cut_units(
    tree: SyntaxTree, source: bytes, file: str, language: str, settings: CodeSettings
) -> tuple[Forest, int]:
    """Return the units of a file with their columns, and the number of units that comments ignore."""
    order, size, arity = post_order(tree.depth)
    lines = source.count(b"\n") + (not source.endswith(b"\n"))
    whole = Definition(0, "file", "", 1, max(1, lines))
    everything = [whole, *tree.definitions]
    ignored = _ignored(everything, source, size)
    wanted = [d for d in everything if d.unit == settings.unit and size[d.node] >= settings.min_nodes]
    kept = [d for d in wanted if d.node not in ignored]
    node = np.array([d.node for d in kept], np.int64)
    forest = _cut_out(order, size, arity, tree, node)
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
    return forest, len(wanted) - len(kept)


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


def _cut_out(order: IntArray, size: IntArray, arity: IntArray, tree: SyntaxTree, node: IntArray) -> Forest:
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
