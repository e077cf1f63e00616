"""Estimate the kernel of two trees by vectors, for several seeds and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from treedot.errors import LimitError
from treedot.kernels import SubsetTreeKernel
from treedot.serve.comparing import Pair
from treedot.serve.decoding import TABLE_BYTES
from treedot.serve.fields import COMPONENTS, Value
from treedot.trees import Forest
from treedot.vectors.dense.encoder import DenseEncoder
from treedot.vectors.dense.label_table import small_tables
from treedot.vectors.spec import DenseSpec

SEEDS = 20
MAX_SECONDS = 8.0  # of all estimates together, as estimated before
NANOSECONDS = {"mixed": 0.5, "product": 10.0, "convolution": 14.0}  # per node and number of its vector


class Estimate(NamedTuple):
    """The dot products of the vectors of two trees, one for each seed.

    ``expected_error`` is the standard deviation that a Gaussian random projection of all fragments into as
    many dimensions would have.
    """

    components: int
    values: list[float]
    expected_error: float

    @property
    def mean(self) -> float:
        """The mean of the dot products."""
        return float(np.mean(self.values))

    @property
    def error(self) -> float:
        """The standard error of one estimate: the standard deviation of the dot products."""
        return float(np.std(self.values, ddof=1))


class Estimates(NamedTuple):
    """The exact kernel of two trees, and estimates of it by vectors of several sizes."""

    exact: float
    ladder: list[Estimate]

    @classmethod
    def of(cls, pair: Pair, fields: Mapping[str, Value]) -> Self:
        """Make the estimates that a request asks for, with all sizes up to the one it names."""
        decay, composition = float(fields["decay"]), str(fields["composition"])
        sizes = [one for one in COMPONENTS if one <= int(fields["components"])]
        both = Forest.concat([pair.a, pair.b])
        _check_time(both, sizes, composition)
        exact = SubsetTreeKernel(decay, normalize=True)(pair.a, pair.b)
        with small_tables(TABLE_BYTES):
            ladder = [
                Estimate(
                    one,
                    [_product(both, DenseSpec(one, decay, composition, seed)) for seed in range(SEEDS)],
                    (1 - exact**2) / one**0.5,
                )
                for one in sizes
            ]
        return cls(exact, ladder)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as JSON values."""
        return {
            "exact": self.exact,
            "estimates": [one._asdict() | {"mean": one.mean, "error": one.error} for one in self.ladder],
        }


def _check_time(both: Forest, sizes: list[int], composition: str) -> None:
    seconds = NANOSECONDS[composition] * 1e-9 * SEEDS * sum(sizes) * len(both.distinct_subtrees)
    if seconds > MAX_SECONDS:
        raise LimitError(
            f"{SEEDS} estimates of each size up to {sizes[-1]:,} would take about {seconds:.0f} s for these "
            "trees: choose a smaller d, or the composition 'mixed'"
        )


def _product(both: Forest, spec: DenseSpec) -> float:
    a, b = DenseEncoder(spec).encode(both).astype(float)
    return float(a @ b)
