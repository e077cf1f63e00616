"""Learn a similarity of trees from groups whose members should be alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils.validation import check_is_fitted

from treedot._runtime.array_types import IntArray, Row
from treedot.errors import ParameterError, SourceError
from treedot.models.training.metric_choice import MetricTrainer, Scores
from treedot.models.training.scatter import Scatter, ScatterInMemory
from treedot.parameters import checked_integer, checked_positive
from treedot.readers import read_trees
from treedot.readers.sources import are_vectors
from treedot.vectors.fragment_vectorizer import FragmentVectorizer
from treedot.vectors.metric.folding import Folding
from treedot.vectors.metric.metric import MAX_COLUMNS, Metric, check_columns
from treedot.vectors.spec import MAX_FEATURES
from treedot.vectors.transformers import TreeTransformer

SHRINKAGE = (0.1, 0.3, 1.0, 3.0, 10.0)


class TreeMetric(ClassNamePrefixFeaturesOutMixin, TreeTransformer):
    """A similarity of trees learned from groups: relevant component analysis.

    Members of a group should be alike: programs that solve one task, versions of a function, sentences with
    one meaning. With the rows x of the training trees, their mean m, and the covariance S of the rows around
    the means of their own groups, a tree's vector is ``(S + a t I)^(-1/2) (x - m)``, scaled to length 1. Here
    t is the mean of the diagonal of S, and a the ``shrinkage``. The dot product of two vectors, a cosine, is
    the learned similarity: directions in which the members of a group differ count less.

    Rows are first hashed into ``n_columns`` columns and scaled to length 1. The covariance is exact, in
    float64, and is summed over batches. Instead of the symmetric root, its Cholesky factor is used: the
    vectors are rotated, and their dot products are the same.

    Nothing is learned about single groups, so that the metric serves groups that it has not seen.

    Parameters
    ----------
    vectorizer : FragmentVectorizer, default=None
        Turns trees into rows; ``fit`` fits it. The default is ``FragmentVectorizer(n_features=2**30,
        idf=True)``: idf is counted on the training trees.
    n_columns : int or sequence of int, default=2**13
        The number of columns after hashing, a power of two up to 2**15; or several to choose from. Rows with
        fewer columns are not hashed. Memory grows with the square, and the time of ``fit`` with the cube.
    shrinkage : float or sequence of float, default=(0.1, 0.3, 1.0, 3.0, 10.0)
        The number a; or several to choose from.
    held_out : float, default=0.25
        The share of groups that are held out to choose between several settings, by the mean average
        precision at R of at most 3,000 of their trees. The metric is then learned from all groups.
    device : str, default="cpu"
        "cpu", or "cuda" to sum and factorise the covariance on a GPU, in float64.
    random_state : int, default=0
        Determines which groups are held out.
    n_jobs : int, default=None
        Threads for rows; -1 for all cores. BLAS, which factorises the covariance, has its own threads.

    Attributes
    ----------
    metric_ : Metric
        The learned metric, which needs no scikit-learn.
    n_columns_ : int
        The chosen number of columns.
    shrinkage_ : float
        The chosen shrinkage.
    scores_ : dict
        The mean average precision at R on held-out groups of all pairs ``(n_columns, shrinkage)``; empty if
        there was nothing to choose.

    See Also
    --------
    TreeClassifier : Learns classes that new trees belong to.

    Notes
    -----
    Training takes eight bytes for the square of the number of columns, twice: 1 GiB for 2**13 columns. The
    matrix is stored in float32: 129 MiB for 2**13 columns, 2 GiB for 2**15. On one machine the same input
    gives the same bytes if BLAS has the same number of threads; otherwise numbers may differ in their last
    bits.

    References
    ----------
    A. Bar-Hillel, T. Hertz, N. Shental and D. Weinshall (2005), *Learning a Mahalanobis metric from
    equivalence constraints*, Journal of Machine Learning Research 6.

    Examples
    --------
    >>> from treedot.models import TreeMetric
    >>> trees = [f"(S (NP (N {who})) (VP (V {what})))" for what in ("runs", "eats") for who in "abcd"]
    >>> model = TreeMetric(n_columns=64, shrinkage=1.0).fit(trees, ["run"] * 4 + ["eat"] * 4)
    >>> vectors = model.transform(trees)
    >>> vectors.shape
    (8, 64)
    >>> bool(vectors[0] @ vectors[1] > 0 > vectors[0] @ vectors[4])  # "a runs" with "b runs", with "a eats"
    True
    """

    def __init__(
        self,
        *,
        vectorizer: FragmentVectorizer | None = None,
        n_columns: Any = 2**13,
        shrinkage: Any = SHRINKAGE,
        held_out: float = 0.25,
        device: str = "cpu",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.vectorizer = vectorizer
        self.n_columns = n_columns
        self.shrinkage = shrinkage
        self.held_out = held_out
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, progress: Callable[[int, int], object] | None = None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : source of trees, or rows
            The training trees, as ``read_trees`` takes them; or their rows, a sparse or dense matrix, in
            which case ``vectorizer`` is not used and ``transform`` takes rows, too.
        y : array of shape (n_trees,)
            The group of each tree. Trees without others in their group only count towards the mean and idf.
        progress : callable, default=None
            Called after each setting with the numbers of finished steps and of all steps.

        Returns
        -------
        TreeMetric
            The estimator itself.

        Raises
        ------
        ParameterError
            If a parameter is invalid, or there are too few groups.
        """
        n_columns = [check_columns(each) for each in _several(self.n_columns)]
        shrinkage = [checked_positive("shrinkage", each) for each in _several(self.shrinkage)]
        trainer = self._trainer(progress or (lambda done, steps: None))
        fitted, rows = self._rows(X)
        groups = group_numbers(y, rows.shape[0])
        width = rows.shape[1]
        if not hasattr(rows, "tocsr") and width > MAX_COLUMNS:
            raise ParameterError(f"dense rows may have at most {MAX_COLUMNS} columns, not {width}")
        wanted = n_columns if hasattr(rows, "tocsr") else [MAX_COLUMNS]
        foldings = list(dict.fromkeys(Folding.of(width, each) for each in wanted))
        self.scores_: Scores = {}
        folding, a = foldings[0], shrinkage[0]
        if len(foldings) * len(shrinkage) > 1:
            self.scores_ = trainer.choose(rows, groups, foldings, shrinkage)
            chosen, a = max(self.scores_, key=lambda trial: self.scores_[trial])
            folding = Folding(width, chosen)
        learned = trainer.learn(rows, groups, folding, a)
        trainer.report(len(self.scores_) + 1, len(self.scores_) + 1)
        self.n_columns_, self.shrinkage_ = folding.n_columns, a
        self.metric_ = Metric(*learned, None if fitted is None else fitted._rows(), self._facts(groups))
        return self

    def transform(self, X: Any) -> Row:
        """Return the vectors of trees, whose dot products are the learned similarities.

        Parameters
        ----------
        X : source of trees, or rows
            Trees, as ``read_trees`` takes them; or rows if the metric was learned from rows.

        Returns
        -------
        array of float32 of shape (n_trees, n_columns)
            Vectors of length 1.
        """
        check_is_fitted(self)
        return self.metric_.transform(X, self.n_jobs)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the metric to a folder, atomically; ``load`` and ``Metric.load`` read it.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default=False
            Replace an existing metric.
        """
        check_is_fitted(self)
        self.metric_.save(path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a folder that ``save`` wrote.

        Parameters
        ----------
        path : path
            The folder.

        Returns
        -------
        TreeMetric
            The fitted estimator.

        Raises
        ------
        SourceError
            If the folder is damaged, or is not a metric.
        """
        metric = Metric.load(path)
        rows, facts = metric.rows, metric.facts
        vectorizer = None if rows is None else FragmentVectorizer._of_rows(rows)
        try:
            a = checked_positive("shrinkage", facts.get("shrinkage"))
            scores = {(int(n), float(each)): float(score) for n, each, score in facts.get("scores", [])}
        except (TypeError, ValueError) as error:
            raise SourceError(
                f"cannot read the metric {os.fspath(path)}: its facts are damaged: {error}"
            ) from None
        made = cls(vectorizer=vectorizer, n_columns=metric.folding.n_columns, shrinkage=a)
        made.metric_, made.n_columns_, made.shrinkage_, made.scores_ = (
            metric,
            metric.folding.n_columns,
            a,
            scores,
        )
        return made

    def _trainer(self, report: Callable[[int, int], object]) -> MetricTrainer:
        held_out = checked_positive("held_out", self.held_out)
        if held_out >= 1:
            raise ParameterError(f"held_out must be a share below 1, not {held_out}")
        seed = checked_integer("random_state", self.random_state, at_least=0)
        make: Callable[[int], Scatter] = partial(ScatterInMemory, n_jobs=self.n_jobs)
        if self.device != "cpu":
            from treedot.models.training.scatter_on_gpu import ScatterOnGpu

            make = partial(ScatterOnGpu, device=self.device)
        return MetricTrainer(make, held_out, seed, report)

    def _rows(self, X: Any) -> tuple[FragmentVectorizer | None, Any]:
        """Return the fitted vectorizer, if X holds trees, and the rows."""
        if are_vectors(X):
            rows = getattr(X, "matrix", X)
            if len(rows.shape) != 2:
                raise ParameterError(f"expected rows of shape (n_trees, n_columns), not {rows.shape}")
            return None, rows.tocsr() if hasattr(rows, "tocsr") else np.asarray(rows)
        trees = read_trees(X)
        wanted = self.vectorizer
        if wanted is None:
            wanted = FragmentVectorizer(n_features=MAX_FEATURES, idf=True, n_jobs=self.n_jobs)
        if not isinstance(wanted, FragmentVectorizer):
            raise ParameterError(f"vectorizer must be a FragmentVectorizer, not {type(wanted).__name__}")
        fitted = clone(wanted).fit(trees)
        rows = fitted.transform(trees)
        return fitted.set_params(n_jobs=None), rows  # which does not change rows, nor stored bytes

    def _facts(self, groups: IntArray) -> dict[str, Any]:
        return {
            "trees": int(groups.size),
            "groups": int(groups.max()) + 1,
            "shrinkage": self.shrinkage_,
            "scores": [[n, a, score] for (n, a), score in self.scores_.items()],
        }

    @property
    def _n_features_out(self) -> int:
        return self.n_columns_


def group_numbers(y: Any, n_trees: int) -> IntArray:
    """Return the number of the group of each tree, from 0; raise if the groups are wrong or teach nothing."""
    values = list(y) if not isinstance(y, np.ndarray) else y.tolist()
    if len(values) != n_trees:
        raise ParameterError(f"y must hold one group for each of the {n_trees} trees, not {len(values)}")
    for tree, value in enumerate(values, 1):
        if value is None or value != value or value == "":
            raise ParameterError(f"tree {tree} has no group: remove it, or give it a group of its own")
    numbers: dict[Any, int] = {}
    groups = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
    if not n_trees or np.bincount(groups).max() < 2:
        raise ParameterError("no group has two members: a metric is learned from trees that should be alike")
    return groups


def _several(values: Any) -> list[Any]:
    """Return the values to choose from; a single one is the only choice."""
    found = list(values) if isinstance(values, (list, tuple, np.ndarray)) else [values]
    if not found:
        raise ParameterError("n_columns and shrinkage need at least one value")
    return found
