"""The settings that determine vectors, ``DenseSpec`` and ``SparseSpec``, with their fingerprints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from treedot.errors import ParameterError, RangeError, SpecMismatchError
from treedot.parameters import (
    DAMPINGS,
    DTYPES,
    GAPS,
    RESTS,
    VECTOR_KERNELS,
    checked_choice,
    checked_decay,
    checked_flag,
    checked_integer,
    checked_share,
)
from treedot.vectors.dense.compositions import ALGEBRAS, Algebra, algebra_class

FORMAT_VERSION = 1
MAX_BUDGET = 2**29  # costs are 32-bit integers
MAX_REST_BUDGET = 32
MAX_DIMENSIONS = 2**24  # a dense vector takes 64 MB, and an encoder works with dozens of them
MAX_FEATURES = 2**30  # hardly any collisions; for rows that are only multiplied with each other

MAX_LENGTH = 64  # the largest limit on subsequences of children
PARTIAL_DEFAULTS = {"mu": 0.4, "gaps": "toolkit", "max_length": None}  # fields of partial trees only


class _Described:
    """The base of all specs: fingerprint, conversion to and from dicts, comparison."""

    kind: ClassVar[str]  # the kind of vectors

    @property
    def fingerprint(self) -> str:
        """A short stable name of this spec, the same in every process and on every machine."""
        fields = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(fields.encode(), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the kind of vectors and all fields, as plain JSON values.

        Returns
        -------
        dict of str to object
            The fields by name.
        """
        return {"kind": self.kind, **asdict(cast(Any, self))}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Return the spec that ``to_dict`` described.

        Parameters
        ----------
        fields : mapping of str to object
            The fields by name. A ``fingerprint`` among them must match the spec.

        Returns
        -------
        DenseSpec or SparseSpec
            The spec.

        Raises
        ------
        SpecMismatchError
            If the fields describe vectors of another kind, or their fingerprint does not match.
        """
        given = dict(fields)
        kind, fingerprint = given.pop("kind", cls.kind), given.pop("fingerprint", None)
        if kind != cls.kind:
            raise SpecMismatchError(f"this describes {kind} vectors, not {cls.kind} ones")
        try:
            spec = cls(**given)
        except TypeError as error:
            raise SpecMismatchError(f"this does not describe a treedot spec: {error}") from None
        if fingerprint not in (None, spec.fingerprint):
            raise SpecMismatchError(
                f"these settings have the fingerprint {spec.fingerprint}, not {fingerprint}: "
                "their description was changed, or another version of treedot wrote it"
            )
        return spec

    def require_same(self, other: DenseSpec | SparseSpec) -> None:
        """Raise unless vectors of this spec and of another may be compared.

        Parameters
        ----------
        other : DenseSpec or SparseSpec
            The other spec.

        Raises
        ------
        SpecMismatchError
            If the specs differ; the message names the fields.
        """
        if self != other:
            mine, theirs = ({"kind": spec.kind, **asdict(cast(Any, spec))} for spec in (self, other))
            differing = ", ".join(
                f"{name} {mine[name]!r} and {theirs.get(name)!r}"
                for name in mine
                if mine[name] != theirs.get(name)
            )
            raise SpecMismatchError(f"cannot compare vectors with different settings: {differing}")

    def _check(self, *integers: str) -> None:
        """Check the fields that all specs share, and the given fields, which must be integers."""
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
class DenseSpec(_Described):
    """The settings of dense vectors; vectors with equal specs can be compared.

    Parameters
    ----------
    n_components : int, default=2**13
        The dimension d of the vectors.
    decay : float, default=0.4
        The decay λ, from 0 to 1: how much large fragments count.
    composition : {"mixed", "product", "convolution"}, default="mixed"
        The operation that composes the vectors of nodes. The last two find false duplicates among pages and
        functions: see ``DistributedTreeVectorizer``.
    seed : int, default=0
        The seed of the random vectors of labels.
    normalize : bool, default=True
        Whether vectors are divided by their length.
    dtype : {"float32", "float64"}, default="float32"
        The type of their elements.
    kernel : {"subset", "partial", "smoothed"}, default="subset"
        Which kernel dot products approximate: the kernel of fragments, of partial trees, or of partial
        trees in which similar words match in part.
    mu : float, default=0.4
        The factor μ, from 0 to 1, of every node of a partial tree.
    gaps : {"toolkit", "span"}, default="toolkit"
        How skipped children are penalised; see ``PartialTreeKernel``.
    max_length : int, default=None
        The most children of a node in a partial tree, up to 64; no limit, the default, is faster.
    similarity : str, default=None
        With ``kernel="smoothed"``, the fingerprint of the ``WordVectors``; encoders take these separately.
    version : int, default=1
        The format of vectors; every change of the computed values raises it.

    Examples
    --------
    >>> DenseSpec(n_components=1024).fingerprint
    '...'
    >>> DenseSpec.from_dict(DenseSpec().to_dict()) == DenseSpec()
    True
    """

    kind = "dense"

    n_components: int = 8192
    decay: float = 0.4
    composition: str = "mixed"
    seed: int = 0
    normalize: bool = True
    dtype: str = "float32"
    kernel: str = "subset"
    mu: float = 0.4
    gaps: str = "toolkit"
    max_length: int | None = None
    similarity: str | None = None
    version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        self._check("n_components")
        if self.n_components > MAX_DIMENSIONS:
            raise ParameterError(f"n_components must be at most {MAX_DIMENSIONS}, not {self.n_components}")
        algebra_class(self.composition).check_size(self.n_components)
        checked_choice("kernel", self.kernel, VECTOR_KERNELS)
        self._check_partial()
        self._check_smoothed()

    def _check_partial(self) -> None:
        """Check the fields of partial trees."""
        object.__setattr__(self, "mu", checked_share("mu (μ)", self.mu))
        checked_choice("gaps", self.gaps, GAPS)
        if self.max_length is not None:
            longest = checked_integer("max_length", self.max_length, at_least=1)
            if longest > MAX_LENGTH:
                raise ParameterError(
                    f"max_length must be at most {MAX_LENGTH} for vectors, not {longest}: use None for any "
                    "length, which is also faster"
                )
            object.__setattr__(self, "max_length", longest)
        if self.kernel == "subset":
            for name, default in PARTIAL_DEFAULTS.items():
                if getattr(self, name) != default:
                    raise ParameterError(f"{name} has no effect with kernel='subset': use kernel='partial'")
        elif not algebra_class(self.composition).folds_left:
            left = ", ".join(repr(name) for name, algebra in ALGEBRAS.items() if algebra.folds_left)
            raise ParameterError(f"kernel={self.kernel!r} needs composition={left}, not {self.composition!r}")

    def _check_smoothed(self) -> None:
        """Check the field of smoothed partial trees."""
        if self.kernel != "smoothed" and self.similarity is not None:
            raise ParameterError(
                f"similarity has no effect with kernel={self.kernel!r}: use kernel='smoothed'"
            )
        if self.kernel == "smoothed" and not isinstance(self.similarity, str):
            raise ParameterError(
                "kernel='smoothed' needs word vectors as similarity, in a spec their fingerprint, not "
                f"{self.similarity!r}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the kind of vectors and all fields that determine them, as plain JSON values.

        Returns
        -------
        dict of str to object
            The fields by name, without those that have no meaning for ``kernel``.
        """
        fields = super().to_dict()
        if self.kernel != "smoothed":
            del fields["similarity"]
        if self.kernel == "subset":  # keeps the fingerprints from before there were other kernels
            for name in ("kernel", *PARTIAL_DEFAULTS):
                del fields[name]
        return fields

    def algebra(self) -> Algebra:
        """Return the algebra that composes the vectors.

        Returns
        -------
        Algebra
            The algebra of ``composition``, with ``n_components`` and ``seed``.
        """
        return algebra_class(self.composition)(self.n_components, self.seed)


