"""``Forest``: many trees in two integer columns, labels and numbers of children, in post-order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from treedot._pages.printable import first_few
from treedot._runtime.array_types import Array, IntArray
from treedot._runtime.ragged import places_of
from treedot.errors import LimitError, ParameterError, SourceError
from treedot.trees import node_columns
from treedot.trees.brackets import check_text
from treedot.trees.columns import Columns, joined_columns, listed
from treedot.trees.tree import Tree

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")

MAX_NODES = 2**31 - 1


class Forest:
    """Many trees as the post-order sequence of their nodes, like reverse Polish notation.

    ``(A (B W1) (C (D W2) (E W3)))`` is stored as::

        labels  W1 B W2 D W3 E C A
        arity    0 1  0 1  0 1 2 2

    Parameters
    ----------
    label : array of int
        For every node of every tree, in post-order, the index of its label in ``labels``.
    arity : array of int
        For every node, its number of children.
    offsets : array of int
        Tree ``i`` consists of the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    labels : sequence of str
        The label texts without duplicates; any text that UTF-8 can encode.
    columns : mapping of str to sequence, default=None
        Further values for each tree (class, text, file, …), one per tree.

    Examples
    --------
    >>> forest = Forest.from_trees([Tree.parse("(A (B b) c)"), Tree.parse("(A c)")])
    >>> len(forest), forest.n_nodes, forest.labels
    (2, 6, ('b', 'B', 'c', 'A'))
    >>> forest[0]
    Tree.parse('(A (B b) c)')
    >>> forest[1:] == Forest.from_trees([Tree.parse("(A c)")])
    True
    """

    __slots__ = ("_derived", "arity", "columns", "label", "labels", "offsets")

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        label: npt.ArrayLike,
        arity: npt.ArrayLike,
        offsets: npt.ArrayLike,
        labels: Sequence[str],
        columns: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.offsets: IntArray = _frozen(offsets, np.int64)
        _check_size(self.offsets[-1] if self.offsets.size else 0)
        self.label: IntArray = _frozen(label, np.int32)
        self.arity: IntArray = _frozen(arity, np.int32)
        self.labels: tuple[str, ...] = tuple(labels)
        self.columns: dict[str, Sequence[Any]] = Columns(columns or {})
        self._derived: dict[Callable[[Forest], Any], Any] = {}
        self._check()

    def _check(self) -> None:
        sizes = np.diff(self.offsets)
        if self.offsets.size == 0 or self.offsets[0] != 0 or (sizes < 1).any():
            raise SourceError("offsets must start with 0 and increase by at least one node per tree")
        if not self.label.size == self.arity.size == self.offsets[-1]:
            raise SourceError(
                f"{self.label.size} labels, {self.arity.size} arities and a last offset of "
                f"{self.offsets[-1]} do not describe the same nodes"
            )
        if not all(isinstance(text, str) for text in self.labels):
            raise SourceError("labels must be strings")
        check_text("".join(self.labels))
        if len(set(self.labels)) != len(self.labels):
            raise SourceError("labels contains a text twice: list every text once")
        if self.label.size and not 0 <= self.label.min() <= self.label.max() < len(self.labels):
            raise SourceError(f"a label index lies outside the {len(self.labels)} label texts")
        # The stack of reverse Polish notation is never empty after a node, and one higher after each tree.
        height = np.cumsum(1 - self.arity.astype(np.int64))
        tree = self.tree_of_node
        bad = (height - tree < 1) | (self.arity < 0)
        bad[self.roots] |= height[self.roots] != np.arange(1, len(self) + 1)
        if bad.any():
            raise SourceError(f"the arities of tree {tree[bad.argmax()]} do not form one tree")
        self._check_columns()

    def _check_columns(self) -> None:
        for name, values in self.columns.items():
            if len(values) != len(self):
                raise SourceError(f"column {name!r} has {len(values)} values for {len(self)} trees")

    @classmethod
    def _trusted(
        cls,
        label: IntArray,
        arity: IntArray,
        offsets: IntArray,
        labels: tuple[str, ...],
        derived: dict[Callable[[Forest], Any], Any] | None = None,
    ) -> Forest:
        """Return a forest of arrays that are known to be valid, without checks.

        The forest takes ownership of the arrays; ``derived`` holds results already computed from them.
        """
        forest = cls.__new__(cls)
        for array in (label, arity, offsets):
            array.setflags(write=False)
        forest.label, forest.arity, forest.offsets, forest.labels = label, arity, offsets, labels
        forest.columns = Columns()
        forest._derived = {} if derived is None else derived
        return forest

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], columns: Mapping[str, Sequence[Any]] | None = None) -> Forest:
        """Pack trees.

        Parameters
        ----------
        trees : iterable of Tree
            The trees.
        columns : mapping of str to sequence, default=None
            Further values for each tree, one per tree.

        Returns
        -------
        Forest
            The trees, in order.
        """
        index: dict[str, int] = {}
        label: list[int] = []
        arity: list[int] = []
        offsets = [0]
        for tree in trees:
            backwards = []
            waiting = [tree]
            while waiting:
                node = waiting.pop()
                backwards.append(node)
                waiting.extend(node.children)
            for node in reversed(backwards):
                label.append(index.setdefault(node.label, len(index)))
                arity.append(len(node.children))
            offsets.append(len(label))
        _check_size(len(label))
        forest = cls._trusted(
            np.array(label, np.int32), np.array(arity, np.int32), np.array(offsets, np.int64), tuple(index)
        )
        forest.columns.update(columns or {})
        forest._check_columns()
        return forest

    @classmethod
    def from_tree(cls, tree: Tree) -> Forest:
        """Pack one tree. The tree caches the forest and everything derived from it.

        Parameters
        ----------
        tree : Tree
            The tree.

        Returns
        -------
        Forest
            A forest of one tree.
        """
        kept = getattr(tree, "_forest", None)
        if kept is None:
            kept = cls.from_trees([tree])
            object.__setattr__(tree, "_forest", kept)
        return cls._trusted(kept.label, kept.arity, kept.offsets, kept.labels, kept._derived)

    @classmethod
    def concat(cls, forests: Iterable[Forest]) -> Forest:
        """Return one forest with the trees of several.

        Parameters
        ----------
        forests : iterable of Forest
            The forests.

        Returns
        -------
        Forest
            All trees, in order. A column that a forest lacks holds None for its trees.
        """
        parts = listed(forests)
        if len(parts) == 1:
            return parts[0]
        index: dict[str, int] = {}
        moved = [np.zeros(0, np.int32)]
        offsets = [np.zeros(1, np.int64)]
        nodes = 0
        for part in parts:
            moves = np.array([index.setdefault(text, len(index)) for text in part.labels], np.int32)
            moved.append(moves[part.label] if part.label.size else part.label)
            offsets.append(part.offsets[1:] + nodes)
            nodes += part.n_nodes
        _check_size(nodes)
        forest = cls._trusted(
            np.concatenate(moved),
            np.concatenate([np.zeros(0, np.int32), *(part.arity for part in parts)]),
            np.concatenate(offsets),
            tuple(index),
        )
        forest.columns.update(joined_columns(parts))
        return forest

    @property
    def n_nodes(self) -> int:
        """The number of nodes of all trees."""
        return int(self.label.size)

    @property
    def sizes(self) -> IntArray:
        """The number of nodes of each tree."""
        return np.diff(self.offsets)

    @property
    def shape(self) -> tuple[int]:
        """``(len(forest),)``, so that scikit-learn can split a Forest like an array."""
        return (len(self),)

    @property
    def tree_of_node(self) -> IntArray:
        """The index of the tree that every node belongs to."""
        return tree_of_node(self.offsets)

    @property
    def roots(self) -> IntArray:
        """The node index of every tree's root, which is its last node."""
        return self.offsets[1:] - 1

    @property
    def parent(self) -> IntArray:
        """The node index of every node's parent; -1 for roots."""
        return self.derived(node_columns.parents)

    @property
    def children(self) -> tuple[IntArray, IntArray]:
        """``(start, child)``: node ``i`` has the children ``child[start[i]:start[i + 1]]``."""
        return self.derived(node_columns.children)

    @property
    def subtree_size(self) -> IntArray:
        """The number of nodes in every node's subtree."""
        return self.derived(node_columns.subtree_sizes)

    @property
    def depth(self) -> IntArray:
        """The number of nodes on the path from the root to every node, both included."""
        return self.derived(node_columns.depths)

    @property
    def production(self) -> IntArray:
        """A number for every node's production, its label and its children's labels; -1 for leaves."""
        return self.derived(node_columns.productions)[0]

    @property
    def distinct_productions(self) -> IntArray:
        """For every distinct production, in the order of its number, the first node that has it."""
        return self.derived(node_columns.productions)[1]

    @property
    def subtree(self) -> IntArray:
        """A number for every node's subtree, the same for equal subtrees; children before parents."""
        return self.derived(node_columns.subtrees)[0]

    @property
    def distinct_subtrees(self) -> IntArray:
        """For every distinct subtree, in the order of its number, the first node that is its root."""
        return self.derived(node_columns.subtrees)[1]

    @property
    def root_subtree(self) -> IntArray:
        """A number for every tree, the same for equal trees."""
        return self.subtree[self.roots]

    @property
    def n_productions(self) -> int:
        """The number of distinct productions."""
        return int(self.distinct_productions.size)

    def derived(self, compute: Callable[[Forest], T]) -> T:
        """Return ``compute(self)``; it is computed once and cached in the forest.

        The cache lives as long as the forest, so results should be linear in the number of nodes. They are
        not pickled with the forest.

        Parameters
        ----------
        compute : callable
            A function of the forest, defined at module level: it is the key of the cache.

        Returns
        -------
        object
            The result of ``compute``.
        """
        if compute not in self._derived:
            self._derived[compute] = compute(self)
        value: T = self._derived[compute]
        return value

    def to_arrow(self) -> pa.Table:
        """Return the trees and their columns as an Arrow table, one row per tree.

        Returns
        -------
        pyarrow.Table
            The columns ``__treedot_label__: list<string>``, the labels in post-order, and
            ``__treedot_arity__: list<int32>``, the numbers of children; then ``columns`` under their names.

        Raises
        ------
        ParameterError
            If the name of a column begins with ``__treedot_``.
        SourceError
            If Arrow has no type for the values of a column.
        """
        from treedot.trees.arrow import to_arrow

        return to_arrow(self)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Forest:
        """Return the forest that ``to_arrow`` turned into a table.

        Parameters
        ----------
        table : pyarrow.Table
            A table of ``to_arrow``, or of version 1 of the format, which had columns ``label`` and ``arity``.

        Returns
        -------
        Forest
            The trees; the other columns of the table are its ``columns``.

        Raises
        ------
        SourceError
            If the table lacks these columns, is damaged, or has an unknown version.
        """
        from treedot.trees.arrow import from_arrow

        return from_arrow(table)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trees and their columns to a Parquet or Arrow file.

        Parameters
        ----------
        path : path-like
            The file to write: ``.parquet``, or Arrow IPC (``.arrow``, ``.feather``).

        Raises
        ------
        ParameterError
            If the suffix is none of these, or the name of a column begins with ``__treedot_``.
        SourceError
            If the file cannot be written, or Arrow has no type for the values of a column.
        """
        from treedot.trees.arrow import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Forest:
        """Read a file that ``save`` wrote.

        Parameters
        ----------
        path : path-like
            A ``.parquet``, ``.arrow`` or ``.feather`` file, in the current format or in version 1.

        Returns
        -------
        Forest
            The trees with their columns.

        Raises
        ------
        ParameterError
            If the suffix is none of these.
        SourceError
            If the file cannot be read, or is not a packed forest.
        """
        from treedot.trees.arrow import load

        return load(path)

    def write_brackets(self, path: str | os.PathLike[str]) -> None:
        """Write the trees in brackets, one per line and without the columns.

        ``read_trees`` reads the same trees back, whatever their labels are.

        Parameters
        ----------
        path : path-like
            The file to write: ``.mrg``, ``.txt`` or ``.brackets``.
        """
        from treedot.trees.writers import BRACKETS, forest_file

        if Path(path).suffix.lower() not in BRACKETS:
            raise ParameterError(f"cannot write brackets to {path}: use the suffix .mrg, .txt or .brackets")
        with forest_file(path) as writer:
            writer.write(self)

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    def __iter__(self) -> Iterator[Tree]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, which: int) -> Tree: ...
    @overload
    def __getitem__(self, which: slice | npt.ArrayLike) -> Forest: ...
    def __getitem__(self, which: Any) -> Tree | Forest:
        if isinstance(which, str):
            raise ParameterError(
                f"a Forest is indexed by tree numbers, not by {which!r}: "
                f"use forest.columns[{which!r}] for a column"
            )
        if isinstance(which, (int, np.integer)):
            return self._unpack(range(len(self))[which])
        return self._select(np.arange(len(self))[which])

    def _unpack(self, i: int) -> Tree:
        stack: list[Tree] = []
        for node in range(self.offsets[i], self.offsets[i + 1]):
            cut = len(stack) - int(self.arity[node])
            stack[cut:] = [Tree(self.labels[self.label[node]], stack[cut:])]
        return stack[0]

    def _select(self, trees: IntArray) -> Forest:
        nodes, offsets = places_of(self.offsets[trees], self.sizes[trees])
        _check_size(nodes.size)
        used, label = np.unique(self.label[nodes], return_inverse=True)
        texts = tuple(self.labels[k] for k in used)
        forest = Forest._trusted(label.astype(np.int32), self.arity[nodes], offsets, texts)
        forest.columns.update({name: [values[i] for i in trees] for name, values in self.columns.items()})
        return forest

    def __add__(self, other: Forest) -> Forest:
        return Forest.concat([self, other])

    def __eq__(self, other: object) -> bool:
        """Return whether both hold the same trees in the same order; columns are ignored."""
        if not isinstance(other, Forest):
            return NotImplemented
        return (
            np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.arity, other.arity)
            and bool((_texts(self) == _texts(other)).all())
        )

    def __repr__(self) -> str:
        kept = f", columns=[{first_few(self.columns)}]" if self.columns else ""
        return f"<Forest of {len(self)} trees, {self.n_nodes} nodes, {len(self.labels)} labels{kept}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Forest, (self.label, self.arity, self.offsets, self.labels, dict(self.columns))


def tree_of_node(offsets: IntArray) -> IntArray:
    """Return the tree number of every node, given the offsets of the trees."""
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets))


def used_labels(label: IntArray, labels: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Drop unused label texts; return the renumbered labels of the nodes and the remaining texts."""
    used = np.bincount(label, minlength=len(labels)) > 0
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return number[label], tuple(itertools.compress(labels, used))


def _check_size(nodes: int) -> None:
    if nodes > MAX_NODES:
        raise LimitError(f"a Forest holds at most {MAX_NODES} nodes, not {nodes}: use iter_trees")


def _frozen(values: npt.ArrayLike, dtype: npt.DTypeLike) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise SourceError(f"the arrays of a Forest must have one dimension, not {array.ndim}")
    if array.size and (array.dtype.kind not in "iu" or not _fits(array, np.dtype(dtype))):
        raise SourceError(f"the arrays of a Forest must hold integers that fit {np.dtype(dtype).name}")
    array = array.astype(dtype)
    array.setflags(write=False)
    return array


def _fits(array: Array, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= array.min() and array.max() <= limits.max)


def _texts(forest: Forest) -> Array:
    return np.array([*forest.labels, None], dtype=object)[forest.label]
