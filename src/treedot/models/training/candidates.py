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
from treedot.models.inputs.overlap import OverlapInput
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
from treedot.vectors.spec import MAX_FEATURES, default_damping

N_FEATURES = MAX_FEATURES  # only columns that occur have weights, and hardly any two fragments share one
COSTS = (0.01, 0.1, 1.0, 10.0)
KERNEL_COSTS = (*COSTS, 30.0)  # the best C of the subset tree kernel on questions, where λ = 0.4
PLAIN_DECAY = 0.4  # without selection
ENOUGH = 50  # trees for inverse document frequencies, without selection

CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "decay": lambda _, value: checked_decay(value),
    "idf": checked_flag,
    "damping": lambda name, value: checked_choice(name, value, DAMPINGS),
    "words": checked_flag,
    "labels": checked_flag,
}


class Settings(NamedTuple):
    """The settings that determine the rows; None leaves a parameter of the vectorizer or kernel as it is."""

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
    return input_candidates(classifier), setting_values("C", _costs(classifier), checked_positive)


def _costs(classifier: Any) -> Any:
    """Return the values of C to choose from."""
    if not is_auto(classifier.C):
        return classifier.C
    return COSTS if classifier.kernel is None else KERNEL_COSTS


def input_candidates(estimator: Any) -> list[Candidate]:
    """Check the settings of the inputs; return the inputs for all combinations, which share equal inputs."""
    n_threads(estimator.n_jobs)
    encoder, made = _encoder(estimator), _Inputs(named_columns(estimator))
    return [_candidate(encoder, settings, made) for settings in _combinations(estimator)]


def named_columns(estimator: Any) -> Columns:
    """Check the names of the columns of an estimator, and return them."""
    trees, numbers, texts = estimator.tree_columns, estimator.number_columns, estimator.text_columns
    return Columns.make(trees, numbers, texts, estimator.pair_columns)


def _combinations(estimator: Any) -> Iterator[Settings]:
    """Yield all combinations of the given values; a setting that the estimator lacks has its default."""
    given = {name: getattr(estimator, name, default) for name, default in Settings()._asdict().items()}
    given = {name: _resolved(name, value, estimator) for name, value in given.items()}
    values = [[None] if x is None else setting_values(name, x, CHECKS[name]) for name, x in given.items()]
    yield from map(Settings._make, product(*values))


def _resolved(name: str, value: Any, estimator: Any) -> Any:
    """Return both values of a setting that is ``"auto"`` where there is something to choose, or its default.

    A vectorizer or a kernel that the user gives is taken as it is. Only classifiers have ``"auto"``.
    """
    if not (is_auto(value) and hasattr(estimator, "C")):
        return value
    own = estimator.vectorizer is None and estimator.kernel is None
    several = any(len(_listed(x)) > 1 for x in (estimator.decay, _costs(estimator)))
    return (False, True) if own and several else Settings._field_defaults[name]


def plain_candidate(choices: list[Candidate], n_examples: int) -> int:
    """Return the candidate to take where there are too few examples to choose by.

    Its decay is 0.4, or the nearest; it has inverse document frequencies where they rest on enough trees, and
    the usual damping if there is a choice.
    """
    wanted = n_examples >= ENOUGH

    def distance(number: int) -> tuple[float, bool, bool, int]:
        settings = choices[number].settings
        far = abs((settings.decay or PLAIN_DECAY) - PLAIN_DECAY)
        return far, bool(settings.idf) != wanted, settings.damping != default_damping(None), number

    return min(range(len(choices)), key=distance)


def is_auto(value: Any) -> bool:
    """Whether a setting is left to the estimator."""
    return isinstance(value, str) and value == "auto"


def checked_settings(stored: Mapping[str, Any]) -> Settings:
    """Return stored settings; raise ParameterError or KeyError if they are damaged."""
    values = {name: stored[name] for name in Settings._fields if name in stored or name == "decay"}
    checked: dict[str, Any] = {
        name: None if x is None else CHECKS[name](name, x) for name, x in values.items()
    }
    return Settings(**checked)


class _Inputs:
    """Makes the inputs of candidates; equal inputs are one object, so that their rows are made once."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._made: dict[Any, list[ModelInput]] = {}

    def of(self, encoder: Any, settings: Settings) -> list[ModelInput]:
        """Return the inputs of each tree column, a pair and each text column, and one for all numbers."""
        rows = settings.decay, settings.idf, settings.damping
        inputs = [*self._trees(rows, encoder)]
        for terms in TERMS:
            if getattr(settings, terms):
                inputs += self._once((terms, bool(settings.idf)), self._terms)
        return inputs + self._once((), self._others)

    def _trees(self, key: Any, encoder: Any) -> list[ModelInput]:
        return self._once(("trees", *key), lambda *_: [_tree_input(x, encoder) for x in self._columns.trees])

    def _once(self, key: Any, make: Callable[..., list[ModelInput]]) -> list[ModelInput]:
        if key not in self._made:
            self._made[key] = make(*key)
        return self._made[key]

    def _terms(self, terms: str, idf: bool) -> list[ModelInput]:
        return [TermInput(name, terms, idf) for name in self._columns.trees]

    def _others(self) -> list[ModelInput]:
        _, numbers, texts, pair = self._columns
        others: list[ModelInput] = [OverlapInput.of_pair(pair)] if pair else []
        others += [NumberInput.make(numbers)] if numbers else []
        return others + [TextInput(name) for name in texts]


def _candidate(encoder: Any, settings: Settings, inputs: _Inputs) -> Candidate:
    """Return the inputs with these settings; the encoder's own ones take the place of None."""
    own = clone(encoder)
    for parameter in ("decay", "idf", "damping"):
        value, names = getattr(settings, parameter), _names(encoder, parameter)
        if value is not None:
            if not names:
                raise ParameterError(f"{type(encoder).__name__} has no {parameter}: use {parameter}=None")
            own.set_params(**dict.fromkeys(names, value))
    chosen = own.get_params().get("decay", settings.decay)
    return Candidate(settings._replace(decay=chosen), inputs.of(own, settings))


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


def _tree_input(column: str | None, encoder: Any) -> ModelInput:
    if isinstance(encoder, TreeKernel):
        return KernelInput(column, encoder, Forest([], [], [0], []))
    return VectorizerInput(column, encoder)


def _names(encoder: Any, parameter: str) -> list[str]:
    """Return the parameter's names, including those in nested vectorizers and kernels."""
    return [name for name in encoder.get_params(deep=True) if name.split("__")[-1] == parameter]


def setting_values(name: str, values: Any, check: Callable[[str, Any], Any]) -> list[Any]:
    """Return the distinct checked values in ascending order, given one value or several."""
    several = _listed(values)
    if not several:
        raise ParameterError(f"{name} must be one value or a non-empty sequence of values")
    return sorted({check(name, value) for value in several})


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple, np.ndarray)) else [values]
