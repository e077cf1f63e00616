"""The subset tree kernel over nodes with selected labels: fewer comparisons, and a different kernel.

Rieck, Krueger, Brefeld & Müller (*Approximate tree kernels*, 2010) call it an approximate tree kernel.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from paper.rivals.production_sums import own_production_sums, production_sums
from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.ragged import ends_of
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.errors import ParameterError, RangeError
from treedot.kernels.subset import gram, pairwise
from treedot.kernels.subset.kernel import SubsetTreeKernel
from treedot.kernels.tree_kernel import MAX_PAIRS, joined, read_sides
from treedot.trees import Forest
from treedot.trees.derived import intern_nodes
from treedot.trees.nodes import Nodes


class LabelSelectionKernel(gram.FragmentKernel):
    """Counts the tree fragments that two trees share, expanding only nodes with selected labels.

    With the selection ω of labels, ``Δ(n1, n2) = ∏ (1 + λ Δ(children))`` for nodes with equal productions
    whose label is selected, else 0, in the sum as in the recursion. So an unselected node is a leaf to
    its parent, whose production still names it, and the nodes below it are compared on their own. With
    all labels selected this is ``SubsetTreeKernel``. Whatever is selected, it is a kernel: it counts the
    shared fragments whose inner nodes all have selected labels.

    ``LabelSelectionTransformer`` learns a selection.

    Parameters
    ----------
    labels : collection of str
        The selected labels. Those of leaves make no difference.
    decay, normalize, max_pairs
        See ``TreeKernel``. K(a, a) and K(b, b), which normalise, are over selected labels as well.

    Examples
    --------
    >>> a, b = "(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN bird)) (VP sings))"
    >>> LabelSelectionKernel(["NP", "DT"], decay=0.5)(a, b)
    2.5
    >>> LabelSelectionKernel(["S", "NP", "VP", "DT", "NN"], decay=0.5)(a, b)
    4.25
    """

    def __init__(
        self,
        labels: Collection[str],
        *,
        decay: float = 0.4,
        normalize: bool = False,
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        super().__init__(decay, normalize=normalize, max_pairs=max_pairs)
        texts = isinstance(labels, Collection) and not isinstance(labels, str)
        if not (texts and all(isinstance(label, str) for label in labels)):
            raise ParameterError(f"labels must be a collection of strings, not {labels!r}")
        self.labels = frozenset(labels)

    def work(self, X: Any, Y: Any = None) -> int:
        """Return how many entries of Δ are computed for ``gram(X, Y)``, normalisation aside.

        They are pairs of distinct subtrees with the same production, of trees that are cut below nodes
        whose label is not selected; without Y each pair is counted once.
        """
        x, y = read_sides(X, Y)
        columns = None if y is None else (len(x), len(x) + len(y))
        return sum(tile.work for tile in self._tiles(self._nodes(joined(x, y)), (0, len(x)), columns))

    def _nodes(self, forest: Forest) -> Nodes:
        return _CutNodes(forest, self.labels)

    def _whole(self, forest: Forest, nodes: Nodes) -> gram.SharedDelta:
        return gram.SharedDelta(nodes, (0, len(forest)))

    def _raw_pairs(
        self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads = ONE_THREAD
    ) -> FloatArray:
        nodes = self._nodes(x)
        return self._fast_pairs(nodes, pairwise.trees_of(nodes), rows, columns, threads)

    def _log_pair(self, x: Forest, y: Forest) -> float:
        return float(self._only_tile(self._nodes(x + y), 0, 1).log_sum(self.decay))


class _CutNodes(Nodes):
    """The nodes of a forest, where nodes whose labels are not selected are cut down to leaves.

    A node that is cut stays in its parent's production but matches nothing itself. The nodes below it stay
    in the tree, detached.
    """

    def __init__(self, forest: Forest, labels: Collection[str]) -> None:
        super().__init__(forest)
        kept = np.array([text in labels for text in forest.labels], bool)[forest.label]
        self.production = np.where(kept, self.production, np.int32(-1))
        self.child = self.child[np.repeat(kept, forest.arity)]
        self.start = ends_of(np.where(kept, forest.arity, 0))
        self._subtrees = intern_nodes(forest.label, self.start, self.child, True)

    @property
    def subtrees(self) -> tuple[IntArray, IntArray]:
        return self._subtrees


def label_counts(forest: Forest) -> IntArray:
    """Return for every label of a forest the number of nodes with children that bear it."""
    return np.bincount(forest.label[forest.arity > 0], minlength=len(forest.labels))


def label_alignment(
    forest: Forest, weights: FloatArray, decay: float, normalize: bool = False, max_pairs: int = MAX_PAIRS,
    threads: Threads = ONE_THREAD,
) -> FloatArray:  # fmt: skip
    """Return for every label s of a forest Σ ⟨weights[i], weights[j]⟩ K_s(i, j) over trees i ≠ j.

    K_s is the part of the exact kernel (all labels selected) that pairs of nodes labelled s contribute.
    No Gram matrix is formed: the Δ of every pair of distinct subtrees is weighted by the trees that hold
    them, and the pairs i = j are taken off tree by tree.
    """
    nodes, kernel = Nodes(forest), SubsetTreeKernel(decay, max_pairs=max_pairs)
    if normalize:
        own = kernel._raw_diagonal(forest, threads)
        weights = over_norms(weights, np.sqrt(own))
    total: FloatArray = np.zeros(nodes.n_productions)
    for tile in kernel._tiles(nodes, (0, len(forest)), None, kernel._whole(forest, nodes)):
        total += production_sums(tile, decay, weights, threads) * (1 if tile.symmetric else 2)
    own = own_production_sums(nodes, (weights**2).sum(axis=1), decay, max_pairs)
    total, own = _by_label(forest, total), _by_label(forest, own)
    if not np.isfinite(total).all():
        raise RangeError(
            f"the kernels of these trees are too large for a float with decay={decay}: use a smaller decay"
        )
    others = total - own
    others[np.abs(others) <= 1e-12 * own] = 0.0  # of labels that no two trees share, rounding is left
    return others


def over_norms(values: FloatArray, norms: FloatArray) -> FloatArray:
    """Divide what each tree counts for (a row of values) by its norm; a tree without fragments counts 0."""
    column = norms[:, None]
    return np.divide(values, column, out=np.zeros_like(values), where=column > 0)


def _by_label(forest: Forest, of_production: FloatArray) -> FloatArray:
    """Return for every label the sum over the productions whose root bears it."""
    inner = forest.production >= 0
    label = np.zeros(forest.n_productions, np.int32)
    label[forest.production[inner]] = forest.label[inner]
    sums = np.zeros(len(forest.labels))
    np.add.at(sums, label, of_production)
    return sums
