"""Trees as parsers meet them, node by node, packed into Forests."""

from __future__ import annotations

from array import array

import numpy as np

from treedot.errors import SourceError
from treedot.trees import Forest

MAX_TEXT = 1 << 24  # characters of a label


class Numbers(dict[str, int]):
    """A number for every label of a file, in the order in which they are first asked for."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def __missing__(self, label: str) -> int:
        if len(label) > MAX_TEXT:
            length = f"a text of {len(label):,} characters, where a label has at most {MAX_TEXT:,}"
            raise SourceError(f"{self._file}: {length}: blur or drop such texts")
        number = self[label] = len(self)
        return number


class Packer:
    """Takes nodes in the order of the source: a node begins, is filled and ends, a leaf comes whole.

    Parameters
    ----------
    file, language : str
        What stands in the columns of these names.
    named : bool
        Whether a tree's name is its number in the file, from 0; else it is empty.
    """

    def __init__(self, file: str, language: str, named: bool) -> None:
        self._file, self._language, self._named = file, language, named
        self._number = Numbers(self._file)
        self._label, self._arity = array("i"), array("i")
        self._ends = [0]
        self._lines: list[tuple[int, int]] = []  # of each tree, the first and the last
        self._open: list[int] = []  # the labels of the nodes that are open
        self._children = [0]  # how many the nodes that are open have so far, after the trees themselves
        self._taken = 0  # how many trees were taken

    def __len__(self) -> int:
        """Return how many trees are finished."""
        return len(self._lines)

    @property
    def n_roots(self) -> int:
        """The number of nodes outside of all others since the last tree was finished."""
        return self._children[0]

    @property
    def depth(self) -> int:
        """The number of nodes that are open."""
        return len(self._open)

    def leaf(self, label: str) -> None:
        """Add a node without children."""
        self._children[-1] += 1
        self._label.append(self._number[label])
        self._arity.append(0)

    def begin(self, label: str) -> None:
        """Begin a node."""
        self._children[-1] += 1
        self._open.append(self._number[label])
        self._children.append(0)

    def finish(self) -> None:
        """End the node that was begun last."""
        self._label.append(self._open.pop())
        self._arity.append(self._children.pop())

    def add(self, kind: str, text: str, policy: str) -> None:
        """Add a node of some kind with its text below it ("keep"), without ("blur"), or nothing ("drop")."""
        if policy == "keep":
            self.begin(kind)
            self.leaf(text)
            self.finish()
        elif policy == "blur":
            self.leaf(kind)

    def finish_tree(self, start: int, end: int) -> None:
        """Note that all nodes since the last tree are one, which stands in the lines ``start`` to ``end``."""
        self._ends.append(len(self._label))
        self._lines.append((start, end))
        self._children[0] = 0

    def forget_unfinished(self) -> None:
        """Drop the nodes of a tree that is not finished, and never will be."""
        nodes = self._ends[-1]
        del self._label[nodes:], self._arity[nodes:]
        self._open, self._children = [], [0]

    def take(self) -> Forest:
        """Return the finished trees, and forget them."""
        nodes, count = self._ends[-1], len(self)
        texts = tuple(self._number)
        used, label = np.unique(np.array(self._label[:nodes], np.int32), return_inverse=True)
        forest = Forest._trusted(
            label.astype(np.int32),
            np.array(self._arity[:nodes], np.int32),
            np.array(self._ends, np.int64),
            tuple(texts[k] for k in used),
        )
        forest.columns.update(
            file=[self._file] * count,
            start=[start for start, _ in self._lines],
            end=[end for _, end in self._lines],
            name=[str(self._taken + k) if self._named else "" for k in range(count)],
            language=[self._language] * count,
        )
        self._ends, self._lines = [0], []
        self._taken += count
        del self._arity[:nodes]
        self._number = Numbers(self._file)  # the labels of a tree that is not finished are numbered anew
        self._label = array("i", [self._number[texts[k]] for k in self._label[nodes:]])
        self._open = [self._number[texts[k]] for k in self._open]
        return forest
