from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_emulation import assert_close, binary_tree, emulate, emulate_product, of_tree
from strategies import random_forest, trees
from treedot import Forest, Tree, read_trees
from treedot._runtime.threads import open_threads
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.gpu.operations import (
    LEAF_FIRST,
    NODE_FIRST,
    ROOT,
    TAG_FIRST,
    Operations,
    list_operations,
)


def operations_of(forest: Forest, n_jobs: int = 1) -> Operations:
    row = np.arange(len(forest.labels), dtype=np.int32)
    with open_threads(n_jobs) as threads:
        return list_operations(forest.arity, forest.offsets, forest.label, row, 0.6, threads)


def assert_same_operations(a: Operations, b: Operations) -> None:
    for of_a, of_b in zip(a[1:], b[1:], strict=True):
        np.testing.assert_array_equal(of_a, of_b)
    for tree in range(len(a.rows)):
        np.testing.assert_array_equal(of_tree(a, tree), of_tree(b, tree))


def assert_same_vectors(forest: Forest, spec: DenseSpec) -> None:
    expected = DenseEncoder(spec).encode(forest)
    assert_close(emulate(forest, spec), expected)


@given(st.lists(trees(), min_size=1, max_size=4), st.sampled_from([0.0, 0.4, 1.0]), st.booleans())
def test_the_steps_of_a_gpu_make_the_vectors_of_the_processor(
    some: list[Tree], decay: float, normalize: bool
) -> None:
    assert_same_vectors(
        Forest.from_trees(some), DenseSpec(n_components=512, decay=decay, normalize=normalize)
    )


@given(st.lists(trees(), min_size=1, max_size=4), st.sampled_from([0.0, 0.4, 1.0]), st.booleans())
def test_the_steps_of_the_product_make_the_vectors_of_the_processor(
    some: list[Tree], decay: float, normalize: bool
) -> None:
    spec = DenseSpec(n_components=512, decay=decay, normalize=normalize, composition="product")
    forest = Forest.from_trees(some)
    assert_close(emulate_product(forest, spec), DenseEncoder(spec).encode(forest))


def test_the_steps_of_a_gpu_rescale_elements_that_would_overflow() -> None:
    wide = "(S " + " ".join(f"(A (B b{k % 3}) (C c))" for k in range(300)) + ")"
    deep = "(A (B b) " * 150 + "(B b)" + ")" * 150
    forest = read_trees([wide, deep, "(S (A a) b)"])
    assert operations_of(forest).large.tolist() == [True, True, False]
    assert_same_vectors(forest, DenseSpec(n_components=512, decay=1.0))


def test_a_tree_of_one_node_takes_no_operation() -> None:
    forest = read_trees(["(a)", "(A b)"])
    assert [len(of_tree(operations_of(forest), k)) for k in range(2)] == [0, 1]
    assert not emulate(forest, DenseSpec(n_components=512))[0].any()


@given(st.lists(trees(max_leaves=20), min_size=1, max_size=5))
def test_rows_are_written_before_they_are_read_and_given_back(some: list[Tree]) -> None:
    found = operations_of(Forest.from_trees(some))
    for tree in range(len(some)):
        taken: set[int] = set()
        for code in of_tree(found, tree)[:, 0].tolist():
            kind, row, of_child = code & 255, (code >> 8) & 255, (code >> 16) & 255
            if kind in (LEAF_FIRST, TAG_FIRST):
                assert row not in taken
                taken.add(row)
                assert len(taken) <= found.rows[tree]
            elif kind <= ROOT:
                assert row in taken
            if kind == NODE_FIRST + 1:
                assert of_child != row
                taken.remove(of_child)
        assert len(taken) <= 1


def test_deep_trees_need_two_rows_and_full_ones_a_row_per_level() -> None:
    right = "(A (B b) " * 1000 + "(B b)" + ")" * 1000
    left = "(A " * 1000 + "(B b)" + " (B b))" * 1000
    assert operations_of(read_trees([right, left, binary_tree(7)])).rows.tolist() == [2, 1, 7]


def test_operations_are_the_same_for_any_number_of_threads() -> None:
    forest = Forest.concat([random_forest(0, 100)] * 50)
    assert_same_operations(operations_of(forest, 1), operations_of(forest, 4))


def test_a_part_of_operations_is_that_of_its_trees() -> None:
    forest = random_forest(1, 30)
    row = np.arange(len(forest.labels), dtype=np.int32)
    part = list_operations(forest.arity, forest.offsets[10:21], forest.label, row, 0.6)
    assert_same_operations(operations_of(forest).part(10, 20), part)
