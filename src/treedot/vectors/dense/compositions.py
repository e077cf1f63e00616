"""Compositions a ⋄ b of two vectors: the vectors of labels, the operation, and the order of a fold.

Vectors are float64 arrays whose last axis has ``size`` elements, so many pairs can be composed at once.
These are the definitions; the encoders in this package compute the same on packed forests, fast.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache, reduce

import numpy as np

from treedot._runtime.array_types import Array, BoolArray, FloatArray, IntArray
from treedot._runtime.hashing import keys
from treedot.errors import ParameterError
from treedot.vectors.dense.labels import bits, gaussian_units, permutation, uniform_integers


class Algebra(ABC):
    """A bilinear composition of vectors that nearly keeps norms and keeps different fragments apart.

    Parameters
    ----------
    size : int
        The dimension d of the vectors.
    seed : int
        The seed of all random choices.
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
        """Raise if the algebra does not support ``size`` dimensions."""

    @abstractmethod
    def label_vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return the nearly orthonormal vectors of labels, one row each."""

    @abstractmethod
    def compose(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return a ⋄ b."""

    def fold(self, vectors: Sequence[FloatArray]) -> FloatArray:
        """Return v1 ⋄ v2 ⋄ … ⋄ vn, bracketed from the left or from the right as the algebra requires."""
        if self.folds_left:
            return reduce(self.compose, vectors)
        return reduce(lambda right, left: self.compose(left, right), reversed(vectors))


class _Shuffled(Algebra):
    """The base of the paper's two compositions: Gaussian labels, two permutations, the right fold."""

    folds_left = False

    def __init__(self, size: int, seed: int = 0) -> None:
        super().__init__(size, seed)
        self.p1: IntArray = permutation(seed, "p1", size)
        self.p2: IntArray = permutation(seed, "p2", size)

    def label_vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors with Gaussian directions."""
        return gaussian_units(self.seed, texts, self.size)


class ShuffledProduct(_Shuffled):
    """The paper's shuffled γ-product: a ⊠ b = γ · p1(a) ⊗ p2(b), with γ = √d.

    The element-wise product of two random unit vectors has the norm 1/√d (root mean square); γ compensates
    for it.
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
        """Raise unless the Fourier transform supports the size."""
        if size < 32 or size & (size - 1):
            raise ParameterError(
                f"n_components must be a power of two, at least 32, for composition='convolution', not {size}"
            )

    def compose(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return a ⊡ b."""
        spectrum = np.fft.rfft(a[..., self.p1]) * np.fft.rfft(b[..., self.p2])
        return np.fft.irfft(spectrum, self.size)


class Mixer:
    """A random orthogonal map in O(d): butterflies across sixteen segments, then a signed shuffle.

    With q = d/16, the elements ``p, p + q, …, p + 15q`` pass through the 16-point Hadamard matrix
    over 4; each segment of q elements is rotated left by ``rotation``; block ``k`` of 16 elements is
    taken from block ``source[k]``; random elements change sign.
    """

    POINTS = 16
    LANES = 16

    def __init__(self, size: int, seed: int, name: str, rotation: int) -> None:
        self.size = size
        self.rotation = rotation
        self.source: IntArray = permutation(seed, f"{name} blocks", size // self.LANES)
        self.negative: BoolArray = bits(keys(seed, [f"{name} signs"], "shuffle"), size)[0]

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """Return the image of vectors (last axis)."""
        segments = vectors.reshape(*vectors.shape[:-1], self.POINTS, -1)
        moved = self.move(hadamard(segments) / 4)
        return np.where(self.negative, -moved, moved)

    def move(self, segments: Array) -> Array:
        """Rotate segments and shuffle blocks: the mixer's steps after the butterflies, except the signs."""
        rotated = np.roll(segments, -self.rotation, axis=-1)
        blocks = rotated.reshape(*segments.shape[:-2], -1, self.LANES)
        return blocks[..., self.source, :].reshape(*segments.shape[:-2], self.size)


def hadamard(x: FloatArray) -> FloatArray:
    """Return the 16-point Hadamard transform along the second-to-last axis, in four stages."""
    for _ in range(4):
        even, odd = x[..., 0::2, :], x[..., 1::2, :]
        x = np.concatenate([even + odd, even - odd], axis=-2)
    return x


@cache
def bent_signs() -> tuple[BoolArray, BoolArray]:
    """Return all vectors of 16 signs whose Hadamard transform, over 4, is signs again, and the transforms.

    True means minus. These vectors are the 896 bent functions of four variables.
    """
    every = (np.arange(2**16)[:, None] >> np.arange(16)) & 1 == 1
    image = hadamard(np.where(every, -1.0, 1.0)[:, :, None])[:, :, 0]
    flat = (np.abs(image) == 4).all(axis=1)
    return every[flat], image[flat] < 0


class MixedProduct(Algebra):
    """The default: a ⋄ b = √d · M1(a) ⊗ M2(b), with two mixers, sign labels and the left fold.

    A label is a vector of signs over √d in which every sixteen elements that a mixer combines are
    one of the 896 sign vectors that the Hadamard matrix over 4 maps to signs again. So labels stay
    signs as left and as right operand, while sums of fragments are mixed. Mixing keeps their norms
    from scattering, which they would with a plain product.
    """

    name = "mixed"
    folds_left = True

    def __init__(self, size: int, seed: int = 0) -> None:
        super().__init__(size, seed)
        self.m1 = Mixer(size, seed, "m1", rotation=5)
        self.m2 = Mixer(size, seed, "m2", rotation=9)

    @classmethod
    def check_size(cls, size: int) -> None:
        """Raise unless the size is a multiple of 256: sixteen segments of whole blocks."""
        if size < 256 or size % 256:
            raise ParameterError(
                f"n_components must be a positive multiple of 256 for composition='mixed', not {size}"
            )

    def label_choices(self, texts: Sequence[str]) -> IntArray:
        """Return the index of the bent sign vector in each group of sixteen elements, for every label."""
        random = uniform_integers(keys(self.seed, texts, "label"), self.size // 16)
        return ((random.astype(np.uint64) * np.uint64(len(bent_signs()[0]))) >> np.uint64(32)).astype(
            np.int64
        )

    def label_signs(self, texts: Sequence[str]) -> BoolArray:
        """Return the signs of label vectors; True means minus."""
        return bent_signs()[0][self.label_choices(texts)].swapaxes(1, 2).reshape(len(texts), self.size)

    def label_vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return vectors of signs over √d."""
        return np.where(self.label_signs(texts), -1.0, 1.0) / math.sqrt(self.size)

    def mixed_labels(self, texts: Sequence[str], mixer: Mixer) -> BoolArray:
        """Return the signs of the images of label vectors under a mixer; True means minus."""
        image = bent_signs()[1][self.label_choices(texts)].swapaxes(1, 2)
        negative: BoolArray = mixer.move(image) ^ mixer.negative
        return negative

    def compose(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return a ⋄ b."""
        return math.sqrt(self.size) * self.m1(a) * self.m2(b)


ALGEBRAS: dict[str, type[Algebra]] = {
    algebra.name: algebra for algebra in (MixedProduct, ShuffledProduct, ShuffledConvolution)
}


def algebra_class(name: str) -> type[Algebra]:
    """Return the algebra of a composition by its name."""
    try:
        return ALGEBRAS[name]
    except (KeyError, TypeError):
        raise ParameterError(f"unknown composition {name!r}: use one of {', '.join(ALGEBRAS)}") from None
