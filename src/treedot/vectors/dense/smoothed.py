"""Dense vectors of partial trees in which similar words have similar labels, compiled.

The recursion is the one in ``partial``, but labels are rows of numbers, not of signs: see
``treedot.vectors.dense.word_labels``. Every label has three rows of norm √d: two mixed and one plain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray, Matrix, Row
from treedot._runtime.jit import njit_borrowing
from treedot.kernels.word_vectors import WordVectors
from treedot.vectors.dense.compositions import MixedProduct, Mixer
from treedot.vectors.dense.mixing import EDGE, UNMIX, Shuffle, Sum, mix_plus, sign_words, targets
from treedot.vectors.dense.partial import Labels, PartialEncoder
from treedot.vectors.dense.word_labels import WordLabels


class SmoothedEncoder(PartialEncoder):
    """Encodes partial trees of similar words with the mixed product."""

    def __init__(self, algebra: MixedProduct, words: WordVectors, dtype: str) -> None:
        super().__init__(algebra)
        self.labels, self.dtype = WordLabels(algebra, words, _mixed), dtype
        self.label_bound = math.sqrt(algebra.size)  # the norm of every label

    def label_table(self, texts: Sequence[str]) -> Any:
        """Return the vectors of labels, mixed and plain."""
        plain = (self.labels(texts) * math.sqrt(self.algebra.size)).astype(self.dtype)
        head, child = np.empty_like(plain), np.empty_like(plain)
        edge = np.empty(EDGE, plain.dtype)
        _mix_rows(plain, self.m1, edge, head)
        _mix_rows(plain, self.m2, edge, child)
        return Labels(head, child, plain)


def _mixed(mixer: Mixer, vectors: FloatArray) -> FloatArray:
    """Return the images of vectors under a mixer, one row each; like ``mixer(vectors)``, but compiled."""
    rows = np.ascontiguousarray(vectors)  # as compiled code reads them
    out = np.empty_like(rows)
    shuffle = Shuffle(targets(mixer), sign_words(mixer.negative[None])[0], mixer.rotation)
    _mix_rows(rows, shuffle, np.empty(EDGE, rows.dtype), out)
    return out


@njit_borrowing
def _mix_rows(rows: Matrix, shuffle: Shuffle, edge: Row, out: Matrix) -> None:
    """Write the images of rows under a mixer to out."""
    number = rows.dtype.type
    plus = Sum(number(0), shuffle.signs, number(UNMIX), shuffle.signs)
    for k in range(len(rows)):
        mix_plus(rows[k], shuffle, plus, edge, out[k])
