"""Trees as sparse vectors of their fragments: of all, or of those that a kernel machine weighs most."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from treedot.errors import ParameterError, SourceError
from treedot.fragments.index import FragmentIndex
from treedot.fragments.mining import BEAM, mine
from treedot.kernels import SubsetTreeKernel
from treedot.kernels.base import MAX_PAIRS
from treedot.learn.base import TreeTransformer
from treedot.learn.svm import machines
from treedot.parameters import checked_integer, checked_positive, checked_share
from treedot.readers import read_trees
from treedot.trees import Forest, Tree


class _FragmentSpace(TreeTransformer):
    """What a space of known fragments offers once ``fit`` has made its ``index_``."""

    decay: float
    normalize: bool
    index_: FragmentIndex

    @property
    def fragments_(self) -> list[Tree]:
        """The fragment of every column."""
        return self.index_.trees()

    def transform(self, X: Any) -> Any:
        """Return one sparse row per tree; fragments that the space does not hold are ignored."""
        check_is_fitted(self)
        trees = read_trees(X)
        return self._weighed(self.index_.count(trees), trees)

    def _weighed(self, counts: Any, trees: Forest) -> Any:
        """Turn counts into values: times √λ^(p-1), over √K(a, a) where normalised."""
        counts.data *= self.index_.weights(self.decay)[counts.indices]
        if self.normalize:
            counts.data /= np.repeat(SubsetTreeKernel(self.decay).norms(trees), np.diff(counts.indptr))
        return counts

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the fragments as bracket text."""
        check_is_fitted(self)
        return np.array([str(fragment) for fragment in self.fragments_], dtype=object)


class MinedFragmentVectorizer(_FragmentSpace):
    """The fragments that weigh most in an exact kernel machine (Pighin & Moschitti 2010, "FTK+FS").

    ``fit`` trains a support vector machine with ``SubsetTreeKernel``, one class against the rest. Its
    gradient gives every fragment j the weight ``w_j = Σ αᵢ yᵢ x_ij``, where ``x_ij`` is the fragment's
    value in support vector i. The ``n_fragments`` with the largest ``|w_j|`` in any of the problems are
    found by growing fragments from single productions, and become the columns; a linear model behind
    completes the method.

    Parameters
    ----------
    n_fragments : int
        How many fragments to keep, if there are so many.
    decay : float
        λ in [0, 1].
    normalize : bool
        Learn with the normalised kernel, and divide every row by √K(a, a).
    C : float
        The machine's cost of errors.
    threshold : float
        Leave out fragments that weigh less than this share of the heaviest, from 0 to 1.
    max_expansions : int, optional
        How many productions a fragment may have beyond its first; None for any number.
    beam : int
        How many fragments of one size are grown further at most, which bounds time and memory. Where
        it leaves some out that might lead to heavier ones, the search is greedy, and ``exact_`` False.
    max_pairs : int
        See ``SubsetTreeKernel``.

    Attributes
    ----------
    fragments_ : list of Tree
        The fragment of every column, heaviest first.
    weights_ : array of shape (problems, columns)
        w_j in every problem: one for each of ``classes_``, or a single one for the second of two.
    exact_ : bool
        Whether these are certainly the heaviest fragments of up to ``max_expansions`` + 1 productions.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> from treedot import MinedFragmentVectorizer
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
    >>> model = make_pipeline(MinedFragmentVectorizer(n_fragments=3), LinearSVC())
    >>> print(*model.fit(trees, ["S", "S", "T", "T"]).predict(["(T (A e) (C e))"]))
    T
    >>> sorted(model[0].get_feature_names_out())
    ['(C b)', '(S A B)', '(T A C)']
    """

    def __init__(
        self,
        n_fragments: int = 5000,
        decay: float = 0.4,
        normalize: bool = True,
        C: float = 1.0,
        threshold: float = 0.0,
        max_expansions: int | None = None,
        beam: int = BEAM,
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        self.n_fragments = n_fragments
        self.decay = decay
        self.normalize = normalize
        self.C = C
        self.threshold = threshold
        self.max_expansions = max_expansions
        self.beam = beam
        self.max_pairs = max_pairs

    def fit(self, X: Any, y: Any) -> MinedFragmentVectorizer:
        """Train the machine and keep its heaviest fragments."""
        settings = self._mining_settings()
        kernel = SubsetTreeKernel(self.decay, self.normalize, max_pairs=self.max_pairs)
        trees = read_trees(X)
        self.classes_, problems = _problems(y, len(trees))
        gradient = _dual_coefficients(kernel.gram(trees), problems, checked_positive("C", self.C))
        support = np.flatnonzero(gradient.any(axis=1))
        trees, gradient = trees[support], gradient[support]
        if self.normalize:
            norms = kernel.norms(trees)
            gradient = np.divide(
                gradient, norms[:, None], out=np.zeros_like(gradient), where=norms[:, None] > 0
            )
        self.index_, self.weights_, self.exact_ = mine(trees, gradient, kernel.decay, **settings)
        _check_found(self.index_)
        return self

    def _mining_settings(self) -> dict[str, Any]:
        expansions = self.max_expansions
        return {
            "n_fragments": checked_integer("n_fragments", self.n_fragments, at_least=1),
            "threshold": checked_share("threshold", self.threshold),
            "max_expansions": None
            if expansions is None
            else checked_integer("max_expansions", expansions, 0),
            "beam": checked_integer("beam", self.beam, at_least=1),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _problems(y: Any, n_trees: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, and for each problem which trees are on its positive side."""
    if y is None:
        raise ParameterError(
            "MinedFragmentVectorizer learns which fragments matter: give y, the class of each tree"
        )
    classes, number = np.unique(np.asarray(y), return_inverse=True)
    if number.shape != (n_trees,):
        raise ParameterError(
            f"y must hold one class for each of the {n_trees} trees, not shape {number.shape}"
        )
    if classes.size < 2:
        raise ParameterError(f"y must hold at least two classes, not {classes.size}")
    sides = number == np.arange(classes.size)[:, None]
    return classes, sides[1:] if classes.size == 2 else sides


def _dual_coefficients(gram: np.ndarray, problems: np.ndarray, C: float) -> np.ndarray:
    """Return αᵢ yᵢ for all trees (rows) and problems (columns)."""
    result = np.zeros(problems.T.shape)
    for k, machine in enumerate(machines(gram, problems, C, n_jobs=None)):
        result[machine.support_, k] = machine.dual_coef_[0]
    return result


def _check_found(index: FragmentIndex) -> None:
    if not index.sizes.size:
        raise SourceError("there is no fragment in these trees: each is a single node")