@dataclass(frozen=True)
class SparseSpec(_Described):
    """The settings of rows of fragments, except what ``fit`` learns from trees.

    Parameters
    ----------
    n_features : int or None, default=2**20
        The number of hashed columns, a power of two; None for learned columns. ``FragmentVectorizer``
        explains the defaults.
    decay : float, default=0.4
        The decay λ, from 0 to 1: how much large fragments count.
    budget : int or None, default=4
        The largest cost of a bounded fragment, which has a column of its own; None for all fragments.
    damping : {"linear", "sqrt", "log1p"}, default="sqrt"
        The function of the number of occurrences of a fragment.
    rest : {"dense", "blocks"} or None, default=None
        How the row represents the fragments beyond the budget, if at all.
    rest_size : int, default=6144
        The number of columns of a dense rest.
    seed : int, default=0
        The seed of the hashes that determine columns and signs.
    normalize : bool, default=True
        Whether rows are divided by their length.
    dtype : {"float32", "float64"}, default="float32"
        The type of their values.
    version : int, default=1
        The format of rows; every change of the computed values raises it.

    Examples
    --------
    >>> SparseSpec(n_features=1000)
    Traceback (most recent call last):
    treedot.errors.ParameterError: n_features must be None or a power of two from 32 to 1073741824, not 1000
    """

    kind = "sparse"

    n_features: int | None = 2**20
    decay: float = 0.4
    budget: int | None = 4
    damping: str = "sqrt"
    rest: str | None = None
    rest_size: int = 6144
    seed: int = 0
    normalize: bool = True
    dtype: str = "float32"
    version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        self._check("rest_size")
        if self.budget is not None:
            object.__setattr__(self, "budget", checked_integer("budget", self.budget))
            if not 0 <= self.budget <= MAX_BUDGET:
                raise ParameterError(f"budget must be None or from 0 to {MAX_BUDGET}, not {self.budget}")
        if self.n_features is not None:
            width = checked_integer("n_features", self.n_features)
            object.__setattr__(self, "n_features", width)
            if not (32 <= width <= MAX_FEATURES and width & (width - 1) == 0):
                raise ParameterError(
                    f"n_features must be None or a power of two from 32 to {MAX_FEATURES}, not {width}"
                )
        checked_choice("damping", self.damping, DAMPINGS)
        checked_choice("rest", self.rest, (None, *RESTS))
        if self.rest is not None and self.damping != "linear":
            raise ParameterError(f"rest={self.rest!r} needs damping='linear', not {self.damping!r}")
        if self.rest is not None and (self.budget is None or self.budget > MAX_REST_BUDGET):
            raise ParameterError(
                f"rest={self.rest!r} needs a budget of at most {MAX_REST_BUDGET}, not {self.budget}"
            )
        if not 256 <= self.rest_size <= MAX_DIMENSIONS or self.rest_size % 256:
            raise ParameterError(
                f"rest_size must be a multiple of 256 up to {MAX_DIMENSIONS}, not {self.rest_size}"
            )

    @property
    def shift(self) -> int:
        """The number of bits by which to shift a key right to get its hashed column."""
        return 0 if self.n_features is None else 65 - self.n_features.bit_length()

    @property
    def rest_width(self) -> int:
        """The number of columns of the rest."""
        if self.rest == "blocks":
            return (self.n_features or MAX_FEATURES) // 2
        return self.rest_size if self.rest == "dense" else 0


