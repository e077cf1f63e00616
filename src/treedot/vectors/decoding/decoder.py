"""Read trees back from their vectors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treedot._runtime.array_types import IntArray, Matrix, Row
from treedot.errors import ParameterError
from treedot.trees import Tree
from treedot.vectors.decoding.bilinear import Bilinear
from treedot.vectors.decoding.candidates import MOST, WITHIN, Candidates, guessed_scale
from treedot.vectors.decoding.certificate import distance_to, margin_of, tolerance
from treedot.vectors.decoding.draft import Composer
from treedot.vectors.decoding.growth import Growth
from treedot.vectors.decoding.production_vectors import ProductionVectors
from treedot.vectors.decoding.productions import Productions
from treedot.vectors.decoding.repair import drop_pieces, repair
from treedot.vectors.dense.encoder import DenseEncoder
from treedot.vectors.encoder_cache import kept_encoder
from treedot.vectors.spec import DenseSpec
from treedot.vectors.vectors import Vectors

VECTORS = 128  # decoded together
ROOTS = 3  # productions tried at the root
LEAST_DECAY = 1e-12  # fragments of several productions are far below the rounding of float32
SURE = 3.0  # how many times the tolerance all other trees must be away


@dataclass(frozen=True)
class DecodedTree:
    """A tree read back from a vector, and how well it fits.

    Parameters
    ----------
    tree : Tree or None
        The best tree; None if no production was found.
    is_certified : bool
        Whether encoding the tree gives the vector, and no tree that differs from it by one exchange of
        subtrees or one move comes near.
    distance : float
        The distance between the vector and that of the tree, over the norm of the vector.
    margin : float
        The least distance to another tree that rounding might hide, on the same scale; 0 if ``distance`` is
        too large for a certificate, or if there are too many such trees.
    tolerance : float
        The distance that rounding explains.
    counts : dict of str to int
        The productions found, as bracket text, and how many of each; also those with no place in ``tree``.
    remainder : float
        The norm of what these productions, and the fragments that they form, leave unexplained, over the
        norm of the vector. If it is larger than ``tolerance``, some production is unknown, or was not found.
    noise : float
        The standard error of a count, given what is explained.
    norm : float
        The norm of the vector of the tree before normalisation, as far as it is known.
    """

    tree: Tree | None
    is_certified: bool
    distance: float
    margin: float
    tolerance: float
    counts: dict[str, int]
    remainder: float
    noise: float
    norm: float


class Decoder:
    """Reads trees back from dense vectors, given the productions that may occur in them.

    Parameters
    ----------
    spec : DenseSpec
        The settings that made the vectors.
    productions : Productions
        The known productions.
    n_jobs : int, default=None
        Threads that encode productions.
    """

    def __init__(self, spec: DenseSpec, productions: Productions, n_jobs: int | None = None) -> None:
        check_decodable(spec)
        self.spec, self.productions, self.n_jobs = spec, productions, n_jobs
        plain = replace(spec, normalize=False, dtype="float32")
        self._encoder: DenseEncoder = kept_encoder(plain, (), lambda: DenseEncoder(plain))
        self._again: DenseEncoder = kept_encoder(spec, (), lambda: DenseEncoder(spec))
        self._algebra = spec.algebra()
        self._labels: dict[str, Row] = {}
        self._composer = Composer(Bilinear(self._algebra), math.sqrt(spec.decay), self._label_vector)

    def _label_vector(self, text: str) -> Row:
        if text not in self._labels:
            self._labels[text] = self._algebra.label_vectors([text])[0].astype(np.float32)
        return self._labels[text]

    def decode(self, vectors: Any, progress: Callable[[int], object] | None = None) -> Iterator[DecodedTree]:
        """Read trees back, one after another.

        Parameters
        ----------
        vectors : array of shape (n_trees, n_components), or Vectors
            The vectors.
        progress : callable, default=None
            Called after each tree with the number of trees so far.

        Yields
        ------
        DecodedTree
            The tree of the next vector.
        """
        matrix = checked_vectors(vectors, self.spec)
        for start in range(0, len(matrix), VECTORS):
            some = np.ascontiguousarray(matrix[start : start + VECTORS], np.float32)
            check_finite(some, start)
            counts = self._count(some)
            for i, vector in enumerate(some):
                with np.errstate(over="ignore", invalid="ignore"):  # the distance says so
                    found = self._decode(vector, counts[:, i])
                yield found
                if progress is not None:
                    progress(start + i + 1)

    def _count(self, vectors: Matrix) -> Matrix:
        """Return the dot products of all productions with vectors."""
        known = self.productions
        encoded = known.encoded
        if encoded is None or encoded.spec != self._encoder.spec:
            encoded = known.encoded = ProductionVectors(known.forest, self._encoder, self.n_jobs)
        return encoded.products(vectors, self.n_jobs)

    def _decode(self, vector: Row, counts: Row) -> DecodedTree:
        rounding = tolerance(vector, self.spec.composition)
        norm = float(np.linalg.norm(vector))
        number = self._likely(counts, norm / math.sqrt(vector.size))
        if norm == 0 or number.size == 0:
            return DecodedTree(None, False, 1.0, 0.0, rounding, {}, 1.0, math.inf, norm)
        candidates = Candidates.make(self.productions, number, self._encoder)
        best = self._grown(vector, candidates, rounding)
        return self._described(vector, best, rounding)

    def _likely(self, counts: Row, noise: float) -> IntArray:
        """Return the numbers of the productions that may be in the tree."""
        if not counts.size:
            return np.zeros(0, np.int64)
        one = guessed_scale(counts, self.productions.at_root)[0] if self.spec.normalize else 1.0
        likely = np.flatnonzero(counts > max(one - WITHIN * noise, 0.0))
        order = np.argsort(-counts[likely], kind="stable")[:MOST]
        return np.sort(likely[order])

    def _grown(self, vector: Row, candidates: Candidates, rounding: float) -> Growth:
        """Return the best growth, from one of the likeliest roots."""
        scale = None if self.spec.normalize else 1.0
        fresh = Growth(vector, candidates, self._composer, scale, rounding)
        best = None
        for root in fresh.roots()[:ROOTS]:
            growth = Growth(vector, candidates, self._composer, scale, rounding)
            growth.start(root)
            growth.grow()
            repair(growth)
            drop_pieces(growth)
            if best is None or growth.distance < best.distance:
                best = growth
            if best.distance <= rounding:
                return best
        best = best or fresh
        best.add_pieces()
        return best

    def _described(self, vector: Row, growth: Growth, rounding: float) -> DecodedTree:
        """Return the result of a growth, with its certificate."""
        norm = growth.norm / growth.scale
        counts = self._counts(growth)
        if not growth.pieces:
            return DecodedTree(None, False, 1.0, 0.0, rounding, counts, growth.distance, growth.noise, norm)
        root = growth.pieces[0]
        tree, margin = root.tree(), 0.0
        distance = float(distance_to(vector, [tree], self._again)[0])
        if distance <= rounding:
            margin = margin_of(root, self._again, self.spec.decay, norm, SURE * rounding)
        return DecodedTree(
            tree, margin > SURE * rounding, distance, margin, rounding, counts,
            min(growth.distance, distance), growth.noise, norm,
        )  # fmt: skip

    def _counts(self, growth: Growth) -> dict[str, int]:
        used = Counter(node.production for order in growth.orders() for node in order if node.children)
        return {str(self.productions.forest[number]): count for number, count in sorted(used.items())}


def check_decodable(spec: Any) -> None:
    """Raise unless vectors of a spec can be read back."""
    if not isinstance(spec, DenseSpec):
        raise ParameterError(
            "only dense vectors can be decoded, not sparse rows: the columns of rows that learned them "
            "have names, "
            "see FragmentVectorizer.get_feature_names_out"
        )
    if spec.kernel != "subset":
        raise ParameterError(
            f"cannot decode vectors with kernel={spec.kernel!r}: their partial trees do not say how many "
            "children "
            "a node has; use kernel='subset'"
        )
    if spec.decay < LEAST_DECAY:
        raise ParameterError(
            f"cannot decode vectors with decay={spec.decay:g}, since they do not hold how productions "
            f"are connected: use a decay of at least {LEAST_DECAY:g}, or contains, which gives counts"
        )


def checked_vectors(vectors: Any, spec: DenseSpec) -> Matrix:
    """Return the matrix of vectors; raise unless it can hold vectors of a spec."""
    if isinstance(vectors, Vectors):
        spec.require_same(vectors.spec)
        vectors = vectors.matrix
    if hasattr(vectors, "tocsr"):
        raise ParameterError("these are sparse rows: pass dense vectors")
    matrix = np.asarray(vectors)
    if matrix.ndim != 2 or matrix.shape[1] != spec.n_components or matrix.dtype.kind != "f":
        raise ParameterError(
            f"vectors must be an array of numbers of shape (n, {spec.n_components}), not of shape "
            f"{matrix.shape} and type {matrix.dtype}"
        )
    return matrix


def check_finite(matrix: Matrix, first: int) -> None:
    """Raise if a vector is not finite."""
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad.size:
        raise ParameterError(f"vector {first + int(bad[0]) + 1} is not finite: it encodes no tree")
