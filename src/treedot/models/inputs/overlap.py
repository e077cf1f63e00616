"""The lexical overlap of a pair of trees: how many words of the hypothesis the text has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.hashing import keys
from treedot._runtime.sorted_arrays import locate
from treedot.errors import SourceError
from treedot.models.inputs.links import Pairs, distinct_words
from treedot.models.inputs.model_input import check_arrays, entry
from treedot.models.inputs.number_input import NumberInput, checked_scores
from treedot.models.inputs.table import Columns, Table
from treedot.vectors.sparse.idf import DocumentCounts, inverse_frequency

VERSION = 1  # of the overlap below: a change that alters it needs a new number
WIDTH = 1 << 63  # hashes of words, which are the columns of the counts


class LexicalOverlap(NamedTuple):
    """The share of the hypothesis's words that the text has too, where rare words weigh more.

    A word w that df of the N training trees (texts and hypotheses) hold has
    ``idf(w) = ln((N + 1) / (df + 1))``. The overlap is the sum of idf over the distinct words of the
    hypothesis that occur in the text, divided by the sum over all of them. Words are leaves in lower case.

    Examples
    --------
    >>> from treedot import read_trees
    >>> pairs = Pairs(read_trees(["(S (A a) (B b))", "(S (A c))"]), read_trees(["(S (A A))", "(S c d)"]))
    >>> LexicalOverlap.learned(pairs)(pairs).round(2)
    array([1.  , 0.36])
    """

    counts: DocumentCounts

    @classmethod
    def learned(cls, pairs: Pairs) -> Self:
        """Count the trees that hold each word."""
        names: dict[str, int] = {}
        found = [distinct_words(forest, names)[1] for forest in (pairs.texts, pairs.hypotheses)]
        columns = _columns(names)
        order = np.argsort(columns)
        counts = np.bincount(np.concatenate(found), minlength=columns.size)[order]
        return cls(DocumentCounts(columns[order], counts.astype(np.int64), 2 * len(pairs)))

    def __call__(self, pairs: Pairs) -> FloatArray:
        """Return the overlap of every pair; 0 where the hypothesis has no words with a weight."""
        names: dict[str, int] = {}
        hypothesis, asked = distinct_words(pairs.hypotheses, names)
        weight = self._weights(names)[asked]
        text, known = distinct_words(pairs.texts, names)
        shared, _ = locate(hypothesis * len(names) + asked, text * len(names) + known)
        whole, common = (
            np.bincount(hypothesis[which], weight[which], len(pairs)) for which in (slice(None), shared)
        )
        overlap: FloatArray = np.divide(common, whole, out=np.zeros(len(pairs)), where=whole > 0)
        return overlap

    def _weights(self, names: dict[str, int]) -> FloatArray:
        columns = _columns(names)
        known, place = locate(columns, self.counts.columns)
        documents = np.zeros(columns.size, np.int64)
        documents[known] = self.counts.counts[place]
        return inverse_frequency(documents, self.counts.n_trees) - 1.0


@dataclass(frozen=True, eq=False)
class OverlapInput(NumberInput):
    """The lexical overlap of the two tree columns of a pair, as a standard score.

    Examples
    --------
    >>> from treedot.models.inputs.table import read_table
    >>> each = OverlapInput.of_pair(("text", "hypothesis"))
    >>> rows = {"text": ["(S a b)", "(S a c)"], "hypothesis": ["(S b)", "(S b)"]}
    >>> table = read_table(rows, Columns(("text", "hypothesis"), pair=("text", "hypothesis")))
    >>> each.fitted(table)[1].ravel()
    array([ 1., -1.])
    """

    kind = "overlap"

    pair: tuple[str, ...]
    learned: LexicalOverlap | None = None  # from the training pairs, once fitted

    @classmethod
    def of_pair(cls, pair: tuple[str, ...]) -> Self:
        """Return an input that is not fitted yet."""
        return cls((f"overlap of {pair[0]} and {pair[1]}",), np.zeros(1), np.ones(1), pair)

    @property
    def reads(self) -> Columns:
        """The names of the columns of the pair, which other inputs read as trees."""
        return Columns((), pair=self.pair)

    def fitted(
        self,
        table: Table,
        y: Array | None = None,
        n_jobs: int | None = None,
        sample_weight: FloatArray | None = None,
    ) -> tuple[NumberInput, FloatArray]:
        """Return the input with the document frequencies, mean and deviation of the examples; and its rows.

        Document frequencies count every example once, whatever its weight, as those of rows do.
        """
        made = replace(self, learned=LexicalOverlap.learned(table[self.pair]))
        return super(OverlapInput, made).fitted(table, y, n_jobs, sample_weight)

    def _matrix(self, table: Table) -> FloatArray:
        assert self.learned is not None
        return self.learned(table[self.pair])[:, None]

    def config(self) -> dict[str, Any]:
        """Return the names of the columns, and the version."""
        return {"columns": list(self.pair), "version": VERSION}

    def arrays(self) -> dict[str, Array]:
        """Return the mean, the deviation and the document frequencies."""
        return super().arrays() | ({} if self.learned is None else self.learned.counts.arrays())

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Restore the input."""
        pair = entry(config, "columns", list)
        if len(pair) != 2 or not all(isinstance(name, str) for name in pair) or pair[0] == pair[1]:
            raise SourceError("an input of a pair does not name two columns")
        if config.get("version") != VERSION:
            raise SourceError(f"an input of a pair does not have version {VERSION}")
        counts = dict.fromkeys(("columns", "documents", "n_trees"), np.int64)
        check_arrays(arrays, {"mean": np.float64, "scale": np.float64, **counts})
        mean, scale = checked_scores(arrays, 1)
        learned = LexicalOverlap(DocumentCounts.from_arrays(arrays, WIDTH))
        return replace(cls.of_pair(tuple(pair)), mean=mean, scale=scale, learned=learned)


def _columns(names: dict[str, int]) -> IntArray:
    """Return the hash of every word, 63 bits."""
    return (keys(0, names, "word of a pair")[:, 0] >> np.uint64(1)).astype(np.int64)
