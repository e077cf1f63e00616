"""The settings that cross-validation chooses from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from treedot.errors import ParameterError
from treedot.kernels.tree_kernel import TreeKernel, checked_tree_kernel
from treedot.models.inputs.inputs import Inputs
from treedot.models.inputs.model_input import ModelInput
from treedot.models.inputs.number_input import NumberInput
from treedot.models.inputs.table import Columns
from treedot.models.inputs.term_input import TERMS, TermInput
from treedot.models.inputs.text_input import TextInput
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.models.inputs.vectorizer_input import VectorizerInput
from treedot.models.training.folds import by_kind
from treedot.parameters import (
    DAMPINGS,
    checked_choice,
    checked_decay,
    checked_flag,
    checked_positive,
    n_threads,
)
from treedot.trees import Forest
from treedot.vectors.fragment_vectorizer import FragmentVectorizer
from treedot.vectors.spec import MAX_FEATURES

N_FEATURES = MAX_FEATURES  # only columns that occur have weights, and hardly any two fragments share one


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "decay": lambda _, value: checked_decay(value),
    "idf": checked_flag,
    "damping": lambda name, value: checked_choice(name, value, DAMPINGS),
    "words": checked_flag,
    "labels": checked_flag,
}


class Settings(NamedTuple):
    """What determines the rows; None leaves a parameter of the vectorizer or kernel as it is."""

    decay: float | None = None
    idf: bool | None = None
    damping: str | None = None
    words: bool = False
    labels: bool = False


class Candidate(NamedTuple):
    """Inputs that are not fitted yet, and their settings."""

    settings: Settings
    inputs: Inputs

    @property
    def is_kernel(self) -> bool:
        """Whether an input is an exact kernel."""
        return bool(by_kind(self.inputs)[0])


def candidates(classifier: Any) -> tuple[list[Candidate], list[float]]:
    """Check all settings; return the inputs for all combinations, and the values of C in ascending order."""
    return input_candidates(classifier), setting_values("C", classifier.C, checked_positive)


def input_candidates(estimator: Any) -> list[Candidate]:
    """Check the settings of the inputs; return the inputs for all combinations."""
    n_threads(estimator.n_jobs)
    columns = Columns.make(estimator.tree_columns, estimator.number_columns, estimator.text_columns)
    encoder = _encoder(estimator)
    return [_candidate(encoder, settings, columns) for settings in _combinations(estimator)]


def _combinations(estimator: Any) -> Iterator[Settings]:
    """Yield all combinations of the given values; an estimator without a setting has its default."""
    given = {name: getattr(estimator, name, default) for name, default in Settings()._asdict().items()}
    values = [[None] if x is None else setting_values(name, x, CHECKS[name]) for name, x in given.items()]
    yield from map(Settings._make, product(*values))


def checked_settings(stored: Mapping[str, Any]) -> Settings:
    """Return stored settings; raise ParameterError or KeyError if they are damaged."""
    values = {name: stored[name] for name in Settings._fields if name in stored or name == "decay"}
    checked: dict[str, Any] = {
        name: None if x is None else CHECKS[name](name, x) for name, x in values.items()
    }
    return Settings(**checked)


def _candidate(encoder: Any, settings: Settings, columns: Columns) -> Candidate:
    """Return the inputs with these settings; the encoder's own ones take the place of None."""
    own = clone(encoder)
    for parameter in ("decay", "idf", "damping"):
        value, names = getattr(settings, parameter), _names(encoder, parameter)
        if value is not None:
            if not names:
                raise ParameterError(f"{type(encoder).__name__} has no {parameter}: use {parameter}=None")
            own.set_params(**dict.fromkeys(names, value))
    chosen = own.get_params().get("decay", settings.decay)
    return Candidate(settings._replace(decay=chosen), _inputs(own, settings, columns))


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


def _inputs(encoder: Any, settings: Settings, columns: Columns) -> list[ModelInput]:
    """Return the inputs of each tree column and each text column, and one for all numbers."""
    inputs: list[ModelInput] = [_tree_input(name, encoder) for name in columns.trees]
    for name in columns.trees:
        inputs += [TermInput(name, terms, bool(settings.idf)) for terms in TERMS if getattr(settings, terms)]
    if columns.numbers:
        inputs.append(NumberInput.make(columns.numbers))
    return inputs + [TextInput(name) for name in columns.texts]


def _tree_input(column: str | None, encoder: Any) -> ModelInput:
    if isinstance(encoder, TreeKernel):
        return KernelInput(column, encoder, Forest([], [], [0], []))
    return VectorizerInput(column, encoder)


def _names(encoder: Any, parameter: str) -> list[str]:
    """Return the parameter's names, including those in nested vectorizers and kernels."""
    return [name for name in encoder.get_params(deep=True) if name.split("__")[-1] == parameter]


def setting_values(name: str, values: Any, check: Callable[[str, Any], Any]) -> list[Any]:
    """Return the distinct checked values in ascending order, given one value or several."""
    several = list(values) if isinstance(values, (list, tuple, np.ndarray)) else [values]
    if not several:
        raise ParameterError(f"{name} must be one value or a non-empty sequence of values")
    return sorted({check(name, value) for value in several})
