"""A column of texts as an input of a model: hashed n-grams of words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from treedot._runtime.array_types import Array
from treedot.errors import SourceError
from treedot.models.inputs.hashed_terms import (
    WORD,
    HashedTerms,
    HashedTermsInput,
    Terms,
    split_words,
    stored_counts,
)
from treedot.models.inputs.table import Columns, Table

VERSION = 2  # version of the rows; raise it if they change, and keep the older ones for stored models
LONGEST = 2  # words of the longest n-gram


@dataclass(frozen=True, eq=False)
class TextInput(HashedTermsInput):
    """A column of texts as sparse rows of their words and pairs of neighbouring words.

    A word is a run of letters and digits, or any other single character that is not a blank; identifiers are
    split at underscores and capitals, and case is ignored. An n-gram's hash determines its column and a
    random sign. Its value is the square root of its number of occurrences, times its inverse document
    frequency in the training texts, and rows are scaled to length 1, like rows of fragments.

    Rows of version 1, in models that were stored before, have no inverse document frequencies, and
    identifiers are whole.

    Examples
    --------
    >>> texts = Table({"q": ["Who wrote it?", "who wrote it ?", "Why?"]})
    >>> made, rows = TextInput("q").fitted(texts)
    >>> rows.shape, rows.nnz, bool(abs(rows[0] - rows[1]).sum() == 0)
    ((3, 1073741824), 17, True)
    """

    kind = "texts"

    column: str
    version: int = VERSION

    @property
    def reads(self) -> Columns:
        """The name of the column."""
        return Columns((), (), (self.column,))

    @property
    def learns(self) -> bool:
        """Whether rows have weights that depend on the training texts."""
        return self.version > 1

    def hashed_terms(self, table: Table) -> tuple[Terms, HashedTerms]:
        """Return the n-grams of all texts, and their columns and signs."""
        grams = [list(ngrams(WORDS[self.version](text))) for text in table[self.column]]
        number = {gram: k for k, gram in enumerate(dict.fromkeys(gram for text in grams for gram in text))}
        example = np.repeat(np.arange(len(grams)), np.array([len(text) for text in grams], np.int64))
        which = np.array([number[gram] for text in grams for gram in text], np.int64)
        terms = Terms(list(number), example, which, len(grams))
        return terms, HashedTerms.of(terms.names, "ngram")

    def config(self) -> dict[str, Any]:
        """Return the name of the column, and the version of the rows."""
        return {"column": self.column, "version": self.version}

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Restore the input."""
        column, version = config.get("column"), config.get("version")
        if not isinstance(column, str) or not isinstance(version, int) or version not in WORDS:
            raise SourceError("an input of texts lacks its column, or does not have version 1 or 2")
        return cls(column, version, counts=stored_counts(arrays, learns=version > 1))


def whole_words(text: str) -> list[str]:
    """Return the words of a text for rows of version 1, with whole identifiers."""
    return WORD.findall(text.casefold())


def ngrams(words: Sequence[str]) -> Iterator[str]:
    """Yield words, then the pairs of neighbouring words.

    Examples
    --------
    >>> list(ngrams(split_words("So it goes.")))
    ['so', 'it', 'goes', '.', 'so it', 'it goes', 'goes .']
    """
    for size in range(1, LONGEST + 1):
        for start in range(len(words) - size + 1):
            yield " ".join(words[start : start + size])


WORDS: dict[int, Callable[[str], list[str]]] = {1: whole_words, 2: split_words}  # by version
