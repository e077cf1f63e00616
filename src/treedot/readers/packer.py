"""Pack the nodes of a parser, in the order of the source or in post-order, into Forests."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot._runtime.jit import njit_borrowing
from treedot.errors import SourceError
from treedot.readers.stream import TreeStream
from treedot.trees import Forest
from treedot.trees.forest import used_labels

MAX_TEXT = 1 << 24  # characters of a label
END = -1  # the event that ends a node


class Numbers(dict[str, int]):
    """Numbers for the labels of a file, in the order of their first use."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def __missing__(self, label: str) -> int:
        if len(label) > MAX_TEXT:
            length = f"a text of {len(label):,} characters; a label has at most {MAX_TEXT:,}"
            raise SourceError(f"{self._file}: {length}: blur or drop such texts")
        number = self[label] = len(self)
        return number


class Packer:
    """Packs nodes in the order of the source: a node begins, gets its children and ends; a leaf is one event.

    Events are stored as numbers; compiled code sorts them into post-order when trees are taken.

    Parameters
    ----------
    file, language : str
        The values of the columns ``file`` and ``language``.
    named : bool
        Whether the column ``name`` has the number of the tree in the file, from 0; otherwise it is empty.
    """

    def __init__(self, file: str, language: str, named: bool) -> None:
        self._file, self._language, self._named = file, language, named
        self._number = Numbers(self._file)
        self._events = array("i")  # 2 label for the start of a node, 2 label + 1 for a leaf, or END
        self._ends = [0]  # where finished trees end among the events
        self._lines: list[tuple[int, int]] = []  # first and last line of each tree
        self._counted = self._depth = 0  # the number of events, and of nodes open after them
        self._taken = 0  # the number of trees taken so far

    def __len__(self) -> int:
        """Return the number of finished trees."""
        return len(self._lines)

    @property
    def depth(self) -> int:
        """The number of open nodes."""
        new = np.array(self._events[self._counted :], np.int32)
        self._counted += new.size
        self._depth += int(np.count_nonzero((new & 1) == 0)) - int(np.count_nonzero(new == END))
        return self._depth

    def leaf(self, label: str) -> None:
        """Add a node without children."""
        self._events.append(2 * self._number[label] + 1)

    def begin(self, label: str) -> None:
        """Begin a node."""
        self._events.append(2 * self._number[label])

    def finish(self) -> None:
        """End the most recently begun node."""
        self._events.append(END)

    def add(self, kind: str, text: str, policy: str) -> None:
        """Add a node of a kind with its text below it ("keep"), without it ("blur"), or nothing ("drop")."""
        if policy == "keep":
            self.begin(kind)
            self.leaf(text)
            self.finish()
        elif policy == "blur":
            self.leaf(kind)

    def finish_tree(self, start: int, end: int) -> None:
        """Make the nodes since the last tree a tree, at the lines ``start`` to ``end``."""
        self._ends.append(len(self._events))
        self._lines.append((start, end))

    def forget_unfinished(self) -> None:
        """Drop the nodes since the last complete tree."""
        del self._events[self._ends[-1] :]
        self._counted = self._depth = 0

    def take(self) -> Forest:
        """Return the finished trees, and drop them."""
        events, count = np.array(self._events[: self._ends[-1]], np.int32), len(self)
        label, arity, offsets = _in_post_order(events, np.array(self._ends, np.int64))
        texts = tuple(self._number)
        label, labels = used_labels(label, texts)
        forest = Forest._trusted(label, arity, offsets, labels)
        forest.columns.update(
            file=[self._file] * count,
            start=[start for start, _ in self._lines],
            end=[end for _, end in self._lines],
            name=[str(self._taken + k) if self._named else "" for k in range(count)],
            language=[self._language] * count,
        )
        self._taken += count
        self._forget(events.size, texts)
        return forest

    def _forget(self, n_events: int, texts: tuple[str, ...]) -> None:
        """Drop events; renumber the labels of an unfinished tree."""
        self._ends, self._lines = [0], []
        self._counted = self._depth = 0
        self._number.clear()
        del self._events[:n_events]  # in place, since parsers append to it
        for k, event in enumerate(self._events):
            if event != END:
                self._events[k] = 2 * self._number[texts[event >> 1]] + (event & 1)


class PostOrder(NamedTuple):
    """A tree in post-order: labels, arities, lines, and other columns."""

    labels: list[str]
    arity: list[int]
    start: int
    end: int
    columns: Mapping[str, Any] = {}


def pack_post_order(stream: TreeStream, trees: Iterable[PostOrder]) -> Iterator[Forest]:
    """Yield forests of the trees of a file, with the columns file, start and end, and those of the trees.

    All trees of a file must have the same columns. Numbers are stored in compact arrays as they arrive.
    """
    rest = iter(trees)
    for first in rest:
        number = Numbers(stream.name)
        label, arity, offsets = array("i"), array("i"), array("q", [0])
        columns: dict[str, list[Any]] = {name: [] for name in ("file", "start", "end", *first.columns)}
        for tree in itertools.chain([first], itertools.islice(rest, stream.batch_size - 1)):
            label.extend(map(number.__getitem__, tree.labels))
            arity.extend(tree.arity)
            offsets.append(len(label))
            place = (stream.name, tree.start, tree.end, *tree.columns.values())
            for values, value in zip(columns.values(), place, strict=True):
                values.append(value)
        arrays = np.array(label, np.int32), np.array(arity, np.int32), np.array(offsets, np.int64)
        forest = Forest._trusted(*arrays, tuple(number))
        forest.columns.update(columns)
        yield forest


def _in_post_order(events: IntArray, ends: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the labels, arities and offsets of the trees that end at the given events."""
    n_begun = int(np.count_nonzero((events & 1) == 0))
    n_nodes = events.size - n_begun
    label, arity = np.empty(n_nodes, np.int32), np.zeros(n_nodes, np.int32)
    offsets = np.zeros(ends.size, np.int64)
    above, children = np.zeros((2, n_begun + 2), np.int32)
    _put_in_post_order(events, ends, above, children, label, arity, offsets)
    return label, arity, offsets


@njit_borrowing
def _put_in_post_order(
    events: IntArray,
    ends: IntArray,
    above: IntArray,  # the labels of open nodes
    children: IntArray,  # their numbers of children
    label: IntArray,
    arity: IntArray,
    offsets: IntArray,
) -> None:
    node = depth = 0
    for tree in range(1, ends.size):
        for k in range(ends[tree - 1], ends[tree]):
            event = events[k]
            if event & 1 == 0:
                above[depth] = event >> 1
                depth += 1
                children[depth] = 0
                continue
            if event == END:
                label[node], arity[node] = above[depth - 1], children[depth]
                depth -= 1
            else:
                label[node] = event >> 1
            children[depth] += 1
            node += 1
        offsets[tree] = node
