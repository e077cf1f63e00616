"""Exact kernels inside scikit-learn pipelines."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import clone

from treedot.errors import ParameterError
from treedot.kernels import SubsetTreeKernel
from treedot.kernels.base import TreeKernel
from treedot.learn.base import KernelMatrixTransformer
from treedot.readers import read_trees


class KernelTransformer(KernelMatrixTransformer):
    """Turns trees into rows of an exact kernel matrix, for ``SVC(kernel="precomputed")`` and its like.

    Row i of the output holds ``K(tree i, t)`` for every training tree t.

    Parameters
    ----------
    kernel : TreeKernel, optional
        The kernel, such as ``BoundedTreeKernel(normalize=True)``; by default
        ``SubsetTreeKernel(normalize=True)``. Its parameters can be searched: ``kernel__decay``.

    Attributes
    ----------
    kernel_ : TreeKernel
        The kernel in use, a copy of the one that was given.
    trees_ : Forest
        The training trees.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from treedot import KernelTransformer, SubsetTreeKernel
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
    >>> model = make_pipeline(KernelTransformer(), SVC(kernel="precomputed"))
    >>> print(*model.fit(trees, ["S", "S", "T", "T"]).predict(["(T (A e) (C e))"]))
    T

    A kernel of your own, and the best of its parameters:

    >>> kernel = SubsetTreeKernel(normalize=True, leaves=True)
    >>> model = make_pipeline(KernelTransformer(kernel=kernel), SVC(kernel="precomputed"))
    >>> search = GridSearchCV(model, {"kerneltransformer__kernel__decay": [0.2, 0.4]}, cv=2)
    >>> print(search.fit(trees, ["S", "S", "T", "T"]).best_score_)
    1.0
    """

    def __init__(self, *, kernel: TreeKernel | None = None) -> None:
        self.kernel = kernel

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__decay`` and its like set those of the kernel, of the default one too."""
        nested = any(name.startswith("kernel__") for name in params)
        if nested and self.kernel is None and "kernel" not in params:
            self.kernel = _default()
        return super().set_params(**params)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the training trees."""
        self.kernel_ = _default() if self.kernel is None else clone(_checked(self.kernel))
        self.trees_ = read_trees(X)
        return self


def _default() -> TreeKernel:
    return SubsetTreeKernel(normalize=True)


def _checked(kernel: Any) -> TreeKernel:
    if isinstance(kernel, TreeKernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, TreeKernel):
        name = kernel.__name__
        raise ParameterError(f"kernel must be an object, not the class {name}: give {name}(normalize=True)")
    raise ParameterError(
        f"kernel must be a tree kernel such as SubsetTreeKernel(decay=0.4, normalize=True), not {kernel!r}"
    )
