"""Dense vectors of partial trees with the default algebra, compiled.

Every partial tree has a node without children, so that λ √μ can be taken out of the definition (see
``reference.distributed_partial_tree``): with x(n) = s(n) / (λ √μ), the vector of a tree is λ √μ Σ x(n) and

    x(n) = n + S_m,     S_k = S_(k-1) + E_k,     B_k = λ B_(k-1) + E_k,     E_k = w (n + λ B_(k-1)) ⋄ x(c_k),

where w = √μ for 'toolkit' gaps and λ √μ for 'span'. A child is composed as in ``mixed``, by the same signs
and factors. What differs is the left operand, n + λ B instead of what is composed so far, and that there are
two sums of compositions, S and B.

Labels are rows of signs, or of numbers where some of them are similar (see ``smoothed``). Whatever multiplies
by a label takes either, and is compiled for each.

With a longest length l there are B1, …, B(l-1), by the length of subsequences. Then E_k consists of
w n ⋄ x(c_k), which enters B1, and of w λ Bi ⋄ x(c_k), each of which enters B(i+1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Label, Matrix, Row
from treedot._runtime.jit import inlined, njit, njit_of_steps
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

# What S of a node is:
LEAF = 0  # nothing,
PRETERMINAL = 1  # w times a product of labels, where there is one leaf below it,
OTHER = 2  # or a row of the stack

NO_ROW = -1


class Labels(NamedTuple):
    """Every label as left and as right operand, as in ``mixed``, and as it is."""

    head: Label
    child: Label
    plain: Label


class Weights(NamedTuple):
    """The numbers of the recursion."""

    decay: float  # λ
    step: float  # w
    node: float  # λ √μ
    max_length: int  # of subsequences, 0 for any
    label: float  # no magnitude in a label is larger


class PartialEncoder(MixedEncoder):
    """Encodes partial trees with the mixed product."""

    label_bound = 1.0  # of signs

    def label_table(self, texts: Sequence[str]) -> Any:
        """Return the signs of labels, mixed and plain."""
        head, child = super().label_table(texts)
        return Labels(head, child, sign_words(self.algebra.label_signs(texts)))

    def encode(self, schedule: Schedule, labels: Any, spec: DenseSpec, out: Matrix) -> Ended:
        """Encode trees into ``out``; return how many, and why no more."""
        root = math.sqrt(spec.mu)
        step = root if spec.gaps == "toolkit" else spec.decay * root
        weights = Weights(spec.decay, step, spec.decay * root, spec.max_length or 0, self.label_bound)
        return _encode(schedule, labels, self.m1, self.m2, weights, spec.normalize, out)


class Stack(NamedTuple):
    """The rows of open nodes, each over 2 to the power of its exponent, with no magnitude above its bound."""

    rows: Matrix
    exponent: IntArray
    bound: FloatArray
    total: IntArray  # by height of the stack: which row is S,
    before: IntArray  # which is B, or which are those of each length,
    composed: IntArray  # and how many children are composed
    spare: IntArray  # the row that the next result is written to


class Work(NamedTuple):
    """Memory for single rows."""

    total: Row  # Σ x(n)
    right: Row  # w x(c), mixed, over the butterflies' factor
    edge: Row
    preterminal: Label  # S(n) / w of the last one
    label: Label
    signs: Label


class Child(NamedTuple):
    """A child as right operand: w x(c) = (a c + b S(c)) · 2^exponent, with no magnitude above the bound."""

    kind: int
    row: int  # of S(c), in the stack
    label: Label
    a: float
    b: float
    exponent: int
    bound: float


# The functions below are compiled into their callers: calls that hand over tuples of arrays count references
# to each, which would cost a tenth of the time of all.


@inlined
def _right_operand(stack: Stack, own: int, kind: int, label: Label, weights: Weights) -> Child:
    """Return what a finished node is to its parent; x(c) is c, c + w · labels, or c + S(c)."""
    row, exponent, bound = NO_ROW, 0, 0.0
    a, b = 1.0, 0.0
    if kind == PRETERMINAL:
        b, bound = weights.step, weights.label * weights.label
    elif kind == OTHER:
        row = stack.total[own]
        bound = stack.bound[row]
        a, b, exponent = rescaling.child_scales(stack.exponent[row], 1.0)
    step, bound = weights.step, a * weights.label + MIXER_BOUND * b * bound
    return Child(kind, row, label, step * a, step * b, exponent, step * bound)


@inlined
def _mix_child(stack: Stack, child: Child, m2: Shuffle, plus: Sum, work: Work, out: Row) -> None:
    """Write ``4 b · signs ⊗ M2°(S(c)) + a · label`` to out, for the numbers and signs of a sum."""
    if child.kind == LEAF:
        store_label(plus.label, plus.a, out)
    elif child.kind == PRETERMINAL:
        mix_label_plus(work.preterminal, m2, plus, work.edge, out)
    else:
        mix_plus(row_of(stack.rows, child.row), m2, plus, work.edge, out)


@inlined
def _compose_first(
    stack: Stack, above: int, arity: int, head: Label, child: Child, m2: Shuffle, weights: Weights, work: Work
) -> None:
    """Begin a node: S = B = w n ⋄ x(c)."""
    stack.composed[above] = 1
    if child.kind == LEAF and arity == 1:
        multiply(head, child.label, work.preterminal)
    else:
        number = stack.rows.dtype.type
        multiply(head, child.label, work.label)
        multiply(head, m2.signs, work.signs)
        plus = Sum(number(child.a), work.label, number(child.b * UNMIX), work.signs)
        row = stack.spare[0]
        _mix_child(stack, child, m2, plus, work, row_of(stack.rows, row))
        _finish_row(stack, row, child.exponent, child.bound * weights.label)
        stack.total[above], stack.spare[0] = row, stack.total[above]


@inlined
def _compose_later(
    stack: Stack, above: int, arity: int, head: Label, child: Child, m1: Shuffle, m2: Shuffle,
    weights: Weights, work: Work,
) -> None:  # fmt: skip
    """Go on with a node: compose its label, and what is composed so far, with x(c)."""
    number = stack.rows.dtype.type
    if child.kind != LEAF:
        plus = Sum(number(child.a * UNMIX), child.label, number(child.b * UNMIX * UNMIX), m2.signs)
        _mix_child(stack, child, m2, plus, work, work.right)
    is_last = stack.composed[above] + 1 == arity
    if weights.max_length == 0:
        _extend_any(stack, above, is_last, head, child, m1, weights, work)
    else:
        _extend_each(stack, above, is_last, head, child, m1, weights, work)
    stack.composed[above] += 1


@inlined
def _extend_any(
    stack: Stack, above: int, is_last: bool, head: Label, child: Child, m1: Shuffle, weights: Weights,
    work: Work,
) -> None:  # fmt: skip
    """Extend subsequences of any length. Up to the second child, B is S and has no row of its own."""
    total, before, spare = stack.total[above], stack.before[above, 0], stack.spare[0]
    is_second = stack.composed[above] == 1
    source, out, new = (total, spare, before) if is_second else (before, total, spare)
    new = NO_ROW if is_last else new
    _extend(stack, True, source, source, new, total, out, head, child, m1, weights, work)
    if is_second:
        stack.total[above], stack.spare[0] = spare, total
    elif not is_last:
        stack.before[above, 0], stack.spare[0] = spare, before


@inlined
def _extend_each(
    stack: Stack, above: int, is_last: bool, head: Label, child: Child, m1: Shuffle, weights: Weights,
    work: Work,
) -> None:  # fmt: skip
    """Extend subsequences of each length, the longest first, since each enters the next."""
    total, done, longest = stack.total[above], stack.composed[above], weights.max_length
    if done == 1 and longest > 1:
        row = stack.before[above, 0]
        row_of(stack.rows, row)[:] = row_of(stack.rows, total)
        stack.exponent[row], stack.bound[row] = stack.exponent[total], stack.bound[total]
    for length in range(min(done, longest - 1), -1, -1):
        source = stack.before[above, length - 1] if length > 0 else NO_ROW
        new = NO_ROW if is_last or length + 1 >= longest else stack.before[above, length]
        old = new if done > length else NO_ROW
        _extend(stack, length == 0, source, old, new, total, total, head, child, m1, weights, work)


@inlined
def _extend(
    stack: Stack, with_label: bool, source: int, old: int, new: int, total: int, out: int, head: Label,
    child: Child, m1: Shuffle, weights: Weights, work: Work,
) -> None:  # fmt: skip
    """Compose ``n + λ source``, or one of the two, with x(c): E.

    Then out becomes ``total + E``, and new ``λ old + E``; there may be no source, no old and no new.
    """
    number, decay = stack.rows.dtype.type, weights.decay
    a, b, exponent, bound = 1.0, 0.0, child.exponent, weights.label
    if source != NO_ROW:
        a, b, grown = 0.0, decay, stack.exponent[source]
        if with_label:
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
    share = child.a * UNMIX if child.kind == LEAF else 1.0  # a leaf is its label alone
    left = number(BUTTERFLY_FACTOR * a * share), head, number(b * share)
    sums = number(kept), number(added), number(faded), number(joined)
    if child.kind == LEAF:
        _compose(stack, Step(*left, child.label, *sums), source, old, new, total, out, m1, work)
    else:
        _compose(stack, Step(*left, work.right, *sums), source, old, new, total, out, m1, work)
    if new != NO_ROW:
        _finish_row(stack, new, exponent, bound)
    _finish_row(stack, out, out_exponent, out_bound)


@inlined
def _compose(
    stack: Stack, step: Step, source: int, old: int, new: int, total: int, out: int, m1: Shuffle, work: Work
) -> None:
    """Run the pass over the rows with these numbers."""
    rows = stack.rows
    s, s_out = row_of(rows, total), row_of(rows, out)
    x = work.right if source == NO_ROW else row_of(rows, source)  # any will do where it is multiplied by 0
    if new == NO_ROW:
        compose(x, m1, step, work.edge, x, None, s, s_out)
    else:
        b = x if old == NO_ROW else row_of(rows, old)
        compose(x, m1, step, work.edge, b, row_of(rows, new), s, s_out)


@inlined
def _finish_row(stack: Stack, row: int, exponent: int, bound: float) -> None:
    """Note how large a row is, and bring it to about 1 where it may be too large, or was and may fade."""
    if bound > rescaling.LARGE or exponent != 0:
        bound, exponent = rescaling.rescale(row_of(stack.rows, row), exponent)
    stack.exponent[row], stack.bound[row] = exponent, bound


@njit
def _common_exponent(a: int, b: int) -> tuple[float, float, int]:
    """Return the factors of two rows with exponents a and b in their sum, and its exponent."""
    c = max(a, b)
    return rescaling.power_of_two(a - c), rescaling.power_of_two(b - c), c


@inlined
def _add_node(
    stack: Stack, own: int, kind: int, label: Label, below: Label, step: float, work: Work, to: int
) -> int:
    """Add x(n) to the total, which is over ``2^to``; return its new exponent.

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


