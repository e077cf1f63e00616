"""Everything that determines a vector, in one small frozen object."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from treedot.algebra import Algebra, algebra_class
from treedot.errors import ParameterError, SpecMismatchError
from treedot.parameters import DTYPES, checked_decay, checked_flag, checked_integer

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Spec:
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
        for name in ("n_components", "seed", "version"):
            object.__setattr__(self, name, checked_integer(name, getattr(self, name)))
        object.__setattr__(self, "decay", checked_decay(self.decay))
        object.__setattr__(self, "normalize", checked_flag("normalize", self.normalize))
        object.__setattr__(self, "dtype", _checked_dtype(self.dtype))
        if self.version != FORMAT_VERSION:
            raise SpecMismatchError(
                f"this treedot makes vectors of format {FORMAT_VERSION}, not {self.version}"
            )
        algebra_class(self.composition).check_size(self.n_components)

    def algebra(self) -> Algebra:
        """Return the algebra of this spec."""
        return algebra_class(self.composition)(self.n_components, self.seed)

    @property
    def fingerprint(self) -> str:
        """A short stable name of this spec, the same in every process and on every machine."""
        fields = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(fields.encode(), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Spec:
        """Return the spec that ``to_dict`` described."""
        try:
            return cls(**fields)
        except TypeError as error:
            raise SpecMismatchError(f"this is not the description of a treedot spec: {error}") from None

    def require_same(self, other: Spec) -> None:
        """Raise where vectors of this and another spec must not be mixed."""
        if self != other:
            mine, theirs = self.to_dict(), other.to_dict()
            differing = ", ".join(
                f"{name} {mine[name]!r} and {theirs[name]!r}" for name in mine if mine[name] != theirs[name]
            )
            raise SpecMismatchError(f"these vectors do not belong together: {differing}")


def _checked_dtype(dtype: Any) -> str:
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise ParameterError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
    return name
