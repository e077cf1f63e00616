"""Which labels are worth comparing is learned: label selection inside scikit-learn pipelines."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.optimize import linprog

from paper.rivals.label_selection import LabelSelectionKernel, label_alignment, label_counts
from treedot._runtime.threads import open_threads
from treedot.errors import ParameterError
from treedot.kernels.tree_kernel import MAX_PAIRS
from treedot.models.training.one_vs_rest import one_vs_rest
from treedot.parameters import checked_flag, checked_integer
from treedot.readers import read_trees
from treedot.trees import Forest
from treedot.vectors.transformers import KernelMatrixTransformer

SLACK = 1e-12  # by which a sum of rounded costs may exceed the share


class LabelSelectionTransformer(KernelMatrixTransformer):
    """Turns trees into rows of a kernel matrix over selected labels, which are learned: fewer comparisons.

    After Rieck, Krueger, Brefeld & Müller (2010), "approximate tree kernels". Comparing two trees, a kernel
    looks at the pairs of inner nodes with the same label; ``fit`` selects the labels that are worth it, by a
    linear program in the weights ω of the labels: between 0 and 1, with the expected number of compared
    pairs within the given share of all, and

    - with classes y, the largest ``Σ y_i y_j K_ω(i, j)`` over training trees i ≠ j, where y is ±1 (several
      classes are coded one against the rest, and summed up);
    - without, the largest ``Σ K_ω(i, j)``: as little of the kernel is lost as possible.

    To be linear, the program takes the part that each label has in the *exact* kernel (normalised, with
    ``normalize``). Its solution is rounded: labels of weight 1, then those that the share has room for,
    the most valuable for their cost first. It is worse than the best selection by less than what one
    label contributes.

    Parameters
    ----------
    comparisons : float
        The share of the full kernel's expected comparisons that may be spent, above 0 and up to 1.
    decay, normalize, max_pairs
        The kernel's parameters.
    center : bool
        Take the mean off every coding of the classes. Without, as published: then trees of two small
        classes agree, being both of neither of the others, and the classes have little say.
    max_trees : int, optional
        Learn from a sample of so many trees, where all would take too long.
    random_state : int
        The seed of the sample.
    n_jobs : int, optional
        Threads; -1 for all cores.

    Attributes
    ----------
    labels_ : tuple of str
        The selected labels.
    kernel_ : LabelSelectionKernel
        The kernel over these labels.
    trees_ : Forest
        The training trees.
    weights_ : dict of str to float
        The weight of every label of an inner node, before rounding.
    speedup_ : float
        q_ω, the expected number of comparisons of two training trees over that with the selected labels.

    Examples
    --------
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(S (A d) (B b))", "(S (A d) (B c))"]
    >>> model = LabelSelectionTransformer(comparisons=0.4).fit(trees, ["a", "a", "d", "d"])
    >>> model.labels_, model.speedup_
    (('A',), 3.0)
    >>> model.transform(["(T (A a) (B b))"])
    array([[1., 1., 0., 0.]])
    """

    def __init__(
        self,
        *,
        comparisons: float = 0.5,
        decay: float = 0.4,
        normalize: bool = True,
        center: bool = True,
        max_trees: int | None = None,
        random_state: int = 0,
        max_pairs: int = MAX_PAIRS,
        n_jobs: int | None = None,
    ) -> None:
        self.comparisons = comparisons
        self.decay = decay
        self.normalize = normalize
        self.center = center
        self.max_trees = max_trees
        self.random_state = random_state
        self.max_pairs = max_pairs
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select labels, and keep the training trees."""
        share = _checked_share(self.comparisons)
        forest = read_trees(X)
        value, count = self._values(forest, y), label_counts(forest)
        inner = np.flatnonzero(count)
        value, cost = value[inner], count[inner].astype(float) ** 2
        cost /= cost.sum()
        weight = _relaxed(value, cost, share)
        chosen = _rounded(weight, value, cost, share)
        self.labels_ = tuple(forest.labels[k] for k in inner[chosen])
        self.weights_ = {forest.labels[k]: float(w) for k, w in zip(inner, weight, strict=True)}
        self.speedup_ = float(1.0 / cost[chosen].sum()) if inner.size else 1.0
        self.kernel_ = self._kernel(self.labels_)
        self.trees_ = forest
        return self

    def _kernel(self, labels: tuple[str, ...]) -> LabelSelectionKernel:
        return LabelSelectionKernel(
            labels, decay=self.decay, normalize=self.normalize, max_pairs=self.max_pairs
        )

    def _values(self, forest: Forest, y: Any) -> np.ndarray:
        """Return what selecting each label of the forest is worth."""
        kernel = self._kernel(())
        codes = _codes(y, len(forest), checked_flag("center", self.center))
        trees, sample = forest, np.arange(len(forest))
        if self.max_trees is not None and checked_integer("max_trees", self.max_trees, 2) < len(forest):
            rng = np.random.default_rng(checked_integer("random_state", self.random_state, 0))
            sample = np.sort(rng.choice(len(forest), self.max_trees, replace=False))
            trees = forest[sample]

        def aligned(codes: np.ndarray) -> np.ndarray:
            with open_threads(self.n_jobs) as threads:
                found = label_alignment(
                    trees, codes[sample], kernel.decay, kernel.normalize, kernel.max_pairs, threads
                )
            index = {text: k for k, text in enumerate(trees.labels)}
            return np.array([found[index[text]] if text in index else 0.0 for text in forest.labels])

        if y is not None:
            values = aligned(codes)
            if values.max(initial=0) > 0 or values.min(initial=0) == 0:
                return values
            warnings.warn(
                "no label agrees with the classes: labels are selected for the kernel alone, as without y",
                stacklevel=3,
            )
        weights: np.ndarray = np.maximum(aligned(_codes(None, len(forest), False)), 0.0)
        return weights


