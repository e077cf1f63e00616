"""Turn trees into rows of fragments, given settings, weights and learned columns; save and load these.

``FragmentVectorizer`` is the scikit-learn estimator that makes ``FittedRows``. Indexes and models hold
``FittedRows``, so they do not need scikit-learn.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray, WordArray
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.errors import LimitError, SourceError
from treedot.kernels import SubsetTreeKernel
from treedot.trees import Forest
from treedot.vectors.encoder_cache import kept_encoder, trim_encoders
from treedot.vectors.files import VECTORIZER_FORMAT, check_is
from treedot.vectors.sparse.dictionary import FragmentDictionary
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.sparse.idf import DocumentCounts, checked_idf, inverse_frequency
from treedot.vectors.sparse.rows import LearnedColumns
from treedot.vectors.spec import SparseSpec, default_damping

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BESIDE_SPEC = ("idf", "parameters")  # settings that are not fields of the spec


class FittedRows(NamedTuple):
    """Everything that determines the rows of a fitted ``FragmentVectorizer``; it turns trees into rows.

    ``learned`` is the dictionary if ``spec.n_features`` is None, or the number of trees that hold each column
    if ``idf`` is True. ``parameters`` holds parameters of the vectorizer that do not change rows: ``damping``
    as the user passed it, and ``n_jobs``.
    """

    spec: SparseSpec
    idf: bool | FloatArray = False
    learned: FragmentDictionary | DocumentCounts | None = None
    parameters: dict[str, Any] | None = None

    def transform(self, forest: Forest, n_jobs: int | None = None) -> csr_matrix:
        """Return the rows of trees; the encoder is kept for the next call.

        ``n_jobs`` is the number of threads if ``parameters`` does not set it.
        """
        own = (self.parameters or {}).get("n_jobs")
        try:
            return encode_rows(self.encoder(), forest, n_jobs if own is None else own)
        finally:
            trim_encoders()

    def encoder(self) -> SparseEncoder:
        """Return the encoder that all rows with equal settings share."""
        if self.counted is not None:
            for array in self.counted[:2]:  # the encoder would not notice a change
                array.setflags(write=False)
        return kept_encoder(self.spec, self._identity, self.make_encoder)

    def make_encoder(self) -> SparseEncoder:
        """Return a new encoder, which is not shared."""
        return SparseEncoder(self.spec, self._learned_columns())

    @property
    def n_columns(self) -> int | None:
        """The number of columns, without those of a rest; None if they are yet to be learned."""
        if isinstance(self.learned, FragmentDictionary):
            return len(self.learned)
        return self.spec.n_features

    @property
    def settings(self) -> dict[str, Any]:
        """Everything except the arrays, as plain JSON values; ``idf`` is "given" if it is an array."""
        idf = self.idf if isinstance(self.idf, bool) else "given"
        return self.spec.to_dict() | {"idf": idf, "parameters": self.parameters or {}}

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays of weights and learned columns, by name."""
        weights = {} if isinstance(self.idf, bool) else {"idf": self.idf}
        return weights | ({} if self.learned is None else self.learned.arrays())

    @property
    def fingerprint(self) -> str:
        """A short stable name of everything that determines a row."""
        return fingerprint_of(self.settings, self.arrays)

    @classmethod
    def from_stored(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Return what ``settings`` and ``arrays`` describe; raise if they contradict each other."""
        spec, idf, parameters = _spec_in(settings), settings.get("idf", False), settings.get("parameters", {})
        if not isinstance(parameters, dict):
            raise _not_a_state("its parameters are missing")
        if idf not in (True, False, "given") or (idf == "given") != ("idf" in arrays):
            raise _not_a_state("its idf is missing or unexpected")
        damping = parameters.get("damping", spec.damping)
        if spec.damping != (default_damping(spec.rest) if damping is None else damping):
            raise _not_a_state("its damping does not match its settings")
        weights = np.asarray(arrays["idf"]) if idf == "given" else bool(idf)
        learned: FragmentDictionary | DocumentCounts | None = None
        n_columns = spec.n_features
        if n_columns is None:
            learned = FragmentDictionary.from_arrays(arrays)
            n_columns = len(learned)
        elif weights is True:
            learned = DocumentCounts.from_arrays(arrays, n_columns)
        return cls(spec, checked_idf(weights, n_columns, spec.rest), learned, parameters)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, atomically."""
        arrays, settings = self.arrays, self.settings
        description = {"format": VECTORIZER_FORMAT, "settings": settings}
        write_arrays(path, description | {"fingerprint": fingerprint_of(settings, arrays)}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that ``save`` wrote; raise if its content does not match its fingerprint."""
        check_is(path, "FragmentVectorizer.load")
        description, arrays = read_arrays(path)
        if description.get("format") != VECTORIZER_FORMAT:
            raise SourceError(f"{os.fspath(path)} does not hold a FragmentVectorizer")
        settings = description.get("settings")
        if not isinstance(settings, dict):
            raise SourceError(f"{os.fspath(path)} is damaged: it has no settings")
        if fingerprint_of(settings, arrays) != description.get("fingerprint"):
            raise SourceError(f"{os.fspath(path)} is damaged: its content does not match its fingerprint")
        return cls.from_stored(settings, arrays)

    @property
    def counted(self) -> DocumentCounts | None:
        """The learned columns, with keys instead of columns for a dictionary."""
        if isinstance(self.learned, FragmentDictionary):
            return DocumentCounts(self.learned.key, self.learned.documents, self.learned.n_trees)
        return self.learned

    @property
    def _identity(self) -> tuple[Any, ...]:
        """The arrays and numbers that, with the spec, determine the encoder."""
        weights = () if isinstance(self.idf, bool) else (self.idf,)
        if self.counted is None:
            return weights
        return self.counted if self.idf is True else (self.counted.columns, *weights)

    def _learned_columns(self) -> LearnedColumns | None:
        """Return the columns and weights in the form that compiled code needs."""
        weights = None if isinstance(self.idf, bool) else self.idf
        if self.counted is None:
            if weights is None:
                return None
            return LearnedColumns.make(_first_bits(np.arange(weights.size), self.spec), weights)
        columns, counts, n_trees = self.counted
        # A copy, since Numba would compile the code again for read-only arrays.
        key = columns.copy() if self.spec.n_features is None else _first_bits(columns, self.spec)
        if self.idf is True:
            unseen = float(inverse_frequency(np.zeros(1), n_trees)[0])
            return LearnedColumns.make(key, inverse_frequency(counts, n_trees), unseen)
        return LearnedColumns.make(key, weights)


def fingerprint_of(settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """Return the fingerprint of the ``FittedRows`` that settings and arrays describe."""
    spec, idf = _spec_in(settings), settings.get("idf", False)
    if not arrays and not idf:
        return spec.fingerprint
    digest = hashlib.blake2b(f"{spec.fingerprint} {idf}".encode(), digest_size=8)
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _spec_in(settings: Mapping[str, Any]) -> SparseSpec:
    return SparseSpec.from_dict({name: x for name, x in settings.items() if name not in BESIDE_SPEC})


def _not_a_state(why: str) -> SourceError:
    return SourceError(f"this is not the state of a FragmentVectorizer: {why}")


def encode_rows(encoder: SparseEncoder, forest: Forest, n_jobs: int | None = None) -> csr_matrix:
    """Return the rows of trees; rows with a rest are scaled to the exact length √K(a, a)."""
    spec = encoder.spec
    log_norms = None if spec.rest is None else exact_log_norms(forest, spec.decay, n_jobs)
    return encoder.encode(forest, log_norms, n_jobs)


def exact_log_norms(forest: Forest, decay: float, n_jobs: int | None = None) -> FloatArray:
    """Return the logarithms of √K(a, a); raise for the first tree that is too large for the exact kernel."""
    kernel = SubsetTreeKernel(decay)
    try:
        return kernel.log_norms(forest, n_jobs=n_jobs)
    except LimitError:
        for i in range(len(forest)):
            try:
                kernel.log_norms(forest[[i]])
            except LimitError as error:
                raise LimitError(
                    f"a rest needs the exact length of tree {i + 1} ({forest.sizes[i]} nodes), which cannot "
                    f"be computed ({error.args[0].split(':')[0]}): use rest=None"
                ) from None
        raise


def _first_bits(columns: IntArray, spec: SparseSpec) -> WordArray:
    """Return hashed columns as keys: a column is the first bits of a key."""
    return columns.astype(np.uint64) << np.uint64(spec.shift)