@njit_of_steps(lambda schedule, *others: schedule.order.size * others[-1].shape[1])
def _encode(
    schedule: Schedule, labels: Labels, m1: Shuffle, m2: Shuffle, weights: Weights, normalize: bool,
    out: Matrix,
) -> Ended:  # fmt: skip
    """Visit the nodes of each tree, children first, and compose each finished one into its parent."""
    number = out.dtype.type
    widest = max(1, schedule.arity.max())
    height, lengths = stack_height(schedule), max(1, min(weights.max_length, widest) - 1)
    n = height * (1 + lengths)
    rows = empty_rows(n + 3, out)
    stack = Stack(
        rows, np.zeros(n + 1, np.int64), np.zeros(n + 1), np.arange(height),
        np.arange(height, n).reshape(height, lengths), np.zeros(height, np.int64), np.array([n]),
    )  # fmt: skip
    of_labels = np.empty((3, labels.plain.shape[1]), labels.plain.dtype)
    work = Work(
        row_of(rows, n + 1), row_of(rows, n + 2), np.empty(EDGE, out.dtype), of_labels[0], of_labels[1],
        of_labels[2],
    )  # fmt: skip
    work.right[:] = 0
    fraction, factor = math.frexp(weights.node)
    for tree in range(len(out)):
        work.total[:] = 0
        exponent = 0
        for node in range(schedule.offsets[tree], schedule.offsets[tree + 1]):
            own, parent, label = schedule.stack_row[node], schedule.parent[node], schedule.label[node]
            kind = LEAF if schedule.arity[node] == 0 else OTHER
            if schedule.arity[node] == 1 and schedule.arity[node - 1] == 0:
                kind = PRETERMINAL
            if kind != LEAF or parent < 0 or schedule.arity[parent] > 1:
                below = labels.plain[schedule.label[max(node - 1, 0)]]
                plain = labels.plain[label]
                exponent = _add_node(stack, own, kind, plain, below, weights.step, work, exponent)
            if parent < 0:
                continue
            child = _right_operand(stack, own, kind, labels.child[label], weights)
            above, arity = schedule.stack_row[parent], schedule.arity[parent]
            head = labels.head[schedule.label[parent]]
            if schedule.is_first[node]:
                _compose_first(stack, above, arity, head, child, m2, weights, work)
            else:
                _compose_later(stack, above, arity, head, child, m1, m2, weights, work)
        work.total[:] *= number(fraction)
        exponent = exponent + factor if weights.node > 0.0 else rescaling.NO_VALUE
        why = rescaling.write(work.total, exponent, normalize, out[tree])
        if why != ALL_DONE:
            return tree, why
    return len(out), ALL_DONE
