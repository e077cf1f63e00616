"""Everything that determines a vector, in one small frozen object."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from treedot.algebra import Algebra, algebra_class
from treedot.errors import ParameterError, SpecMismatchError
from treedot.parameters import DTYPES, checked_decay, checked_flag, checked_integer

FORMAT_VERSION = 1
MAX_BUDGET = 32
MAX_FEATURES = 2**30  # hardly any collision: for rows that are only multiplied with each other


class _Described:
    """What every spec can do: name itself, be written down and read back."""

    @property
    def fingerprint(self) -> str:
        """A short stable name of this spec, the same in every process and on every machine."""
        fields = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(fields.encode(), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the spec that ``to_dict`` described."""
        try:
            return cls(**fields)
        except TypeError as error:
            raise SpecMismatchError(f"this is not the description of a treedot spec: {error}") from None

    def require_same(self, other: Self) -> None:
        """Raise where vectors of this and another spec must not be mixed."""
        if self != other:
            mine, theirs = self.to_dict(), other.to_dict()
            differing = ", ".join(
                f"{name} {mine[name]!r} and {theirs.get(name)!r}"
                for name in mine
                if mine[name] != theirs.get(name)
            )
            raise SpecMismatchError(f"these vectors do not belong together: {differing}")

    def _check(self, *integers: str) -> None:
        """Check the fields that all specs share, and the integers."""
        fields: Any = self
        for name in (*integers, "seed", "version"):
            object.__setattr__(self, name, checked_integer(name, getattr(self, name)))
        object.__setattr__(self, "decay", checked_decay(fields.decay))
        object.__setattr__(self, "normalize", checked_flag("normalize", fields.normalize))
        object.__setattr__(self, "dtype", _checked_dtype(fields.dtype))
        if fields.version != FORMAT_VERSION:
            raise SpecMismatchError(
                f"this treedot makes vectors of format {FORMAT_VERSION}, not {fields.version}"
            )


@dataclass(frozen=True)
class Spec(_Described):
    """What a vector depends on besides its tree; equal specs make comparable vectors.

    Examples
    --------
    >>> Spec(n_components=1024).fingerprint
    '...'
    >>> Spec.from_dict(Spec().to_dict()) == Spec()
    True
    """

    n_components: int = 8192
    decay: float = 0.4
    composition: str = "mixed"
    seed: int = 0
    normalize: bool = False
    dtype: str = "float32"
    version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        self._check("n_components")
        algebra_class(self.composition).check_size(self.n_components)

    def algebra(self) -> Algebra:
        """Return the algebra of this spec."""
        return algebra_class(self.composition)(self.n_components, self.seed)


@dataclass(frozen=True)
class StratifiedSpec(_Described):
    """What a stratified row depends on besides its tree.

    Examples
    --------
    >>> StratifiedSpec(n_features=1000)
    Traceback (most recent call last):
    treedot.errors.ParameterError: n_features must be a power of two from 32 to 1073741824, not 1000
    """

    n_features: int = 2**20
    decay: float = 0.4
    budget: int = 10
    seed: int = 0
    normalize: bool = False
    dtype: str = "float32"
    version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        self._check("n_features", "budget")
        if not (32 <= self.n_features <= MAX_FEATURES and self.n_features & (self.n_features - 1) == 0):
            raise ParameterError(
                f"n_features must be a power of two from 32 to {MAX_FEATURES}, not {self.n_features}"
            )
        if not 1 <= self.budget <= MAX_BUDGET:
            raise ParameterError(f"budget must be from 1 to {MAX_BUDGET}, not {self.budget}")


def _checked_dtype(dtype: Any) -> str:
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise ParameterError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
    return name
