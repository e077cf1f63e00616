"""Dense vectors of partial trees with the default algebra, compiled.

Every partial tree has a node without children, so λ √μ can be factored out of the definition (see
``reference.distributed_partial_tree``): with x(n) = s(n) / (λ √μ), the vector of a tree is λ √μ Σ x(n) and

    x(n) = n + S_m,     S_k = S_(k-1) + E_k,     B_k = λ B_(k-1) + E_k,     E_k = w (n + λ B_(k-1)) ⋄ x(c_k),

where w = √μ for 'toolkit' gaps and λ √μ for 'span'. A child is composed as in ``mixed``, with the same signs
and factors. There are two differences: the left operand is n + λ B, and there are two sums of compositions,
S and B.

Labels are rows of signs, or of numbers if some of them are similar (see ``smoothed``). Functions that
multiply by a label take either, and are compiled for each.

With ``max_length`` l there are B1, …, B(l-1), one for each length of subsequences. Then E_k consists of
w n ⋄ x(c_k), which is added to B1, and of w λ Bi ⋄ x(c_k), each of which is added to B(i+1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Label, Matrix, Row
from treedot._runtime.jit import njit_inside, njit_of_steps
from treedot._runtime.simd import multiply
from treedot.vectors.chunks import ALL_DONE, Ended
from treedot.vectors.dense import rescaling
from treedot.vectors.dense.mixed import MixedEncoder
from treedot.vectors.dense.mixing import (
    BUTTERFLY_FACTOR,
    EDGE,
    MIXER_BOUND,
    UNMIX,
    Shuffle,
    Sum,
    add_label,
    empty_rows,
    mix_label_plus,
    mix_plus,
    row_of,
    sign_words,
    store_label,
)
from treedot.vectors.dense.partial_passes import Step, add_preterminal, add_row_and_label, compose
from treedot.vectors.dense.schedule import Schedule, stack_height
from treedot.vectors.spec import DenseSpec

# The kinds of nodes, by their S:
LEAF = 0  # S is 0
PRETERMINAL = 1  # a node over one leaf: S is w times a product of labels
OTHER = 2  # S is a row of the stack

NO_ROW = -1


class Labels(NamedTuple):
    """Every label as left and as right operand, as in ``mixed``, and unmixed."""

    head: Label
    child: Label
    plain: Label


class Weights(NamedTuple):
    """The numbers of the recursion."""

    decay: float  # λ
    step: float  # w
    node: float  # λ √μ
    max_length: int  # the longest subsequence, 0 for any length
    label: float  # the largest magnitude in a label


class PartialEncoder(MixedEncoder):
    """Encodes partial trees with the mixed product."""

    label_bound = 1.0  # labels are signs

    def label_table(self, texts: Sequence[str]) -> Any:
        """Return the signs of labels, mixed and plain."""
        head, child = super().label_table(texts)
        return Labels(head, child, sign_words(self.algebra.label_signs(texts)))

    def encode(self, schedule: Schedule, labels: Any, spec: DenseSpec, out: Matrix) -> Ended:
        """Encode trees into ``out``; return the first tree that is not done, and why."""
        root = math.sqrt(spec.mu)
        step = root if spec.gaps == "toolkit" else spec.decay * root
        weights = Weights(spec.decay, step, spec.decay * root, spec.max_length or 0, self.label_bound)
        memory = make_memory(schedule, weights.max_length, labels, out)
        return _encode(schedule, labels, self.m1, self.m2, weights, spec.normalize, *memory, out)


class Stack(NamedTuple):
    """The rows of open nodes, each over ``2^exponent``, with no magnitude above its bound."""

    rows: Matrix
    exponent: IntArray
    bound: FloatArray
    total: IntArray  # by height of the stack: the number of the row of S,
    before: IntArray  # the number of the row of B, or of one for each length,
    composed: IntArray  # and the number of children composed so far
    spare: IntArray  # the number of the row for the next result


class Work(NamedTuple):
    """Memory for single rows."""

    total: Row  # Σ x(n)
    right: Row  # w x(c), mixed, over the butterflies' factor
    edge: Row
    preterminal: Label  # S(n) / w of the last pre-terminal
    label: Label
    signs: Label


def make_memory(schedule: Schedule, max_length: int, labels: Labels, out: Matrix) -> tuple[Stack, Work]:
    """Return memory for encoding the trees of a schedule into ``out``."""
    height = stack_height(schedule)
    lengths = max(1, min(max_length, int(schedule.arity.max(initial=1))) - 1)
    n = height * (1 + lengths)
    rows = empty_rows(n + 3, out)
    stack = Stack(
        rows,
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1),
        np.arange(height),
        np.arange(height, n).reshape(height, lengths),
        np.zeros(height, np.int64),
        np.array([n]),
    )
    of_labels = np.empty((3, labels.plain.shape[1]), labels.plain.dtype)
    work = Work(row_of(rows, n + 1), row_of(rows, n + 2), np.empty(EDGE, out.dtype), *of_labels)
    work.right[:] = 0
    return stack, work


class Child(NamedTuple):
    """A child as right operand: w x(c) = (a c + b S(c)) · 2^exponent, with no magnitude above the bound."""

    kind: int
    row: int  # of S(c), in the stack
    a: float
    b: float
    exponent: int
    bound: float


@njit_inside
def _right_operand(stack: Stack, own: int, kind: int, weights: Weights) -> Child:
    """Return a finished node as right operand; x(c) is c, c + w · labels, or c + S(c), by its kind."""
    row, exponent, bound = NO_ROW, 0, 0.0
    a, b = 1.0, 0.0
    if kind == PRETERMINAL:
        b, bound = weights.step, weights.label * weights.label
    elif kind == OTHER:
        row = stack.total[own]
        bound = stack.bound[row]
        a, b, exponent = rescaling.child_scales(stack.exponent[row], 1.0)
    step, bound = weights.step, a * weights.label + MIXER_BOUND * b * bound
    return Child(kind, row, step * a, step * b, exponent, step * bound)


@njit_inside
def _mix_child(rows: Matrix, child: Child, m2: Shuffle, plus: Sum, work: Work, out: Row) -> None:
    """Write ``4 b · signs ⊗ M2°(S(c)) + a · label`` to out, with a, b, signs and label from ``plus``."""
    if child.kind == LEAF:
        store_label(plus.label, plus.a, out)
    elif child.kind == PRETERMINAL:
        mix_label_plus(work.preterminal, m2, plus, work.edge, out)
    else:
        mix_plus(row_of(rows, child.row), m2, plus, work.edge, out)


@njit_inside
def _compose_first(
    stack: Stack, above: int, arity: int, head: Label, label: Label, child: Child, m2: Shuffle,
    weights: Weights, work: Work,
) -> None:  # fmt: skip
    """Compose the first child of a node: S = B = w n ⋄ x(c)."""
    stack.composed[above] = 1
    if child.kind == LEAF and arity == 1:
        multiply(head, label, work.preterminal)
    else:
        number = stack.rows.dtype.type
        multiply(head, label, work.label)
        multiply(head, m2.signs, work.signs)
        plus = Sum(number(child.a), work.label, number(child.b * UNMIX), work.signs)
        row = stack.spare[0]
        _mix_child(stack.rows, child, m2, plus, work, row_of(stack.rows, row))
        _finish_row(stack, row, child.exponent, child.bound * weights.label)
        stack.total[above], stack.spare[0] = row, stack.total[above]


@njit_inside
def _compose_later(
    stack: Stack, above: int, arity: int, head: Label, label: Label, child: Child, m1: Shuffle, m2: Shuffle,
    weights: Weights, work: Work,
) -> None:  # fmt: skip
    """Compose a later child of a node: its label, and the compositions so far, with x(c)."""
    number = stack.rows.dtype.type
    if child.kind != LEAF:
        plus = Sum(number(child.a * UNMIX), label, number(child.b * UNMIX * UNMIX), m2.signs)
        _mix_child(stack.rows, child, m2, plus, work, work.right)
    done, longest = stack.composed[above], weights.max_length
    is_last = done + 1 == arity
    total, before, spare = stack.total[above], stack.before[above], stack.spare[0]
    if longest == 0:  # any length; up to the second child, B is S and has no row of its own
        source, out, new = (total, spare, before[0]) if done == 1 else (before[0], total, spare)
        new = NO_ROW if is_last else new
        _extend(stack, source, source, new, total, out, head, label, child, m1, weights, work)
        if done == 1:
            stack.total[above], stack.spare[0] = spare, total
        elif not is_last:
            before[0], stack.spare[0] = spare, before[0]
    else:
        if done == 1 and longest > 1:
            _copy_row(stack, total, before[0])
        for length in range(min(done, longest - 1), -1, -1):  # the longest first: each is added to the next
            source = before[length - 1] if length > 0 else NO_ROW
            new = NO_ROW if is_last or length + 1 >= longest else before[length]
            old = new if done > length else NO_ROW
            _extend(stack, source, old, new, total, total, head, label, child, m1, weights, work)
    stack.composed[above] += 1


@njit_inside
def _copy_row(stack: Stack, source: int, row: int) -> None:
    for j in range(stack.rows.shape[1]):
        stack.rows[row, j] = stack.rows[source, j]
    stack.exponent[row], stack.bound[row] = stack.exponent[source], stack.bound[source]


@njit_inside
def _extend(
    stack: Stack, source: int, old: int, new: int, total: int, out: int, head: Label, label: Label,
    child: Child, m1: Shuffle, weights: Weights, work: Work,
) -> None:  # fmt: skip
    """Set ``out`` to ``total + E`` and ``new`` to ``λ old + E``.

    E is x(c) composed into ``n + λ source``; with ``max_length``, into ``λ source``, or into n if ``source``
    is NO_ROW. ``old`` and ``new`` may also be NO_ROW.
    """
    rows, number, decay = stack.rows, stack.rows.dtype.type, weights.decay
    a, b, exponent, bound = 1.0, 0.0, child.exponent, weights.label
    if source != NO_ROW:
        a, b, grown = 0.0, decay, stack.exponent[source]
        if weights.max_length == 0:
            a, b, grown = rescaling.child_scales(grown, decay)
        exponent += grown
        bound = a * weights.label + MIXER_BOUND * b * stack.bound[source]
    bound *= child.bound
    kept, added, out_exponent = _common_exponent(stack.exponent[total], exponent)
    out_bound = kept * stack.bound[total] + added * bound
    faded, joined = 0.0, 1.0
    if old != NO_ROW:
        faded, joined, exponent = _common_exponent(stack.exponent[old], exponent)
        faded *= decay
        bound = faded * stack.bound[old] + joined * bound
    # A row that is multiplied by 0, or not written, can be any row.
    x = work.right if source == NO_ROW else row_of(rows, source)
    old_row = x if old == NO_ROW else row_of(rows, old)
    s, s_out = row_of(rows, total), row_of(rows, out)
    new_row = s_out if new == NO_ROW else row_of(rows, new)
    share = child.a * UNMIX if child.kind == LEAF else 1.0  # x(c) of a leaf is its label
    left = number(BUTTERFLY_FACTOR * a * share), head, number(b * share)
    sums = number(kept), number(added), number(faded), number(joined), new != NO_ROW
    if child.kind == LEAF:
        compose(x, m1, Step(*left, label, *sums), work.edge, old_row, new_row, s, s_out)
    else:
        compose(x, m1, Step(*left, work.right, *sums), work.edge, old_row, new_row, s, s_out)
    if new != NO_ROW:
        _finish_row(stack, new, exponent, bound)
    _finish_row(stack, out, out_exponent, out_bound)


@njit_inside
def _finish_row(stack: Stack, row: int, exponent: int, bound: float) -> None:
    """Store the exponent and bound of a row; rescale it if it may be too large, or was rescaled before."""
    if bound > rescaling.LARGE or exponent != 0:
        bound, exponent = rescaling.rescale(row_of(stack.rows, row), exponent)
    stack.exponent[row], stack.bound[row] = exponent, bound


@njit_inside
def _common_exponent(a: int, b: int) -> tuple[float, float, int]:
    """Return the factors with which to add rows of exponents a and b, and the exponent of the sum."""
    c = max(a, b)
    return rescaling.power_of_two(a - c), rescaling.power_of_two(b - c), c


@njit_inside
def _add_node(
    stack: Stack, own: int, kind: int, label: Label, below: Label, step: float, work: Work, to: int
) -> int:
    """Add x(n) to the total, which is over ``2^to``; return the new exponent of the total.

    A pre-terminal is added together with the leaf below it.
    """
    number = work.total.dtype.type
    if kind == OTHER:
        row = stack.total[own]
        exponent = rescaling.true_exponent(row_of(stack.rows, row), stack.exponent[row], to)
        to, share = rescaling.meet(work.total, to, exponent)
        unit = rescaling.power_of_two(-to)
        add_row_and_label(work.total, row_of(stack.rows, row), number(share), label, number(unit))
    elif kind == PRETERMINAL:
        unit = rescaling.power_of_two(-to)
        add_preterminal(work.total, label, below, number(unit), work.preterminal, number(unit * step))
    else:
        add_label(work.total, label, number(rescaling.power_of_two(-to)))
    return to


@njit_of_steps(lambda schedule, *others: schedule.order.size * others[-1].shape[1], borrowing=True)
def _encode(
    schedule: Schedule, labels: Labels, m1: Shuffle, m2: Shuffle, weights: Weights, normalize: bool,
    stack: Stack, work: Work, out: Matrix,
) -> Ended:  # fmt: skip
    """Visit the nodes of each tree, children first, and compose each finished one into its parent."""
    fraction, factor = math.frexp(weights.node)
    for tree in range(len(out)):
        work.total[:] = 0
        exponent = rescaling.UNSCALED
        for node in range(schedule.offsets[tree], schedule.offsets[tree + 1]):
            own, parent, label = schedule.stack_row[node], schedule.parent[node], schedule.label[node]
            kind = LEAF if schedule.arity[node] == 0 else OTHER
            if schedule.arity[node] == 1 and schedule.arity[node - 1] == 0:
                kind = PRETERMINAL
            if kind != LEAF or parent < 0 or schedule.arity[parent] > 1:
                below = labels.plain[schedule.label[node - 1 if node > 0 else 0]]
                plain = labels.plain[label]
                exponent = _add_node(stack, own, kind, plain, below, weights.step, work, exponent)
            if parent < 0:
                continue
            child = _right_operand(stack, own, kind, weights)
            above, arity = schedule.stack_row[parent], schedule.arity[parent]
            head, of_child = labels.head[schedule.label[parent]], labels.child[label]
            if schedule.is_first[node]:
                _compose_first(stack, above, arity, head, of_child, child, m2, weights, work)
            else:
                _compose_later(stack, above, arity, head, of_child, child, m1, m2, weights, work)
        rescaling.multiply(work.total, fraction)
        exponent = exponent + factor if weights.node > 0.0 else rescaling.NO_VALUE
        why = rescaling.write(work.total, exponent, normalize, out[tree])
        if why != ALL_DONE:
            return tree, why
    return len(out), ALL_DONE
