"""Sparse rows of terms, such as words, with hashed columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.hashing import keys

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BITS = 30  # of the hash that select the column, so that terms hardly ever collide
WIDTH = 1 << BITS
WORD = re.compile(r"\w+|[^\w\s]")


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
