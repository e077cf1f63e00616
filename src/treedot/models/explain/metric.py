"""Explain the learned similarity of two trees, fragment by fragment and node by node."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from treedot._pages.printable import printable
from treedot._runtime.array_types import FloatArray, IntArray
from treedot.errors import ParameterError
from treedot.models.explain.shares import node_shares
from treedot.models.explain.tree_values import SHAPLEY, FragmentShare, TreeValues
from treedot.parameters import checked_integer
from treedot.readers import read_tree
from treedot.trees import Forest
from treedot.vectors.metric.metric import Metric
from treedot.vectors.metric.triangle import dense_product
from treedot.vectors.sparse.fitted_rows import FittedRows
from treedot.vectors.sparse.occurrences import Occurrences, fragment_at


class MetricExplanation(NamedTuple):
    """The parts of the learned similarity of two trees; the result of ``explain_metric``.

    Attributes
    ----------
    value : float
        The learned similarity. It is the sum of ``a.contribution`` and ``mean_a``, and also of
        ``b.contribution`` and ``mean_b``.
    a, b : TreeValues
        The Shapley values of the nodes of one tree, with the other tree and both lengths fixed.
    mean_a, mean_b : float
        What subtracting the mean of the training rows from the tree's row adds.
    fragments_a, fragments_b : list of FragmentShare
        The fragments of one tree that add or take away most.
    """

    value: float
    a: TreeValues
    b: TreeValues
    mean_a: float
    mean_b: float
    fragments_a: list[FragmentShare]
    fragments_b: list[FragmentShare]

    def __str__(self) -> str:
        lines = [f"learned similarity {self.value:+.3f}"]
        for name in "ab":
            values, mean = getattr(self, name), getattr(self, f"mean_{name}")
            lines += ["", f"{name}: fragments {values.contribution:+.3f}, mean {mean:+.3f}"]
            shares = getattr(self, f"fragments_{name}")
            lines += [f"  {share.value:+.3f}  {printable(str(share.fragment))}" for share in shares]
        return "\n".join(lines)


def explain_metric(metric: Metric, a: Any, b: Any, *, n_fragments: int = 10) -> MetricExplanation:
    """Explain the learned similarity of two trees.

    With the other tree fixed, and the lengths of rows and vectors, the learned similarity is a linear
    function of a tree's row. So it is a sum over the fragments of the tree, minus a constant for the mean. A
    fragment that only one of the trees has counts, too, if training has seen it vary with fragments of the
    other. A node gets an equal share of every occurrence that it is part of, its Shapley value.

    Parameters
    ----------
    metric : Metric
        A metric that was learned from trees.
    a, b : bracket text, Tree, nested lists, or a Forest of one tree
        The trees.
    n_fragments : int, default=10
        The number of fragments to list for each tree.

    Returns
    -------
    MetricExplanation
        The parts of the learned similarity.

    Raises
    ------
    ParameterError
        If the metric was learned from rows, or with a rest.

    See Also
    --------
    explain_pair : Explain the kernel of two trees.

    Examples
    --------
    >>> from treedot.models import TreeMetric, explain
    >>> trees = [f"(S (NP (N {who})) (VP (V {what})))" for what in ("runs", "eats") for who in "abcd"]
    >>> metric = TreeMetric(n_columns=512, shrinkage=1.0).fit(trees, ["run"] * 4 + ["eat"] * 4).metric_
    >>> found = explain.explain_metric(metric, trees[0], trees[1], n_fragments=2)
    >>> print(*(share.fragment for share in found.fragments_a), sep="; ")
    (V runs); (VP (V runs))
    """
    if not isinstance(metric, Metric):
        raise ParameterError(f"metric must be a Metric, not {type(metric).__name__}")
    if metric.rows is None or metric.rows.spec.rest is not None:
        raise ParameterError("only metrics that were learned from trees, without a rest, can be explained")
    n_fragments = checked_integer("n_fragments", n_fragments, at_least=0)
    x, y = (_Side.of(metric, metric.rows, read_tree(tree)) for tree in (a, b))
    (ours, mean_a, shown_a), (theirs, mean_b, shown_b) = (
        side.explained(other, n_fragments) for side, other in ((x, y), (y, x))
    )
    return MetricExplanation(float(x.vector @ y.vector), ours, theirs, mean_a, mean_b, shown_a, shown_b)


class _Side(NamedTuple):
    """One tree: its fragments, the weights of its columns, its lengths and its vector, in float64."""

    metric: Metric
    forest: Forest
    found: Occurrences
    held: IntArray  # the fragments that have a column
    place: IntArray  # their hashed columns
    scaled: FloatArray  # what each adds to its hashed column, in a row of length 1
    length: float  # of the vector before it is scaled
    vector: FloatArray

    @classmethod
    def of(cls, metric: Metric, rows: FittedRows, forest: Forest) -> Self:
        found = rows.encoder().occurrences(forest, None)
        held = np.flatnonzero(found.column >= 0)
        place, sign = metric.folding.places(found.column[held])
        row = np.zeros(metric.folding.n_columns)
        np.add.at(row, place, sign * found.value[held])
        of_row = float(np.linalg.norm(row)) or 1.0
        vector = dense_product((row / of_row - metric.mean)[None], metric.tiles, np.float64)[0]
        length = float(np.linalg.norm(vector)) or 1.0
        return cls(
            metric, forest, found, held, place, sign * found.value[held] / of_row, length, vector / length
        )

    def explained(self, other: Self, wanted: int) -> tuple[TreeValues, float, list[FragmentShare]]:
        """Return the values of the nodes, the part of the mean, and the strongest fragments."""
        form = self.metric.linear_forms(other.vector[None])[0][0]
        values = np.zeros(self.found.value.size)
        values[self.held] = self.scaled * form[self.place] / self.length
        mean = -float(form @ self.metric.mean) / self.length
        nodes = node_shares(self.found, values, self.forest.n_nodes)
        shown = [self._share(values, k) for k in np.argsort(-np.abs(values), kind="stable")[:wanted].tolist()]
        return TreeValues(None, self.forest[0], nodes, SHAPLEY, float(values.sum())), mean, shown

    def _share(self, values: FloatArray, fragment: int) -> FragmentShare:
        nodes = self.found.nodes_of(fragment)
        return FragmentShare(fragment_at(self.forest, nodes[0]), float(values[fragment]), nodes)
