"""Exact kernels inside scikit-learn pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from treedot.errors import ParameterError
from treedot.kernels import BoundedTreeKernel, SubsetTreeKernel, SubtreeKernel
from treedot.kernels.base import MAX_PAIRS, TreeKernel
from treedot.learn.base import TreeTransformer
from treedot.readers import read_trees


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TreeTransformer):
    """Turns trees into rows of an exact kernel matrix, for ``SVC(kernel="precomputed")`` and its like.

    Parameters
    ----------
    kernel : {"subset", "subtree", "bounded"}
        ``SubsetTreeKernel``, ``SubtreeKernel`` or ``BoundedTreeKernel``.
    decay, normalize, max_pairs
        The kernel's parameters.
    budget : int
        The largest cost of a fragment, for ``"bounded"``; the others have none.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from treedot import KernelTransformer
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
    >>> model = make_pipeline(KernelTransformer(normalize=True), SVC(kernel="precomputed"))
    >>> print(*model.fit(trees, ["S", "S", "T", "T"]).predict(["(T (A e) (C e))"]))
    T
    """

    def __init__(
        self,
        kernel: str = "subset",
        decay: float = 0.4,
        normalize: bool = False,
        budget: int = 4,
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        self.kernel = kernel
        self.decay = decay
        self.normalize = normalize
        self.budget: float = budget  # a whole number here, a share where labels are learned
        self.max_pairs = max_pairs

    def make_kernel(self) -> TreeKernel:
        """Return the kernel that the parameters describe."""
        kinds = {"subset": SubsetTreeKernel, "subtree": SubtreeKernel, "bounded": BoundedTreeKernel}
        if self.kernel not in kinds:
            raise ParameterError(f"kernel must be one of {', '.join(kinds)}, not {self.kernel!r}")
        own = {"budget": self.budget} if self.kernel == "bounded" else {}
        return kinds[self.kernel](self.decay, self.normalize, max_pairs=self.max_pairs, **own)

    def fit(self, X: Any, y: Any = None) -> KernelTransformer:
        """Keep the training trees."""
        self.make_kernel()
        self.trees_ = read_trees(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Return the Gram matrix of the training trees."""
        self.fit(X, y)
        return self.make_kernel().gram(self.trees_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the kernels of every tree of X with every training tree."""
        check_is_fitted(self)
        return self.make_kernel().gram(read_trees(X), self.trees_)

    @property
    def _n_features_out(self) -> int:
        return len(self.trees_)
