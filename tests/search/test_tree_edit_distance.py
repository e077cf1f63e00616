"""The edit distance of two trees against its definition, and which nodes correspond."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

from strategies import examples, random_tree, trees
from treedot import Tree, edit_distance
from treedot.errors import LimitError
from treedot.search import align
from treedot.search.tree_edit_distance import MAX_NODES


def distance(a: tuple[Tree, ...], b: tuple[Tree, ...]) -> int:
    """The definition: delete the last root of one forest, insert that of the other, or match the two."""

    @cache
    def of(a: tuple[Tree, ...], b: tuple[Tree, ...]) -> int:
        if not a or not b:
            return sum(tree.size for tree in a + b)
        (*before_a, x), (*before_b, y) = a, b
        return min(
            of((*before_a, *x.children), b) + 1,
            of(a, (*before_b, *y.children)) + 1,
            of(tuple(before_a), tuple(before_b)) + of(x.children, y.children) + (x.label != y.label),
        )

    return of(a, b)


@settings(max_examples=examples(200), deadline=None)
@given(trees(max_leaves=6), trees(max_leaves=6))
def test_the_distance_is_that_of_the_definition(a, b):
    assert edit_distance(a, b) == edit_distance(b, a) == distance((a,), (b,))


@settings(max_examples=examples(200), deadline=None)
@given(trees(max_leaves=10), trees(max_leaves=10))
def test_the_pairs_are_a_mapping_of_trees_that_costs_the_distance(a, b):
    pairs = align(a, b).tolist()
    x, y = list(a.postorder()), list(b.postorder())
    relabelled = sum(x[i].label != y[j].label for i, j in pairs)
    assert len(x) + len(y) - 2 * len(pairs) + relabelled == edit_distance(a, b)
    first_x, first_y = first_nodes(a), first_nodes(b)
    for n, (i, j) in enumerate(pairs):
        for k, m in pairs[:n]:
            assert k < i
            assert m < j
            assert (k >= first_x[i]) == (m >= first_y[j])  # descendants of both, or of neither


def first_nodes(tree: Tree) -> list[int]:
    return [i - node.size + 1 for i, node in enumerate(tree.postorder())]


def test_equal_trees_correspond_node_by_node():
    tree = random_tree(np.random.default_rng(0), 200)
    assert edit_distance(tree, tree) == 0
    assert align(tree, tree).tolist() == [[i, i] for i in range(tree.size)]


def test_one_edit_costs_one():
    tree = "(f (a x y) (b z))"
    assert edit_distance(tree, "(f (a x y) (c z))") == 1
    assert edit_distance(tree, "(f (a x y) z)") == 1
    assert edit_distance(tree, "(f (g (a x y)) (b z))") == 1
    assert edit_distance("(a)", "(b)") == 1


def test_trees_that_would_take_too_long_are_refused_with_a_reason():
    wide = Tree("f", ["x"] * MAX_NODES)
    with pytest.raises(LimitError, match=r"1,001 nodes is too large"):
        edit_distance(wide, "(a b)")
    with pytest.raises(LimitError, match=r"1,001 nodes is too large"):
        align("(a b)", wide)
    deep = Tree("f", ["x"])
    for _ in range(490):
        deep = Tree("f", ["x", deep])
    with pytest.raises(LimitError, match="chains of last children"):
        edit_distance(deep, deep)
    assert edit_distance(Tree("f", ["x"] * (MAX_NODES - 1)), Tree("g", ["x"] * (MAX_NODES - 2))) == 2
