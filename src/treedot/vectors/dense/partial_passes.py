"""The passes over whole rows that the vectors of partial trees are made of, compiled; see ``partial``."""

from __future__ import annotations

from typing import Any, NamedTuple

from treedot._runtime.array_types import IntArray, Label, Row
from treedot._runtime.jit import njit
from treedot._runtime.simd import LANES, load, splat, store, times
from treedot.vectors.dense.mixing import Shuffle, lay_edge, row_butterflies


class Step(NamedTuple):
    """How a later child is composed.

    With butterflies x of the source, E is ``(a · label + b · x) ⊗ right``, where the right operand is a row,
    or a label too where the child is a leaf. Then out is ``kept · total + added · E``, and new is
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


@njit
def _compose_one(x: Any, at: int, step: Step, old: Row, new: Any, total: Row, out: Row) -> None:
    left = times(splat(step.a), step.label, at) + x * splat(step.b)
    ending = times(left, step.right, at)
    store(out, at, load(total, at) * splat(step.kept) + ending * splat(step.added))
    if new is not None:
        store(new, at, load(old, at) * splat(step.faded) + ending * splat(step.joined))


@njit
def _compose_four(
    four: Any, j: int, block: int, count: int, target: IntArray, step: Step, old: Row, new: Any, total: Row,
    out: Row,
) -> None:  # fmt: skip
    for_0, for_1, for_2, for_3 = four
    _compose_one(for_0, target[j * count + block], step, old, new, total, out)
    _compose_one(for_1, target[(4 + j) * count + block], step, old, new, total, out)
    _compose_one(for_2, target[(8 + j) * count + block], step, old, new, total, out)
    _compose_one(for_3, target[(12 + j) * count + block], step, old, new, total, out)


@njit
def compose(
    source: Row, shuffle: Shuffle, step: Step, edge: Row, old: Row, new: Any, total: Row, out: Row
) -> None:
    """Compose a later child as a step says: the sums are written to new and out.

    Out may be total, and new may be old, but neither may be the source. New is None for the last child.
    """
    lay_edge(source, edge)
    count = source.size // 16 // LANES
    for block in range(count):
        b0, b1, b2, b3 = row_butterflies(source, edge, block, shuffle.rotation)
        _compose_four(b0, 0, block, count, shuffle.target, step, old, new, total, out)
        _compose_four(b1, 1, block, count, shuffle.target, step, old, new, total, out)
        _compose_four(b2, 2, block, count, shuffle.target, step, old, new, total, out)
        _compose_four(b3, 3, block, count, shuffle.target, step, old, new, total, out)


@njit
def add_row_and_label(total: Row, row: Row, share: Any, label: Label, unit: Any) -> None:
    """Add ``share · row + unit · label`` to the total."""
    a, b = splat(share), splat(unit)
    for at in range(0, total.size, LANES):
        store(total, at, load(total, at) + (load(row, at) * a + times(b, label, at)))


@njit
def add_preterminal(total: Row, label: Label, leaf: Label, unit: Any, product: Label, share: Any) -> None:
    """Add two labels, times ``unit``, and ``share`` times the product of labels to the total."""
    a, b = splat(unit), splat(share)
    for at in range(0, total.size, LANES):
        x = times(a, label, at) + times(a, leaf, at) + times(b, product, at)
        store(total, at, load(total, at) + x)
