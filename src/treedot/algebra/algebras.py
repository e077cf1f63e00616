"""The compositions a ⋄ b: label vectors, the operation and the fold, which belong together.

Vectors are float64 arrays whose last axis has ``size`` elements, so that many pairs compose at once.
These are the definitions; ``treedot.encode`` computes the same on packed forests, fast.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from treedot.algebra.labels import bits, gaussian_units, keys, permutation
from treedot.errors import ParameterError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Algebra(ABC):
    """A bilinear composition of vectors that nearly keeps norms and nearly never maps two things to one.

    Parameters
    ----------
    size : int
        The dimension d of the vectors.
    seed : int
        Every random choice follows from it.
    """

    name: str
    folds_left: bool

    def __init__(self, size: int, seed: int = 0) -> None:
        self.check_size(size)
        self.size = size
        self.seed = seed

    @classmethod
    @abstractmethod
    def check_size(cls, size: int) -> None:
        """Raise where the algebra cannot work with ``size`` dimensions."""

    @abstractmethod
    def label_vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return the nearly orthonormal vectors of labels, one row each."""

    @abstractmethod
    def compose(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return a ⋄ b."""

    def fold(self, vectors: Sequence[FloatArray]) -> FloatArray:
        """Return v1 ⋄ v2 ⋄ … ⋄ vn with the brackets where the algebra puts them."""
        if self.folds_left:
            return reduce(self.compose, vectors)
        return reduce(lambda right, left: self.compose(left, right), reversed(vectors))


class _Shuffled(Algebra):
    """What the paper's two compositions share: Gaussian labels, two permutations, the right fold."""

    folds_left = False

    def __init__(self, size: int, seed: int = 0) -> None:
        super().__init__(size, seed)
        self.p1: IntArray = permutation(seed, "p1", size)
        self.p2: IntArray = permutation(seed, "p2", size)

    def label_vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors with Gaussian directions."""
        return gaussian_units(self.seed, texts, self.size)


class ShuffledProduct(_Shuffled):
    """The paper's shuffled γ-product: a ⊠ b = γ · p1(a) ⊗ p2(b).

    γ is the reciprocal of the root mean square norm of the element-wise product of two unit vectors
    with independent uniform directions, which is exactly 1/√d.
    """

    name = "product"

    @classmethod
    def check_size(cls, size: int) -> None:
        """Raise unless there is at least one dimension."""
        if size < 1:
            raise ParameterError(f"n_components must be at least 1, not {size}")

    def compose(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return a ⊠ b."""
        return math.sqrt(self.size) * a[..., self.p1] * b[..., self.p2]


class ShuffledConvolution(_Shuffled):
    """The paper's shuffled circular convolution: a ⊡ b = p1(a) ⊙ p2(b)."""

    name = "convolution"

    @classmethod
    def check_size(cls, size: int) -> None:
        """Raise unless the size is a power of two, which the Fourier transform needs."""
        if size < 2 or size & (size - 1):
            raise ParameterError(
                f"n_components must be a power of two for composition='convolution', not {size}"
            )

    def compose(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return a ⊡ b."""
        spectrum = np.fft.rfft(a[..., self.p1]) * np.fft.rfft(b[..., self.p2])
        return np.fft.irfft(spectrum, self.size)


class Mixer:
    """A random orthogonal map in O(d): butterflies across the four quarters, then a signed shuffle.

    With q = d/4, the four elements ``p, p + q, p + 2q, p + 3q`` pass through the 4-point Hadamard
    matrix over 2; each quarter is rotated left by ``rotation``; block ``k`` of 16 elements is taken
    from block ``source[k]``; random elements change sign.
    """

    LANES = 16

    def __init__(self, size: int, seed: int, name: str, rotation: int) -> None:
        self.size = size
        self.rotation = rotation
        self.source: IntArray = permutation(seed, f"{name} blocks", size // self.LANES)
        self.negative: BoolArray = bits(keys(seed, [f"{name} signs"], "shuffle"), size)[0]

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """Return the image of vectors (last axis)."""
        a, b, c, d = np.moveaxis(vectors.reshape(*vectors.shape[:-1], 4, -1), -2, 0)
        mixed = np.stack([a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d], axis=-2)
        moved = self._moved(mixed / 2)
        return np.where(self.negative, -moved, moved)

    def of_signs(self, negative: BoolArray) -> BoolArray:
        """Return where the image is negative, for sign vectors with an odd number of minus signs per four."""
        a, b, c, d = np.moveaxis(negative.reshape(*negative.shape[:-1], 4, -1), -2, 0)
        mixed = np.stack(
            [_three(a, b, c, d), _three(a, ~b, c, ~d), _three(a, b, ~c, ~d), _three(a, ~b, ~c, d)], axis=-2
        )
        return self._moved(mixed) ^ self.negative

    def _moved(self, quarters: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rotated = np.roll(quarters, -self.rotation, axis=-1)
        blocks = rotated.reshape(*quarters.shape[:-2], -1, self.LANES)
        return blocks[..., self.source, :].reshape(*quarters.shape[:-2], self.size)


def _three(a: BoolArray, b: BoolArray, c: BoolArray, d: BoolArray) -> BoolArray:
    """Whether three of four are true: then and only then the sum of an odd quadruple is negative."""
    return (a & b & (c | d)) | (c & d & (a | b))


class MixedProduct(Algebra):
    """The default: a ⋄ b = √d · M1(a) ⊗ M2(b), with two mixers, sign labels and the left fold.

    A label is a vector of signs over √d in which every four elements that a mixer combines hold an
    odd number of minus signs. The Hadamard matrix over 2 maps such a quadruple to signs again (it is
    a bent function of two variables), so labels stay signs as left and as right operand, while
    sums of fragments are mixed, which keeps their norms from scattering as a product alone does.
    """

    name = "mixed"
    folds_left = True

    def __init__(self, size: int, seed: int = 0) -> None:
        super().__init__(size, seed)
        self.m1 = Mixer(size, seed, "m1", rotation=5)
        self.m2 = Mixer(size, seed, "m2", rotation=11)

    @classmethod
    def check_size(cls, size: int) -> None:
        """Raise unless the size is a multiple of four quarters of whole blocks."""
        if size < 64 or size % 64:
            raise ParameterError(
                f"n_components must be a positive multiple of 64 for composition='mixed', not {size}"
            )

    def negative_labels(self, texts: Sequence[str]) -> BoolArray:
        """Return where the label vectors are negative, one row per label."""
        quarter = self.size // 4
        three = bits(keys(self.seed, texts, "label"), 3 * quarter).reshape(-1, 3, quarter)
        fourth = ~(three[:, 0] ^ three[:, 1] ^ three[:, 2])
        return np.concatenate([three, fourth[:, None]], axis=1).reshape(len(three), self.size)

    def label_vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return vectors of signs over √d."""
        return np.where(self.negative_labels(texts), -1.0, 1.0) / math.sqrt(self.size)

    def compose(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return a ⋄ b."""
        return math.sqrt(self.size) * self.m1(a) * self.m2(b)


ALGEBRAS: dict[str, type[Algebra]] = {
    algebra.name: algebra for algebra in (MixedProduct, ShuffledProduct, ShuffledConvolution)
}


def algebra_class(name: str) -> type[Algebra]:
    """Return the algebra with a composition name."""
    try:
        return ALGEBRAS[name]
    except (KeyError, TypeError):
        raise ParameterError(f"unknown composition {name!r}: use one of {', '.join(ALGEBRAS)}") from None