def default_damping(rest: str | None) -> str:
    """Return the default damping; a rest allows only "linear"."""
    return "sqrt" if rest is None else "linear"


def spec_from_dict(fields: Mapping[str, Any]) -> DenseSpec | SparseSpec:
    """Return the spec that ``to_dict`` of either kind described, with or without a ``fingerprint``.

    Examples
    --------
    >>> spec = SparseSpec(budget=2)
    >>> spec_from_dict({**spec.to_dict(), "fingerprint": spec.fingerprint}) == spec
    True
    """
    for made in (DenseSpec, SparseSpec):
        if fields.get("kind") == made.kind:
            return made.from_dict(fields)
    raise SpecMismatchError(
        f"this does not describe a treedot spec: its kind is {fields.get('kind')!r}, "
        f"not {DenseSpec.kind!r} or {SparseSpec.kind!r}"
    )


S = TypeVar("S", DenseSpec, SparseSpec)


def spec_of(kind: type[S], *fields: Any) -> S:
    """Return a spec from a cache, since checking fields takes longer than encoding a tree."""
    try:
        known: S = _known(cast(Any, kind), *fields)
        return known
    except TypeError:  # an unhashable field: the constructor raises a clear error
        return kind(*fields)


@lru_cache(maxsize=64, typed=True)
def _known(kind: Any, *fields: Any) -> Any:
    return kind(*fields)


def too_large(what: str, spec: DenseSpec | SparseSpec) -> RangeError:
    """Return the error for a vector or row with values too large for its type."""
    options = [*([] if spec.normalize else ["normalize=True"]), *_longer_type(spec)]
    use = f"{', '.join(options)} or " if options else ""
    return RangeError(
        f"the {what} is too large for {spec.dtype} with decay={spec.decay}: use {use}a smaller decay"
    )


def not_finite(what: str, spec: DenseSpec | SparseSpec) -> RangeError:
    """Return the error for a vector or row with a NaN or infinite value."""
    options = " or ".join([*_longer_type(spec), "a smaller decay"])
    return RangeError(
        f"the {what} is not finite in {spec.dtype} with decay={spec.decay}: use {options}; this is a bug, "
        "please report the tree"
    )


def _longer_type(spec: DenseSpec | SparseSpec) -> list[str]:
    return ["dtype='float64'"] if spec.dtype == "float32" else []


def _checked_dtype(dtype: Any) -> str:
    try:
        name = str(np.dtype(dtype).name)
    except Exception:  # NumPy raises many types
        name = ""
    if name not in DTYPES:
        raise ParameterError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
    return name
