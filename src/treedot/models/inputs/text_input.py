"""A column of texts as an input of a model: hashed n-grams of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from treedot._runtime.array_types import Array
from treedot.errors import SourceError
from treedot.models.inputs.hashed_terms import WIDTH, WORD, HashedTerms, Terms, term_rows
from treedot.models.inputs.model_input import StoredInput, check_arrays
from treedot.models.inputs.table import Columns, Table

VERSION = 1  # version of the rows; raise it if they change
LONGEST = 2  # words of the longest n-gram


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
        return WIDTH

    def transform(self, table: Table, n_jobs: int | None = None) -> Any:
        """Return one row for each text."""
        grams = [list(ngrams(text)) for text in table[self.column]]
        number = {gram: k for k, gram in enumerate(dict.fromkeys(gram for text in grams for gram in text))}
        example = np.repeat(np.arange(len(grams)), np.array([len(text) for text in grams], np.int64))
        which = np.array([number[gram] for text in grams for gram in text], np.int64)
        terms = Terms(list(number), example, which, len(grams))
        return term_rows(terms, HashedTerms.of(terms.names, "ngram"))

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
