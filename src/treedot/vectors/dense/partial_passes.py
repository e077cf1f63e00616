"""Passes over whole rows for the vectors of partial trees, compiled; see ``partial``."""

from __future__ import annotations

from typing import Any, NamedTuple

from treedot._runtime.array_types import IntArray, Label, Row
from treedot._runtime.jit import njit_inside
from treedot._runtime.simd import LANES, load, splat, store, times
from treedot.vectors.dense.mixing import Shuffle, lay_edge, row_butterflies


class Step(NamedTuple):
    """The numbers and operands with which ``compose`` composes a later child.

    With butterflies x of the source, E is ``(a · label + b · x) ⊗ right``. The right operand is a row, or a
    label if the child is a leaf. ``out`` becomes ``kept · total + added · E``, and ``new``, if ``has_new``,
    ``faded · old + joined · E``.
    """

    a: Any
    label: Label
    b: Any
    right: Any
    kept: Any
    added: Any
    faded: Any
    joined: Any
    has_new: Any  # bool


@njit_inside
def _compose_one(x: Any, at: int, step: Step, old: Row, new: Row, total: Row, out: Row) -> None:
    left = times(splat(step.a), step.label, at) + x * splat(step.b)
    ending = times(left, step.right, at)
    store(out, at, load(total, at) * splat(step.kept) + ending * splat(step.added))
    if step.has_new:
        store(new, at, load(old, at) * splat(step.faded) + ending * splat(step.joined))


@njit_inside
def _compose_four(
    four: Any, first: int, gap: int, target: IntArray, step: Step, old: Row, new: Row, total: Row,
    out: Row,
) -> None:  # fmt: skip
    for_0, for_1, for_2, for_3 = four
    _compose_one(for_0, target[first], step, old, new, total, out)
    _compose_one(for_1, target[first + gap], step, old, new, total, out)
    _compose_one(for_2, target[first + 2 * gap], step, old, new, total, out)
    _compose_one(for_3, target[first + 3 * gap], step, old, new, total, out)


@njit_inside
def compose(
    source: Row, shuffle: Shuffle, step: Step, edge: Row, old: Row, new: Row, total: Row, out: Row
) -> None:
    """Compose a later child: write the two sums that ``step`` describes to ``new`` and ``out``.

    ``out`` may be ``total``, and ``new`` may be ``old``, but neither may be ``source``.
    """
    lay_edge(source, edge)
    count = source.size // 16 // LANES
    for block in range(count):
        b0, b1, b2, b3 = row_butterflies(source, edge, block, shuffle.rotation)
        _compose_four(b0, block, 4 * count, shuffle.target, step, old, new, total, out)
        _compose_four(b1, count + block, 4 * count, shuffle.target, step, old, new, total, out)
        _compose_four(b2, 2 * count + block, 4 * count, shuffle.target, step, old, new, total, out)
        _compose_four(b3, 3 * count + block, 4 * count, shuffle.target, step, old, new, total, out)


@njit_inside
def add_row_and_label(total: Row, row: Row, share: Any, label: Label, unit: Any) -> None:
    """Add ``share · row + unit · label`` to the total."""
    a, b = splat(share), splat(unit)
    for at in range(0, total.size, LANES):
        store(total, at, load(total, at) + (load(row, at) * a + times(b, label, at)))


@njit_inside
def add_preterminal(total: Row, label: Label, leaf: Label, unit: Any, product: Label, share: Any) -> None:
    """Add ``unit · (label + leaf) + share · product`` to the total."""
    a, b = splat(unit), splat(share)
    for at in range(0, total.size, LANES):
        x = times(a, label, at) + times(a, leaf, at) + times(b, product, at)
        store(total, at, load(total, at) + x)
