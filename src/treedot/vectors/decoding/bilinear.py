"""Compositions as bilinear maps with their gradients, in float32.

Every composition is ``a ⋄ b = outside(L(a) ⊗ R(b))`` with linear maps L and R: mixers for the mixed product,
permutations for the shuffled product, permutations and Fourier transforms for the convolution. So the
gradient of ``⟨g, a ⋄ b⟩`` is ``Lᵀ(R(b)* ⊗ inside(g))`` for a, and ``Rᵀ(L(a)* ⊗ inside(g))`` for b, where *
is the complex conjugate. The definitions are in ``dense.compositions``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray, Row
from treedot.vectors.dense.compositions import MixedProduct, Mixer, hadamard


class Composed(NamedTuple):
    """A composition a ⋄ b, with the images of its operands."""

    value: Row
    left: Array
    right: Array


class Shuffle:
    """A permutation of a row, times a factor for every element."""

    def __init__(self, source: IntArray, factors: FloatArray) -> None:
        self._source, self._factors = source, factors.astype(np.float32)
        self._target = np.argsort(source)

    def __call__(self, row: Row) -> Array:
        """Return the image of a row."""
        return row[self._source] * self._factors

    def adjoint(self, image: Array) -> Row:
        """Return the image under the adjoint map."""
        return (image * self._factors)[self._target]


class Mixing(Shuffle):
    """A mixer: butterflies, which are symmetric, then a shuffle."""

    BUTTERFLIES = (hadamard(np.eye(16)[:, :, None])[:, :, 0] / 4).astype(np.float32)

    def __init__(self, mixer: Mixer, factor: float) -> None:
        source = mixer.move(np.arange(mixer.size).reshape(16, -1))
        super().__init__(source, np.where(mixer.negative, -factor, factor))

    def __call__(self, row: Row) -> Array:
        """Return the image of a row."""
        return super().__call__((self.BUTTERFLIES @ row.reshape(16, -1)).reshape(-1))

    def adjoint(self, image: Array) -> Row:
        """Return the image under the adjoint map."""
        moved = super().adjoint(image)
        return (self.BUTTERFLIES @ moved.reshape(16, -1)).reshape(-1)


class Bilinear:
    """A composition of rows, and its gradients.

    Parameters
    ----------
    algebra : Algebra
        The composition's definition.
    """

    def __init__(self, algebra: Any) -> None:
        self.folds_left = algebra.folds_left
        self._is_spectral = algebra.name == "convolution"
        if isinstance(algebra, MixedProduct):
            self._left: Shuffle = Mixing(algebra.m1, math.sqrt(algebra.size))
            self._right: Shuffle = Mixing(algebra.m2, 1.0)
        else:
            gamma = 1.0 if self._is_spectral else math.sqrt(algebra.size)
            self._left = Shuffle(algebra.p1, np.full(algebra.size, gamma))
            self._right = Shuffle(algebra.p2, np.ones(algebra.size))

    def compose(self, a: Row, b: Row) -> Composed:
        """Return a ⋄ b."""
        left, right = self._inside(self._left(a)), self._inside(self._right(b))
        return Composed(self._outside(left * right), left, right)

    def gradients(self, composed: Composed, gradient: Row) -> tuple[Row, Row]:
        """Return the gradients of ``⟨gradient, a ⋄ b⟩`` with respect to a and to b."""
        given = self._inside(gradient)
        to_left = self._outside(composed.right.conj() * given)
        to_right = self._outside(composed.left.conj() * given)
        return self._left.adjoint(to_left), self._right.adjoint(to_right)

    def _inside(self, row: Array) -> Array:
        return np.fft.rfft(row).astype(np.complex64) if self._is_spectral else row

    def _outside(self, product: Array) -> Row:
        return np.fft.irfft(product).astype(np.float32) if self._is_spectral else product
