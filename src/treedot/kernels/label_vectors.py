"""Similarities of labels that have vectors: the cosines of the vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit


class LabelVectors(ABC):
    """The vectors of labels; labels of different groups are not similar."""

    @abstractmethod
    def units(self, labels: Sequence[str]) -> FloatArray:
        """Return the vectors of labels, scaled to length 1.

        Parameters
        ----------
        labels : sequence of str
            The labels.

        Returns
        -------
        array of shape (n_labels, n_dimensions)
            The vectors; zeros for a label without one.
        """

    @abstractmethod
    def _group(self, label: str) -> Hashable:
        """Return what similar labels have in common; None for a label without a vector."""

    def __call__(self, a: str, b: str) -> float:
        """Return the similarity of two labels.

        Parameters
        ----------
        a, b : str
            The labels.

        Returns
        -------
        float
            The cosine of their vectors; 1 for equal labels, 0 for labels of different parts of speech or
            without a vector.
        """
        if a == b:
            return 1.0
        group = self._group(a)
        return float(self.cosines([a, b])[0, 1]) if group is not None and group == self._group(b) else 0.0

    def groups(self, labels: Sequence[str]) -> list[IntArray]:
        """Group the labels that have vectors, such as by part of speech.

        Parameters
        ----------
        labels : sequence of str
            The labels.

        Returns
        -------
        list of array of int
            The positions of the labels of each group.
        """
        found: dict[Hashable, list[int]] = {}
        for k, label in enumerate(labels):
            group = self._group(label)
            if group is not None:
                found.setdefault(group, []).append(k)
        return [np.array(group) for group in found.values()]

    def cosines(self, labels: Sequence[str]) -> FloatArray:
        """Return the cosines between labels that have vectors.

        Parameters
        ----------
        labels : sequence of str
            The labels.

        Returns
        -------
        array of shape (n_labels, n_labels)
            The cosines.
        """
        return _products(np.ascontiguousarray(self.units(labels).T))


@njit
def _products(columns: FloatArray) -> FloatArray:
    """Return the products of all columns; with BLAS, the last bit would depend on the other columns."""
    dimensions, n = columns.shape
    out = np.zeros((n, n))
    for i in range(n):
        for k in range(dimensions):
            value = columns[k, i]
            for j in range(i + 1):
                out[i, j] += value * columns[k, j]
        for j in range(i):
            out[j, i] = out[i, j]
    return out
