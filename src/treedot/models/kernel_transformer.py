"""Use exact kernels in scikit-learn pipelines."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import clone

from treedot.kernels import SubsetTreeKernel
from treedot.kernels.kernel import Kernel
from treedot.kernels.tree_kernel import checked_tree_kernel
from treedot.vectors.transformers import KernelMatrixTransformer


class KernelTransformer(KernelMatrixTransformer):
    """Transform trees into rows of an exact kernel matrix, for estimators with ``kernel="precomputed"``.

    Row i of the output holds ``K(tree i, t)`` for every training tree t.

    Parameters
    ----------
    kernel : Kernel, default=None
        The kernel, such as ``BoundedTreeKernel(normalize=True)``, or a combination of kernels; by default
        ``SubsetTreeKernel(normalize=True)``. Its parameters can be searched: ``kernel__decay``.
    n_jobs : int, default=None
        The number of threads; -1 uses all cores. The matrix does not depend on it.

    Attributes
    ----------
    kernel_ : Kernel
        A copy of the kernel that was given.
    trees_ : Forest
        The training trees, or the table for kernels of columns.

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

    Choose a kernel, and search for the best of its parameters:

    >>> kernel = SubsetTreeKernel(normalize=True, leaves=True)
    >>> model = make_pipeline(KernelTransformer(kernel=kernel), SVC(kernel="precomputed"))
    >>> search = GridSearchCV(model, {"kerneltransformer__kernel__decay": [0.2, 0.4]}, cv=2)
    >>> print(search.fit(trees, ["S", "S", "T", "T"]).best_score_)
    1.0
    """

    def __init__(self, *, kernel: Kernel | None = None, n_jobs: int | None = None) -> None:
        self.kernel = kernel
        self.n_jobs = n_jobs

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of the kernel are named like ``kernel__decay``.

        Parameters
        ----------
        **params : object
            New values by name.

        Returns
        -------
        KernelTransformer
            The transformer itself.
        """
        nested = any(name.startswith("kernel__") for name in params)
        if nested and params.get("kernel", self.kernel) is None:
            params["kernel"] = _default()
        super().set_params(**params)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Include the parameters of the kernel (of the default kernel if none is set), named like
            ``kernel__decay``.

        Returns
        -------
        dict of str to object
            The parameters.
        """
        params: dict[str, Any] = super().get_params(deep)
        if deep and self.kernel is None:
            params |= {f"kernel__{name}": value for name, value in _default().get_params().items()}
        return params

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the training trees.

        Parameters
        ----------
        X : source of trees, or table
            The training examples.
        y : object, default=None
            Not used.

        Returns
        -------
        KernelTransformer
            The transformer itself.
        """
        kernel = _default() if self.kernel is None else self.kernel
        self.kernel_ = clone(kernel if isinstance(kernel, Kernel) else checked_tree_kernel("kernel", kernel))
        self.trees_ = self.kernel_.read(X)
        return self


def _default() -> Kernel:
    return SubsetTreeKernel(normalize=True)
