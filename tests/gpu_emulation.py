"""The steps of ``mixed.cu`` and ``product.cu`` in NumPy, thread by column, on small input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treedot._runtime.simd import LANES
from treedot.trees import Forest
from treedot.vectors import DenseSpec
from treedot.vectors.dense.mixed import MixedEncoder
from treedot.vectors.dense.product import LABEL_BOUND, ProductEncoder
from treedot.vectors.gpu.mixed import by_target
from treedot.vectors.gpu.operations import (
    LEAF_FIRST,
    LEAF_NEXT,
    NODE_FIRST,
    NODE_NEXT,
    NOTHING,
    ROOT,
    ROOT_TAG,
    TAG_FIRST,
    TAG_NEXT,
    Operations,
    list_operations,
)
from treedot.vectors.gpu.product import in_pairs

LARGE = 2.0**58
NO_VALUE = -(1 << 28)
LARGEST_POWER = 120


def binary_tree(depth: int) -> str:
    """Return a tree of so many levels, all full, above its pre-terminals."""
    return f"(A {binary_tree(depth - 1)} {binary_tree(depth - 1)})" if depth else "(B b)"


class Block:
    """One block of threads and the tables that it reads."""

    def __init__(self, spec: DenseSpec, texts: list[str]) -> None:
        algebra: Any = spec.algebra()
        mixed = MixedEncoder(algebra)
        self.size, self.root_decay = algebra.size, np.float32(spec.decay**0.5)
        q = self.size // 16
        t = np.arange(q)
        self.columns = [
            (np.arange(16)[:, None] * q + (t + mixer.rotation) % q) for mixer in (mixed.m1, mixed.m2)
        ]
        targets = [mixer.target.reshape(16, -1) // LANES for mixer in (mixed.m1, mixed.m2)]
        self.places = [LANES * target[:, t // LANES] + t % LANES for target in targets]
        self.head, self.child = mixed.label_table(texts)
        self.head1, self.head2 = (by_target(self.head, target.reshape(-1)) for target in targets)
        self.child1, self.child2 = (by_target(self.child, target.reshape(-1)) for target in targets)
        self.sign2 = by_target(mixed.m2.signs[None], targets[1].reshape(-1))[0]

    def tag(self, label: int, word: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a pre-terminal as a child, a quarter of it, by M1's targets, and its signs by column."""
        bits = np.unpackbits((self.head[label] ^ self.child[word]).view(np.uint8), bitorder="little")
        signs = np.where(bits, np.float32(-1), np.float32(1))[self.columns[1]]
        row = np.empty(self.size, np.float32)
        row[self.places[1]] = butterflies(signs) * flips(self.root_decay / 16, self.sign2) + flips(
            0.25, self.child2[label]
        )
        return row[self.places[0]], signs

    def run(self, words: np.ndarray, n_rows: int, normalize: bool) -> np.ndarray:
        """Do the operations of one tree."""
        rows = np.full((n_rows, self.size), np.nan, np.float32)
        exponents, bounds = np.zeros(n_rows, np.int64), np.zeros(n_rows)
        total, total_exponent = np.zeros((16, self.size // 16), np.float32), NO_VALUE
        (column1, column2), (place1, place2) = self.columns, self.places
        for code, head, child, word in words.tolist():
            kind, row, of_child = code & 255, (code >> 8) & 255, (code >> 16) & 255
            grown, bound = 0, 1.0
            if kind in (TAG_FIRST, TAG_NEXT, ROOT_TAG):
                right, signs = self.tag(child, word)
                total, total_exponent = added(total, total_exponent, signs, 0)
                bound = 1 + 4 * float(self.root_decay)
                if kind == ROOT_TAG:
                    break
            if kind in (NODE_FIRST, NODE_NEXT, ROOT):
                source = of_child if kind == NODE_NEXT else row
                v = rows[source][column2]
                exponent = int(exponents[source])
                total, total_exponent = added(total, total_exponent, v, exponent)
                if kind == ROOT:
                    break
                a, b = 1.0, float(self.root_decay) / 4
                if exponent >= 0:
                    a, grown = power(-exponent), exponent
                else:
                    b *= power(exponent)
                bound = a + 16 * b * bounds[source]
                label, sign = self.child2[child], self.sign2
                if kind == NODE_FIRST:
                    label, sign = label ^ self.head2[head], sign ^ self.head2[head]
                else:
                    a, b = a / 4, b / 4
                v = butterflies(v) * flips(b, sign) + flips(a, label)
                if kind == NODE_FIRST:
                    rows[row][place2], exponents[row], bounds[row] = rescaled(v, bound, grown)
                    continue
                rows[source][place2] = v
                right = rows[source][place1]
            elif kind == LEAF_FIRST:
                rows[row][place1] = flips(1, self.head1[head] ^ self.child1[child])
                exponents[row], bounds[row] = 0, bound
                continue
            elif kind == TAG_FIRST:
                rows[row][place1] = right * flips(4, self.head1[head])
                exponents[row], bounds[row] = 0, bound
                continue
            elif kind == LEAF_NEXT:
                right = flips(0.25, self.child1[child])
            v = butterflies(rows[row][column1]) * right
            grown, bound = grown + int(exponents[row]), bound * 4 * bounds[row]
            rows[row][place1], exponents[row], bounds[row] = rescaled(v, bound, grown)
        out = np.empty(self.size, np.float32)
        out[column2] = written(total, total_exponent, normalize)
        return out


def emulate(forest: Forest, spec: DenseSpec) -> np.ndarray:
    """Return the vectors of a forest as a GPU would make them."""
    block = Block(spec, list(forest.labels))
    row = np.arange(len(forest.labels), dtype=np.int32)
    operations: Operations = list_operations(
        forest.arity, forest.offsets, forest.label, row, float(block.root_decay)
    )
    return np.array(
        [
            block.run(of_tree(operations, k), int(operations.rows[k]), spec.normalize)
            for k in range(len(forest))
        ]
    )


def of_tree(operations: Operations, tree: int) -> np.ndarray:
    """Return the operations of one tree, without those that are nothing."""
    words = operations.part(tree, tree + 1).words
    return words[words[:, 0] != NOTHING]


def emulate_product(forest: Forest, spec: DenseSpec) -> np.ndarray:
    """Return the vectors of a forest with the shuffled γ-product as a GPU would make them."""
    algebra: Any = spec.algebra()
    encoder = ProductEncoder(algebra, "float32")
    plain, left, right = encoder.label_table(list(forest.labels))
    two = in_pairs(encoder)
    order = np.stack([two & 0xFFFF, two >> 16], axis=2).reshape(len(two), -1)
    root_decay, row_of_label = spec.decay**0.5, np.arange(len(forest.labels), dtype=np.int32)
    operations = list_operations(forest.arity, forest.offsets, forest.label, row_of_label, root_decay)
    vectors = np.zeros((len(forest), algebra.size), np.float32)
    for tree in range(len(forest)):
        n_rows = max(1, operations.rows[tree])
        rows = np.full((n_rows, algebra.size), np.nan, np.float32)
        exponents, bounds = np.zeros(n_rows, np.int64), np.zeros(n_rows)
        total, total_exponent = np.zeros(algebra.size, np.float32), NO_VALUE
        for code, node, child, word in of_tree(operations, tree).tolist():
            kind, row, of_child, place = code & 255, (code >> 8) & 255, (code >> 16) & 255, code >> 24
            grown, largest, operand = 0, LABEL_BOUND, plain[child]
            if kind > LEAF_NEXT:
                if kind in (TAG_FIRST, TAG_NEXT, ROOT_TAG):
                    s, exponent, bound = right[word], 0, LABEL_BOUND
                else:
                    source = of_child if kind == NODE_NEXT else row
                    s, exponent, bound = rows[source], int(exponents[source]), float(bounds[source])
                    if bound * LABEL_BOUND > LARGE:
                        s, exponent, bound = rescaled(s, np.inf, exponent)
                s = s * left[node if kind == ROOT else child]
                total, total_exponent = added(total, total_exponent, s, exponent)
                if kind >= ROOT:
                    break
                a, b = 1.0, root_decay
                if exponent >= 0:
                    a, grown = power(-exponent), exponent
                else:
                    b *= power(exponent)
                largest = LABEL_BOUND * (a + b * bound)
                operand = np.float32(b) * s + np.float32(a) * operand
            v = operand[order[place]]
            if kind % 2 == 0:
                rows[row], exponents[row], bounds[row] = v, grown, largest
            else:
                grown, largest = grown + int(exponents[row]), largest * bounds[row]
                rows[row], exponents[row], bounds[row] = rescaled(v * rows[row], largest, grown)
        vectors[tree] = written(total, total_exponent, spec.normalize)
    return vectors


def assert_close(vectors: np.ndarray, expected: np.ndarray) -> None:
    """Assert that no element differs by more than 1e-6 of the largest of its vector."""
    largest = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(vectors - expected) <= 1e-6 * largest).all()


def butterflies(v: np.ndarray) -> np.ndarray:
    step = 1
    while step < 16:
        pairs = v.reshape(8 // step, 2, step, -1)
        v = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(16, -1)
        step *= 2
    return v


def flips(x: Any, word: np.ndarray) -> np.ndarray:
    minus = (word >> np.arange(16, dtype=np.uint16)[:, None]) & 1
    return np.where(minus, np.float32(-x), np.float32(x))


def power(exponent: int) -> float:
    return math.ldexp(1.0, max(exponent, -1000))


def added(total: np.ndarray, total_exponent: int, v: np.ndarray, exponent: int) -> tuple[np.ndarray, int]:
    if exponent <= total_exponent:
        return total + np.float32(power(exponent - total_exponent)) * v, total_exponent
    return total * np.float32(power(total_exponent - exponent)) + v, exponent


def rescaled(v: np.ndarray, bound: float, exponent: int) -> tuple[np.ndarray, int, float]:
    if bound <= LARGE and exponent == 0:
        return v, exponent, bound
    top = float(np.abs(v).max())
    if top == 0:
        return v, NO_VALUE, 0.0
    fraction, grown = math.frexp(top)
    if -20 < grown <= 20 or not math.isfinite(top):
        return v, exponent, top
    first = min(-grown, LARGEST_POWER)
    scaled = v * np.float32(math.ldexp(1.0, first)) * np.float32(math.ldexp(1.0, -grown - first))
    return scaled, exponent + grown, fraction


def written(total: np.ndarray, exponent: int, normalize: bool) -> np.ndarray:
    square = float((total.astype(np.float64) ** 2).sum())
    if normalize:
        return total * np.float32(1 / math.sqrt(square) if square else 0.0)
    x = total * np.float32(1 / math.sqrt(total.size))
    return np.ldexp(x, exponent) if exponent != NO_VALUE else np.zeros_like(x)
