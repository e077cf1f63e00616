"""The settings that cross-validation chooses from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from treedot.errors import ParameterError
from treedot.kernels.tree_kernel import TreeKernel, checked_tree_kernel
from treedot.models.inputs.inputs import Inputs
from treedot.models.inputs.model_input import ModelInput
from treedot.models.inputs.number_input import NumberInput
from treedot.models.inputs.table import Columns
from treedot.models.inputs.text_input import TextInput
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.models.inputs.vectorizer_input import VectorizerInput
from treedot.models.training.folds import by_kind
from treedot.parameters import checked_decay, checked_positive, n_threads
from treedot.trees import Forest
from treedot.vectors.fragment_vectorizer import FragmentVectorizer
from treedot.vectors.spec import MAX_FEATURES

N_FEATURES = MAX_FEATURES  # only columns that occur have weights, and hardly any two fragments share one


class Candidate(NamedTuple):
    """Inputs that are not fitted yet, and their λ."""

    decay: float | None
    inputs: Inputs

    @property
    def is_kernel(self) -> bool:
        """Whether an input is an exact kernel."""
        return bool(by_kind(self.inputs)[0])


def candidates(classifier: Any) -> tuple[list[Candidate], list[float]]:
    """Check all settings; return the inputs for every λ, and the values of C in ascending order."""
    return input_candidates(classifier), setting_values("C", classifier.C, checked_positive)


def input_candidates(estimator: Any) -> list[Candidate]:
    """Check the settings of the inputs; return the inputs for every λ."""
    n_threads(estimator.n_jobs)
    columns = Columns.make(estimator.tree_columns, estimator.number_columns, estimator.text_columns)
    encoder = _encoder(estimator)
    names = _decay_names(encoder)
    decays: list[float | None] = [None]
    if estimator.decay is not None:
        decays = [*setting_values("decay", estimator.decay, lambda _, value: checked_decay(value))]
        if not names:
            raise ParameterError(f"{type(encoder).__name__} has no decay: use decay=None")
    made = []
    for decay in decays:
        own = clone(encoder)
        if decay is not None:
            own.set_params(**dict.fromkeys(names, decay))
        made.append(Candidate(own.get_params().get("decay", decay), _inputs(own, columns)))
    return made


def _encoder(estimator: Any) -> Any:
    """Return the given kernel or vectorizer, or the default vectorizer."""
    vectorizer, kernel = estimator.vectorizer, estimator.kernel
    if kernel is not None:
        if vectorizer is not None:
            raise ParameterError("give a vectorizer or a kernel, not both")
        return checked_tree_kernel("kernel", kernel)
    if vectorizer is None:
        return FragmentVectorizer(n_features=N_FEATURES, n_jobs=estimator.n_jobs)
    if isinstance(vectorizer, type) or not hasattr(vectorizer, "fit_transform"):
        raise ParameterError(
            f"vectorizer must be one such as FragmentVectorizer(budget=3), not {vectorizer!r}"
        )
    return vectorizer


def _inputs(encoder: Any, columns: Columns) -> list[ModelInput]:
    """Return one input for each tree column and each text column, and one for all numbers."""
    inputs: list[ModelInput] = [_tree_input(name, encoder) for name in columns.trees]
    if columns.numbers:
        inputs.append(NumberInput.make(columns.numbers))
    return inputs + [TextInput(name) for name in columns.texts]


def _tree_input(column: str | None, encoder: Any) -> ModelInput:
    if isinstance(encoder, TreeKernel):
        return KernelInput(column, encoder, Forest([], [], [0], []))
    return VectorizerInput(column, encoder)


def _decay_names(encoder: Any) -> list[str]:
    """Return the names of all decay parameters, including those of nested vectorizers and kernels."""
    return [name for name in encoder.get_params(deep=True) if name.split("__")[-1] == "decay"]


def setting_values(name: str, values: Any, check: Callable[[str, Any], float]) -> list[float]:
    """Return the distinct checked values in ascending order, given one value or several."""
    several = list(values) if isinstance(values, (list, tuple, np.ndarray)) else [values]
    if not several:
        raise ParameterError(f"{name} must be a number or a non-empty sequence of numbers")
    return sorted({check(name, value) for value in several})
