"""What turns trees into rows of fragments, without scikit-learn: settings, weights, and what was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, WordArray
from treedot.errors import LimitError
from treedot.kernels import SubsetTreeKernel
from treedot.trees import Forest
from treedot.vectors.sparse.dictionary import FragmentDictionary
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.sparse.fitted_state import VectorizerState
from treedot.vectors.sparse.idf import DocumentCounts, checked_idf, inverse_frequency
from treedot.vectors.sparse.rows import LearnedColumns
from treedot.vectors.spec import SparseSpec

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class FragmentRows(NamedTuple):
    """All that determines the rows of a fitted ``FragmentVectorizer``.

    ``learned`` is the dictionary where the spec has no number of columns, and how many trees hold each
    column where ``idf`` is True.
    """

    spec: SparseSpec
    idf: bool | FloatArray = False
    learned: FragmentDictionary | DocumentCounts | None = None

    @classmethod
    def from_state(cls, state: VectorizerState) -> Self:
        """Return what a vectorizer's description holds, checked."""
        spec, idf = state.spec, state.idf
        learned: FragmentDictionary | DocumentCounts | None = None
        if spec.n_features is None:
            learned = state.dictionary
        elif idf is True:
            learned = state.documents
        n_columns = len(learned) if isinstance(learned, FragmentDictionary) else spec.n_features
        return cls(spec, checked_idf(idf, n_columns, spec.rest), learned)

    def state(self, parameters: dict[str, Any] | None = None) -> VectorizerState:
        """Return everything as JSON values and arrays, with parameters that the spec does not tell."""
        return VectorizerState.make(self.spec, self.idf, self.learned, parameters or {})

    @property
    def identity(self) -> tuple[Any, ...]:
        """What the encoder depends on besides the spec: arrays and numbers."""
        weights = (self.idf,) if isinstance(self.idf, np.ndarray) else ()
        counted = self.counted
        if counted is None:
            return weights
        return counted if self.idf is True else (counted.columns, *weights)

    def make_encoder(self) -> SparseEncoder:
        """Return what encodes forests."""
        return SparseEncoder(self.spec, self._learned_columns())

    @property
    def counted(self) -> DocumentCounts | None:
        """The columns that were learned, those of a dictionary by their keys."""
        if isinstance(self.learned, FragmentDictionary):
            return DocumentCounts(self.learned.key, self.learned.documents, self.learned.n_trees)
        return self.learned

    def _learned_columns(self) -> LearnedColumns | None:
        """Return what compiled code has to know of columns and weights."""
        counted = self.counted
        if counted is None:
            if isinstance(self.idf, bool):
                return None
            return LearnedColumns.make(_first_bits(np.arange(self.idf.size), self.spec), self.idf)
        columns, counts, n_trees = counted
        # A copy, since compiled code for arrays that are read-only would be another.
        key = columns.copy() if self.spec.n_features is None else _first_bits(columns, self.spec)
        if self.idf is True:
            unseen = float(inverse_frequency(np.zeros(1), n_trees)[0])
            return LearnedColumns.make(key, inverse_frequency(counts, n_trees), unseen)
        return LearnedColumns.make(key, None if isinstance(self.idf, bool) else self.idf)


def encode_rows(encoder: SparseEncoder, forest: Forest, n_jobs: int | None = None) -> csr_matrix:
    """Return the rows of trees; those with a rest get the length that the exact kernel says."""
    spec = encoder.spec
    log_norms = None if spec.rest is None else exact_log_norms(forest, spec.decay, n_jobs)
    return encoder.encode(forest, log_norms, n_jobs)


def exact_log_norms(forest: Forest, decay: float, n_jobs: int | None = None) -> FloatArray:
    """Return the logarithms of the exact lengths, or say which tree is too much for the exact kernel."""
    kernel = SubsetTreeKernel(decay)
    try:
        return kernel.log_norms(forest, n_jobs=n_jobs)
    except LimitError:
        for i in range(len(forest)):
            try:
                kernel.log_norms(forest[[i]])
            except LimitError as error:
                raise LimitError(
                    f"the exact length of tree {i + 1} ({forest.sizes[i]} nodes), which a rest is scaled to, "
                    f"is out of reach ({error.args[0].split(':')[0]}): use rest=None"
                ) from None
        raise


def _first_bits(columns: IntArray, spec: SparseSpec) -> WordArray:
    """Return the first bits of the keys in hashed columns."""
    return columns.astype(np.uint64) << np.uint64(spec.shift)
