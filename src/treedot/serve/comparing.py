"""Compare two trees: exact kernels, what they share, vectors, and the edit distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot.errors import LimitError
from treedot.kernels import PartialTreeKernel, SubsetTreeKernel, SubtreeKernel
from treedot.kernels.tree_kernel import TreeKernel
from treedot.models.explain.pair import PairExplanation, explain_pair
from treedot.search.comparison import Comparison, compare
from treedot.search.tree_edit_distance import align
from treedot.serve.fields import Value
from treedot.serve.inputs import read_input
from treedot.trees import Forest

MAX_STEPS = 10**8  # of the partial tree kernel: about a second
LISTED = 20  # productions of each kind


class Pair(NamedTuple):
    """Two trees, and the formats that they were read in."""

    a: Forest
    b: Forest
    formats: tuple[str, str]

    @classmethod
    def of(cls, fields: Mapping[str, Value]) -> Self:
        """Read the trees of a request."""
        a, a_format = read_input(str(fields["a"]), str(fields["a_format"]), "a")
        b, b_format = read_input(str(fields["b"]), str(fields["b_format"]), "b")
        return cls(a, b, (a_format, b_format))


class KernelValue(NamedTuple):
    """An exact kernel of two trees; both numbers are None if it would take too long."""

    value: float | None
    normalized: float | None


class Edits(NamedTuple):
    """The fewest edits that turn one tree into another, and which nodes correspond.

    ``pairs`` has the numbers of corresponding nodes in post-order; ``relabelled`` those of them whose labels
    differ. The nodes in ``deleted`` and ``inserted`` have no partner.
    """

    distance: int
    pairs: list[list[int]]
    relabelled: list[list[int]]
    deleted: list[int]
    inserted: list[int]


class Compared(NamedTuple):
    """Everything that the comparison of two trees shows, apart from dense vectors."""

    pair: Pair
    figures: Comparison
    kernels: dict[str, KernelValue]
    shared: PairExplanation
    edits: Edits | None

    @classmethod
    def of(cls, pair: Pair, fields: Mapping[str, Value]) -> Self:
        """Compare two trees with the settings of a request."""
        decay, mu = float(fields["decay"]), float(fields["mu"])
        figures = compare(pair.a, pair.b)
        shared = explain_pair(
            pair.a,
            pair.b,
            SubsetTreeKernel(decay, normalize=True),
            n_fragments=int(fields["fragments"]),
        )
        kernels = {
            "subset": _value(SubsetTreeKernel(decay), pair),
            "partial": _partial(PartialTreeKernel(decay=decay, mu=mu), pair),
            "subtree": _value(SubtreeKernel(decay), pair),
        }
        return cls(pair, figures, kernels, shared, None if figures.edits is None else _edits(pair))

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        figures = self.figures
        return {
            "a": _described(self.pair.a, self.pair.formats[0]),
            "b": _described(self.pair.b, self.pair.formats[1]),
            "similarity": figures.similarity,
            "cosine": figures.cosine,
            "kernels": {name: value._asdict() for name, value in self.kernels.items()},
            "edits": None if self.edits is None else self.edits._asdict(),
            "fragments": [one._asdict() | {"fragment": str(one.fragment)} for one in self.shared.fragments],
            "productions": {
                name: dict(list(getattr(figures, name).items())[:LISTED])
                for name in ("shared", "only_a", "only_b")
            },
        }


def _described(forest: Forest, format: str) -> dict[str, Any]:
    return {
        "format": format,
        "nodes": forest.n_nodes,
        "depth": int(forest.depth.max()),
        "tree": str(forest[0]),
    }


def _value(kernel: TreeKernel, pair: Pair) -> KernelValue:
    a, b = pair.a, pair.b
    value, own = kernel(a, b), kernel(a, a) * kernel(b, b)
    return KernelValue(value, value / own**0.5 if own > 0 else 0.0)


def _partial(kernel: TreeKernel, pair: Pair) -> KernelValue:
    largest = max((steps(x, y) for x, y in ((pair.a, pair.b), (pair.a, pair.a), (pair.b, pair.b))))
    if largest > MAX_STEPS:
        return KernelValue(None, None)
    try:
        return _value(kernel, pair)
    except LimitError:
        return KernelValue(None, None)


def steps(a: Forest, b: Forest) -> int:
    """Return an upper bound of the steps that the partial tree kernel takes for two trees.

    All pairs of inner nodes, each with the product of the numbers of children, for every length of a
    subsequence of them.
    """
    x, y = (np.unique(forest.arity[forest.arity > 0], return_counts=True) for forest in (a, b))
    shorter = np.minimum.outer(x[0], y[0]).astype(np.int64)
    return int((np.multiply.outer(x[0] * x[1], y[0] * y[1]).astype(np.int64) * shorter).sum())


def _edits(pair: Pair) -> Edits:
    found = align(pair.a, pair.b)
    labels = [_labels(forest) for forest in (pair.a, pair.b)]
    relabelled = [[i, j] for i, j in found.tolist() if labels[0][i] != labels[1][j]]
    deleted, inserted = (_others(forest.n_nodes, found[:, k]) for k, forest in enumerate((pair.a, pair.b)))
    return Edits(
        len(relabelled) + len(deleted) + len(inserted), found.tolist(), relabelled, deleted, inserted
    )


def _labels(forest: Forest) -> list[str]:
    return [forest.labels[label] for label in forest.label.tolist()]


def _others(n_nodes: int, matched: IntArray) -> list[int]:
    found: list[int] = np.setdiff1d(np.arange(n_nodes), matched).tolist()
    return found
