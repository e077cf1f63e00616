"""Sparse rows of the fragments that weigh most in a support vector machine with the exact kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from paper.rivals.fragment_counts import count_known
from paper.rivals.label_selection import over_norms
from paper.rivals.mining import BEAM, mine
from treedot.errors import ParameterError, SourceError
from treedot.kernels import SubsetTreeKernel
from treedot.kernels.tree_kernel import MAX_PAIRS
from treedot.models.training.one_vs_rest import one_vs_rest, train_svms
from treedot.parameters import checked_integer, checked_positive, checked_share
from treedot.readers import read_trees
from treedot.trees import Tree
from treedot.vectors.transformers import SparseTreeTransformer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class MinedFragmentVectorizer(SparseTreeTransformer):
    """Sparse rows of the fragments that weigh most in a kernel SVM (Pighin & Moschitti 2010, "FTK+FS").

    ``fit`` trains a support vector machine with ``SubsetTreeKernel``, one class against the rest. It
    gives every fragment j the weight ``w_j = Σ αᵢ yᵢ x_ij``, where ``x_ij`` is the fragment's
    value in support vector i. The ``n_fragments`` with the largest ``|w_j|`` in any of the problems are
    found by growing fragments from single productions, and become the columns; a linear model trained on
    the rows completes the method. The value of a fragment with p productions that occurs ``count`` times is
    ``count · √λ^(p - 1)``.

    Parameters
    ----------
    n_fragments : int
        How many fragments to keep, if there are so many.
    decay : float
        λ in [0, 1].
    normalize : bool
        Learn with the normalised kernel, and divide every row by √K(a, a).
    C : float
        The support vector machine's cost of errors. The default is that of ``SVC`` and, with a normalised
        kernel, of SVM-light; a linear model that is trained on the rows has a C of its own.
    threshold : float
        Leave out fragments that weigh less than this share of the heaviest, from 0 to 1.
    max_expansions : int, optional
        How many productions a fragment may have beyond its first; None for any number.
    beam : int
        How many fragments of one size are grown further at most, which bounds time and memory. Where
        it leaves some out that might lead to heavier ones, the search is greedy, and ``exact_`` False.
    max_pairs : int
        See ``SubsetTreeKernel``.
    n_jobs : int, optional
        Threads that train support vector machines, one for each class; -1 for all cores.

    Attributes
    ----------
    classes_ : array
        The classes.
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
    >>> from paper.rivals.mined_fragment_vectorizer import MinedFragmentVectorizer
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
    >>> model = make_pipeline(MinedFragmentVectorizer(n_fragments=3), LinearSVC())
    >>> print(*model.fit(trees, ["S", "S", "T", "T"]).predict(["(T (A e) (C e))"]))
    T
    >>> sorted(model[0].get_feature_names_out())
    ['(C b)', '(S A B)', '(T A C)']
    """

    def __init__(
        self,
        *,
        n_fragments: int = 5000,
        decay: float = 0.4,
        normalize: bool = True,
        C: float = 1.0,
        threshold: float = 0.0,
        max_expansions: int | None = None,
        beam: int = BEAM,
        max_pairs: int = MAX_PAIRS,
        n_jobs: int | None = None,
    ) -> None:
        self.n_fragments = n_fragments
        self.decay = decay
        self.normalize = normalize
        self.C = C
        self.threshold = threshold
        self.max_expansions = max_expansions
        self.beam = beam
        self.max_pairs = max_pairs
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Train the support vector machine and keep its heaviest fragments."""
        if y is None:
            raise ParameterError(
                "MinedFragmentVectorizer learns which fragments matter: give y, the class of each tree"
            )
        settings, C = self._mining_settings(), checked_positive("C", self.C)
        kernel = SubsetTreeKernel(self.decay, normalize=self.normalize, max_pairs=self.max_pairs)
        trees = read_trees(X)
        self.classes_, sides = one_vs_rest(y, len(trees))
        dual = _dual_coefficients(kernel.gram(trees, n_jobs=self.n_jobs), sides, C, self.n_jobs)
        support = np.flatnonzero(dual.any(axis=1))
        trees, dual = trees[support], dual[support]
        if self.normalize:
            dual = over_norms(dual, kernel.norms(trees, n_jobs=self.n_jobs))
        self._space, self.weights_, self.exact_ = mine(trees, dual, kernel.decay, **settings)
        if not self._space.sizes.size:
            raise SourceError("there is no fragment in these trees: each is a single node")
        return self

    @property
    def fragments_(self) -> list[Tree]:
        """The fragment of every column."""
        return self._space.trees()

    def transform(self, X: Any) -> csr_matrix:
        """Return one sparse row per tree; fragments that have no column are ignored."""
        check_is_fitted(self)
        trees = read_trees(X)
        rows = count_known(self._space, trees)
        rows.data *= self._space.weights(self.decay)[rows.indices]
        if self.normalize:
            norms = SubsetTreeKernel(self.decay).norms(trees, n_jobs=self.n_jobs)
            rows.data /= np.repeat(norms, np.diff(rows.indptr))
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the fragments as bracket text."""
        check_is_fitted(self)
        return np.array([str(fragment) for fragment in self.fragments_], dtype=object)

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


def _dual_coefficients(gram: np.ndarray, sides: np.ndarray, C: float, n_jobs: int | None) -> np.ndarray:
    """Return αᵢ yᵢ for all trees (rows) and problems (columns)."""
    result = np.zeros(sides.T.shape)
    for k, svm in enumerate(train_svms(gram, sides, C, n_jobs)):
        result[svm.support_, k] = svm.dual_coef_[0]
    return result
