"""Label vectors for similar words: within a part of speech, they have the cosines of their word vectors.

Like ``compositions``, this module holds definitions; the encoders pass compiled mixers.
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

ROTATIONS = (3, 7, 11)  # rotations of the mixers; three rounds of 16 spread an element over 4096 others
KEPT = 64  # isometries in the cache; there are few parts of speech

Mix = Callable[[Mixer, FloatArray], FloatArray]


class Isometry:
    """A random linear map to more dimensions that preserves all dot products.

    Every element of the image is first a copy of one coordinate, with a random sign; all coordinates are
    copied about equally often. Then three mixers, which preserve dot products too, spread the elements.

    Parameters
    ----------
    dimensions, size : int
        The number of dimensions before and after.
    seed : int
        The seed of the map.
    name : str
        Maps with different names are independent.
    """

    def __init__(self, dimensions: int, size: int, seed: int, name: str) -> None:
        self.coordinate: IntArray = permutation(seed, f"{name} coordinates", size) % dimensions
        self.negative: BoolArray = bits(keys(seed, [f"{name} signs"], "shuffle"), size)[0]
        self.length = np.sqrt(np.bincount(self.coordinate, minlength=dimensions))  # lengths of the images
        self.mixers = [Mixer(size, seed, f"{name} {turn}", turn) for turn in ROTATIONS]

    def __call__(self, vectors: FloatArray, mix: Mix = Mixer.__call__) -> FloatArray:
        """Return the image of vectors, one row each."""
        laid = np.take(vectors / self.length, self.coordinate, axis=1)
        signed: FloatArray = np.where(self.negative, -laid, laid)
        return reduce(lambda x, mixer: mix(mixer, x), self.mixers, signed)


class WordLabels:
    """The unit vectors of labels, some of which are words with word vectors.

    The vector of a word, such as ``dog::n``, is the image of its normalised word vector under the random
    isometry of its part of speech. So the dot product of two words of one part of speech is the cosine of
    their word vectors. All other labels are random signs, and all other dot products are noise around 0.

    Parameters
    ----------
    algebra : MixedProduct
        The source of the vectors of other labels, with the seed and size.
    words : WordVectors
        Words with their vectors, of at most as many dimensions as the algebra has.
    mix : callable
        Applies a mixer to vectors.

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
                f"n_components must be at least {words.n_dimensions}, the number of dimensions of the word "
                f"vectors, not {algebra.size}"
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
