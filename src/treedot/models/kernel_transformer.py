"""Use kernels in scikit-learn pipelines: exactly, or by landmarks."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from treedot._runtime.array_types import FloatArray
from treedot.kernels import SubsetTreeKernel
from treedot.kernels.kernel import Kernel
from treedot.kernels.tree_kernel import checked_tree_kernel
from treedot.models.training.landmarks import (
    choose_landmarks,
    frequent_subtrees,
    inverse_root,
    n_examples,
    take_examples,
)
from treedot.parameters import checked_choice, checked_integer
from treedot.vectors.transformers import KernelMatrixTransformer

LANDMARKS = ("examples", "subtrees")


class KernelTransformer(KernelMatrixTransformer):
    """Transform trees into rows of an exact kernel matrix, or into features that approximate the kernel.

    Without ``n_landmarks``, row i of the output holds ``K(tree i, t)`` for every training tree t. Use it with
    estimators that take ``kernel="precomputed"``.

    With ``n_landmarks``, the output is for linear models. With some landmarks L, row i is
    ``K(tree i, L) K(L, L)^(-1/2)``, the Nyström features (Williams & Seeger 2001). Their dot products
    approximate the kernel: they are exact if one of the two trees is a landmark. Landmarks are random
    training trees, or the most frequent subtrees of all training trees. Time and memory grow with the number
    of trees times the number of landmarks, not with the square of the number of trees.

    Parameters
    ----------
    kernel : Kernel, default=None
        The kernel, such as ``BoundedTreeKernel(normalize=True)``, or a combination of kernels; by default
        ``SubsetTreeKernel(normalize=True)``. Its parameters can be searched: ``kernel__decay``.
    n_landmarks : int, default=None
        The number of landmarks, and of columns; None returns kernels with all training trees. If there are
        fewer training trees, or fewer distinct subtrees that qualify (see Notes), all of them are landmarks.
    landmarks : {"examples", "subtrees"}, default="examples"
        ``"examples"`` chooses training trees at random. ``"subtrees"`` takes the distinct subtrees (a node
        with all its descendants) that occur most often in the training trees, for kernels of trees. Try both:
        subtrees suit the subset tree kernel on trees that share many small parts, such as parses of
        sentences; examples suit large trees that resemble each other as a whole. It only has an effect with
        ``n_landmarks``.
    random_state : int, default=0
        The seed of the choice of examples. Every set of training trees of that size is equally likely; the
        classes have no effect. The same seed and number of trees choose the same positions in any version of
        NumPy.
    n_jobs : int, default=None
        The number of threads that compute kernels; -1 uses all cores. The output does not depend on it.

    Attributes
    ----------
    kernel_ : Kernel
        A copy of the kernel that was given.
    trees_ : Forest
        The training trees, or the table for kernels of columns; with ``n_landmarks``, only the landmarks.
    landmark_indices_ : array of int of shape (n_landmarks,)
        The positions of the landmarks among the training trees, in ascending order. Only set with
        ``n_landmarks`` and ``landmarks="examples"``.
    normalization_ : array of shape (n_landmarks, n_landmarks)
        ``K(L, L)^(-1/2)``. Only set with ``n_landmarks``.

    See Also
    --------
    TreeClassifier : Train on an exact kernel without scikit-learn's ``SVC``.
    FragmentVectorizer : Rows that do not depend on training trees, for kernels of fragments.
    sklearn.kernel_approximation.Nystroem : The same method for kernels of vectors.

    Notes
    -----
    Directions in which ``K(L, L)`` has an eigenvalue of at most 1e-12 times the largest are left out of the
    inverse square root, since rounding determines them; equal landmarks have such directions. If all training
    trees, or all their subtrees, are landmarks, the dot products of the features equal the kernels of
    training trees up to about 1e-12 times the number of landmarks. A subtree that only occurs as a child of
    the same larger subtree is not a landmark, and neither is one whose kernel with itself is 0. Of equally
    frequent subtrees, the first in post-order are taken.

    References
    ----------
    C. K. I. Williams and M. Seeger (2001), *Using the Nyström method to speed up kernel machines*, NIPS 13.

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

    Train a linear model on the features of three landmarks:

    >>> from sklearn.svm import LinearSVC
    >>> model = make_pipeline(KernelTransformer(n_landmarks=3), LinearSVC()).fit(trees, ["S", "S", "T", "T"])
    >>> model[0].transform(["(T (A e) (C e))"]).shape, model[0].landmark_indices_
    ((1, 3), array([1, 2, 3]))
    """

    def __init__(
        self,
        *,
        kernel: Kernel | None = None,
        n_landmarks: int | None = None,
        landmarks: str = "examples",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.random_state = random_state
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
        """Keep the training trees, or choose the landmarks.

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

        Raises
        ------
        ParameterError
            If a parameter is invalid.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Return the Gram matrix of the training trees, or their features if there are landmarks.

        Parameters
        ----------
        X : source of trees, or table
            The training examples.
        y : object, default=None
            Not used.

        Returns
        -------
        array of shape (n_train, n_train), or (n_train, n_landmarks)
            The kernels of all pairs of training examples, or the features.
        """
        examples = self._fit(X)
        if self.n_landmarks is None:
            return self.kernel_.gram(examples, n_jobs=self.n_jobs)
        return self._features(examples)

    def transform(self, X: Any) -> FloatArray:
        """Return the kernels of every tree with every training tree, or its features if there are landmarks.

        Parameters
        ----------
        X : source of trees, or table
            The examples.

        Returns
        -------
        array of shape (n_examples, n_train), or (n_examples, n_landmarks)
            The kernels, or the features.
        """
        check_is_fitted(self)
        return self._features(self.kernel_.read(X))

    def _fit(self, X: Any) -> Any:
        """Fit to the examples, and return them as the kernel reads them."""
        chosen = checked_choice("landmarks", self.landmarks, LANDMARKS)
        kernel = _default() if self.kernel is None else self.kernel
        self.kernel_ = clone(kernel if isinstance(kernel, Kernel) else checked_tree_kernel("kernel", kernel))
        seed = checked_integer("random_state", self.random_state)
        for learned in ("landmark_indices_", "normalization_"):
            if hasattr(self, learned):  # of an earlier fit
                delattr(self, learned)
        if self.n_landmarks is None:
            self.trees_ = self.kernel_.read(X)
            return self.trees_
        wanted = checked_integer("n_landmarks", self.n_landmarks, at_least=1)
        examples = self.kernel_.read(X)
        if chosen == "subtrees":
            self.trees_ = frequent_subtrees(self.kernel_, examples, wanted, self.n_jobs)
        else:
            self.landmark_indices_ = choose_landmarks(n_examples(examples), wanted, seed)
            self.trees_ = take_examples(examples, self.landmark_indices_)
        self.normalization_ = inverse_root(self.kernel_.gram(self.trees_, n_jobs=self.n_jobs))
        return examples

    def _features(self, examples: Any) -> FloatArray:
        kernels = self.kernel_.gram(examples, self.trees_, n_jobs=self.n_jobs)
        return kernels @ self.normalization_ if hasattr(self, "normalization_") else kernels


def _default() -> Kernel:
    return SubsetTreeKernel(normalize=True)
