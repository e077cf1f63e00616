"""Sparse rows of terms, such as words, with hashed columns, and the inputs that make them."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.hashing import keys
from treedot._runtime.sorted_arrays import locate
from treedot.models.inputs.model_input import StoredInput, check_arrays
from treedot.models.inputs.table import Table
from treedot.vectors.sparse.idf import DocumentCounts, inverse_frequency

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BITS = 30  # of the hash that select the column, so that terms hardly ever collide
WIDTH = 1 << BITS
WORD = re.compile(r"\w+|[^\w\s]")
PARTS = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+")  # of snake_case and camelCase


def split_words(text: str) -> list[str]:
    """Return the words of a text, with identifiers split, without case.

    Examples
    --------
    >>> split_words("Call getName(file_name).")
    ['call', 'get', 'name', '(', 'file', 'name', ')', '.']
    """
    return WORD.findall(PARTS.sub(" ", text).casefold())


class Terms(NamedTuple):
    """The occurrences of terms in examples: ``names[number[k]]`` occurs in ``example[k]``."""

    names: Sequence[str]
    example: IntArray
    number: IntArray
    n_examples: int


class HashedTerms(NamedTuple):
    """The column of every term, and its sign."""

    column: IntArray
    sign: FloatArray

    @classmethod
    def of(cls, names: Sequence[str], domain: str) -> HashedTerms:
        """Hash the terms; the same term has another column in another domain."""
        hashed = keys(0, names, domain)[:, 0]
        column = (hashed >> np.uint64(64 - BITS)).astype(np.int64)
        return cls(column, np.where(hashed & np.uint64(1), -1.0, 1.0))


def term_rows(terms: Terms, hashed: HashedTerms, weights: FloatArray | None = None) -> csr_matrix:
    """Return one row of length 1 for each example.

    The value of a term is the square root of its number of occurrences, times its weight.
    """
    from scipy.sparse import csr_matrix

    n_terms = len(terms.names)
    pair, often = np.unique(terms.example * n_terms + terms.number, return_counts=True)
    example, number = np.divmod(pair, max(n_terms, 1))
    factor = np.ones(often.size) if weights is None else weights[number]
    lengths = np.sqrt(np.bincount(example, often * factor**2, terms.n_examples))
    values = hashed.sign[number] * factor * np.sqrt(often) / lengths[example]
    indptr = np.searchsorted(example, np.arange(terms.n_examples + 1))
    columns = hashed.column[number].astype(np.int32)
    rows = csr_matrix((values.astype(np.float32), columns, indptr), (terms.n_examples, WIDTH))
    rows.sum_duplicates()
    return rows


@dataclass(frozen=True, eq=False)
class HashedTermsInput(StoredInput):
    """An input of terms, with weights that depend on the training examples if it learns."""

    is_dense = False

    counts: DocumentCounts | None = field(default=None, kw_only=True)  # of the training examples, once fitted

    @abstractmethod
    def hashed_terms(self, table: Table) -> tuple[Terms, HashedTerms]:
        """Return the terms of all examples, and their columns and signs."""

    @property
    def width(self) -> int:
        """The number of columns of the hash."""
        return WIDTH

    def fitted(
        self,
        table: Table,
        y: Array | None = None,
        n_jobs: int | None = None,
        sample_weight: FloatArray | None = None,
    ) -> tuple[Self, csr_matrix]:
        """Return the input with the document frequencies of the examples, and their rows."""
        terms, hashed = self.hashed_terms(table)
        made = self
        if self.learns:
            made = replace(self, counts=DocumentCounts.of([term_rows(terms, hashed)]))
        return made, term_rows(terms, hashed, made.weights(hashed.column))

    def transform(self, table: Table, n_jobs: int | None = None) -> csr_matrix:
        """Return one row for each example."""
        terms, hashed = self.hashed_terms(table)
        return term_rows(terms, hashed, self.weights(hashed.column))

    def weights(self, columns: IntArray) -> FloatArray | None:
        """Return the inverse document frequency of each column; None if all are 1."""
        if self.counts is None:
            return None
        known, place = locate(columns, self.counts.columns)
        counts = np.zeros(columns.size, np.int64)
        counts[known] = self.counts.counts[place]
        return inverse_frequency(counts, self.counts.n_trees)

    def arrays(self) -> dict[str, Array]:
        """Return the document frequencies."""
        return {} if self.counts is None else self.counts.arrays()


def stored_counts(arrays: Mapping[str, Array], learns: bool) -> DocumentCounts | None:
    """Return the document frequencies of a stored input; raise SourceError if they are damaged."""
    check_arrays(arrays, dict.fromkeys(("columns", "documents", "n_trees") if learns else (), np.int64))
    return DocumentCounts.from_arrays(arrays, WIDTH) if learns else None
