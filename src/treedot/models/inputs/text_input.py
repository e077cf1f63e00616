"""A column of texts as an input of a model: hashed n-grams of words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from treedot._runtime.array_types import Array
from treedot._runtime.hashing import keys
from treedot.errors import SourceError
from treedot.models.inputs.model_input import StoredInput, check_arrays
from treedot.models.inputs.table import Columns, Table

VERSION = 1  # version of the rows; raise it if they change
LONGEST = 2  # words of the longest n-gram
BITS = 30  # bits of the hash that select the column; n-grams hardly ever collide
WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, eq=False)
class TextInput(StoredInput):
    """A column of texts as sparse rows of their words and pairs of neighbouring words.

    A word is a run of letters, digits and underscores, or any other single character that is not a blank;
    case is ignored. An n-gram's hash determines its column and a random sign. Its value is the square root of
    its number of occurrences, and rows are scaled to length 1, like rows of fragments. A row depends only on
    its own text.

    Examples
    --------
    >>> rows = TextInput("q").transform(Table({"q": ["Who wrote it?", "who wrote it ?"]}))
    >>> rows.shape, rows.nnz, bool(abs(rows[0] - rows[1]).sum() == 0)
    ((2, 1073741824), 14, True)
    """

    kind = "texts"
    is_dense = False

    column: str

    @property
    def reads(self) -> Columns:
        """The name of the column."""
        return Columns((), (), (self.column,))

    @property
    def width(self) -> int:
        """The number of columns of the hash."""
        return 1 << BITS

    def transform(self, table: Table, n_jobs: int | None = None) -> Any:
        """Return one row for each text."""
        from scipy.sparse import csr_matrix

        counts = [Counter(ngrams(text)) for text in table[self.column]]
        number = {gram: k for k, gram in enumerate(dict.fromkeys(g for count in counts for g in count))}
        hashed = keys(0, number, "ngram")[:, 0]
        which = np.array([number[gram] for count in counts for gram in count], np.int64)
        often = np.array([n for count in counts for n in count.values()], np.float64)
        indptr = np.cumsum([0, *map(len, counts)])
        lengths = np.sqrt(np.bincount(np.repeat(np.arange(len(counts)), np.diff(indptr)), often, len(counts)))
        values = np.sqrt(often) / np.repeat(lengths, np.diff(indptr))
        values[(hashed[which] & np.uint64(1)).astype(bool)] *= -1
        columns = (hashed >> np.uint64(64 - BITS)).astype(np.int32)[which]
        rows = csr_matrix((values.astype(np.float32), columns, indptr), (len(counts), self.width))
        rows.sum_duplicates()
        return rows

    def config(self) -> dict[str, Any]:
        """Return the name of the column, and the version of the rows."""
        return {"column": self.column, "version": VERSION}

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Restore the input."""
        check_arrays(arrays, {})
        if not isinstance(config.get("column"), str) or config.get("version") != VERSION:
            raise SourceError(f"an input of texts lacks its column, or does not have version {VERSION}")
        return cls(config["column"])


def ngrams(text: str) -> Iterator[str]:
    """Yield the words of a text, then its pairs of neighbouring words.

    Examples
    --------
    >>> list(ngrams("So it goes."))
    ['so', 'it', 'goes', '.', 'so it', 'it goes', 'goes .']
    """
    words = WORD.findall(text.casefold())
    for size in range(1, LONGEST + 1):
        for start in range(len(words) - size + 1):
            yield " ".join(words[start : start + size])
