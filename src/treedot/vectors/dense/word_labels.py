"""Label vectors for similar words: those of one part of speech have the cosines of their word vectors.

These are definitions, as those of ``compositions`` are; the encoders pass their own, compiled mixers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce

import numpy as np

from treedot._runtime.array_types import BoolArray, FloatArray, IntArray
from treedot._runtime.hashing import keys
from treedot.errors import ParameterError
from treedot.kernels.word_vectors import WordVectors, part_of_speech
from treedot.vectors.dense.compositions import MixedProduct, Mixer
from treedot.vectors.dense.labels import bits, permutation

ROTATIONS = (3, 7, 11)  # of the mixers: three rounds of sixteen spread an element over 4096 others
KEPT = 64  # isometries: there are few parts of speech

Mix = Callable[[Mixer, FloatArray], FloatArray]


class Isometry:
    """A random linear map to more dimensions that keeps all dot products.

    Every element of the image takes one coordinate, with a random sign, and all coordinates are taken about
    equally often: so far no two of them meet. Three mixers, which keep dot products too, spread them.

    Parameters
    ----------
    dimensions, size : int
        From how many dimensions to how many.
    seed : int
        The map follows from it, the sizes, and the name.
    name : str
        Maps of different names are independent.
    """

    def __init__(self, dimensions: int, size: int, seed: int, name: str) -> None:
        self.coordinate: IntArray = permutation(seed, f"{name} coordinates", size) % dimensions
        self.negative: BoolArray = bits(keys(seed, [f"{name} signs"], "shuffle"), size)[0]
        self.length = np.sqrt(np.bincount(self.coordinate, minlength=dimensions))  # of a coordinate's image
        self.mixers = [Mixer(size, seed, f"{name} {turn}", turn) for turn in ROTATIONS]

    def __call__(self, vectors: FloatArray, mix: Mix = Mixer.__call__) -> FloatArray:
        """Return the image of vectors, one row each."""
        laid = np.take(vectors / self.length, self.coordinate, axis=1)
        signed: FloatArray = np.where(self.negative, -laid, laid)
        return reduce(lambda x, mixer: mix(mixer, x), self.mixers, signed)


class WordLabels:
    """The unit vectors of labels, of which some are words with vectors of their own.

    A word, such as ``dog::n``, is the image of its word vector, of length 1, under the random isometry of its
    part of speech. So the dot product of two words of one part of speech is the cosine of their word vectors.
    All other labels have their random signs, and all other dot products are 0 but for noise.

    Parameters
    ----------
    algebra : MixedProduct
        The vectors of labels that are no words, and the seed and size of all.
    words : WordVectors
        Words with their vectors, of no more dimensions than the algebra has.
    mix : callable
        What passes vectors through a mixer.

    Examples
    --------
    >>> labels = WordLabels(MixedProduct(8192), WordVectors({"dog": [3, 4], "cat": [4, 3]}))
    >>> dog, cat, other = labels(["dog::n", "cat::n", "cat::v"])
    >>> print(f"{dog @ cat:.4f}, {abs(dog @ other):.1f}")
    0.9600, 0.0
    """

    def __init__(self, algebra: MixedProduct, words: WordVectors, mix: Mix = Mixer.__call__) -> None:
        if words.n_dimensions > algebra.size:
            raise ParameterError(
                f"n_components must be at least {words.n_dimensions}, as many as the vectors of words have "
                f"dimensions, not {algebra.size}"
            )
        self.algebra, self.words, self.mix = algebra, words, mix
        self._isometry = lru_cache(KEPT)(self._make_isometry)

    def _make_isometry(self, part: str | None) -> Isometry:
        return Isometry(self.words.n_dimensions, self.algebra.size, self.algebra.seed, f"words {part}")

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of labels, one row each."""
        units, vectors = self.words.units(texts), np.empty((len(texts), self.algebra.size))
        is_word = units.any(axis=1)
        others = np.flatnonzero(~is_word)
        vectors[others] = self.algebra.label_vectors([texts[row] for row in others.tolist()])
        rows_of: dict[str | None, list[int]] = {}
        for row in np.flatnonzero(is_word).tolist():
            rows_of.setdefault(part_of_speech(texts[row]), []).append(row)
        for part, rows in rows_of.items():
            vectors[rows] = self._isometry(part)(units[rows], self.mix)
        return vectors