def _checked_share(comparisons: Any) -> float:
    if isinstance(comparisons, (int, float, np.integer, np.floating)) and 0 < comparisons <= 1:
        return float(comparisons)
    raise ParameterError(
        f"comparisons must be a share of all comparisons, above 0 and up to 1, not {comparisons!r}"
    )


def _codes(y: Any, n_trees: int, center: bool) -> np.ndarray:
    """Return ±1 for every tree (rows) and problem (columns), one class against the rest."""
    if y is None:
        return np.ones((n_trees, 1))
    classes, sides = one_vs_rest(y, n_trees, at_least=1)
    codes = np.where(sides.T, 1.0, -1.0)
    return codes - codes.mean(axis=0) if center and classes.size > 1 else codes


def _relaxed(value: np.ndarray, cost: np.ndarray, share: float) -> np.ndarray:
    """Return the weights in [0, 1] of the largest value whose cost is within the share."""
    largest = np.abs(value).max(initial=0)
    if largest == 0:
        return np.zeros(value.size)
    solved = linprog(-value / largest, A_ub=cost[None, :], b_ub=[share], bounds=(0, 1), method="highs")
    shares: np.ndarray = np.clip(solved.x, 0.0, 1.0)
    return shares


def _rounded(weight: np.ndarray, value: np.ndarray, cost: np.ndarray, share: float) -> np.ndarray:
    """Return which labels are selected: by weight, then by value for cost, while the share lasts.

    Labels that are worth nothing are taken last; labels that do harm are not.
    """
    useful = value >= 0
    whole = weight > 1 - 1e-9
    chosen = np.zeros(value.size, bool)
    spent = 0.0
    for k in np.lexsort((cost, -value / cost, ~whole)):
        if useful[k] and spent + cost[k] <= share + SLACK:
            chosen[k] = True
            spent += cost[k]
    if value.size and not chosen.any():
        raise ParameterError(
            f"comparisons={share} has no room for any label: the least that has is {cost[useful].min():.3g}"
        )
    return chosen
