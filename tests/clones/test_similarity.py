"""Similarities against the definition, and all similar pairs against comparing all."""

import importlib
import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import ANY_LABEL, all_trees, trees
from treedot import Forest, Tree, similarity
from treedot.clones.similarity import (
    Multisets,
    production_multisets,
    similar_pairs,
    similarities,
    unordered_multisets,
)
from treedot.errors import ParameterError

similarity_module = importlib.import_module("treedot.clones.similarity")


def productions(tree: Tree) -> Counter:
    found = Counter()
    todo = [tree]
    while todo:
        node = todo.pop()
        todo += node.children
        if node.children:
            found[node.label, tuple(child.label for child in node.children)] += 1
    return found


def defined(a: Tree, b: Tree) -> float:
    if a == b:
        return 1.0
    x, y = productions(a), productions(b)
    return (x & y).total() / max(1, (x | y).total())


@given(trees(), trees())
def test_similarity_is_the_share_of_productions_in_both(a, b):
    assert similarity(a, b) == defined(a, b)
    assert similarity(a, b) == similarity(b, a)


@given(trees(ANY_LABEL), trees(ANY_LABEL))
def test_labels_of_any_text_are_compared(a, b):
    assert similarity(a, b) == defined(a, b)


@given(trees(), trees())
def test_one_pair_is_as_similar_as_among_many(a, b):
    both = Forest.from_trees([a, b])
    expected = similarity_module.similarities(production_multisets(both), [0], [1])[0]
    assert similarity(a, b) == (1.0 if a == b else expected)


@given(trees(), trees())
def test_multisets_without_an_order_give_the_same_similarities(a, b):
    forest = Forest.from_trees([a, b])
    pair = np.array([0]), np.array([1])
    found = [similarities(some(forest), *pair) for some in (production_multisets, unordered_multisets)]
    assert found[0] == found[1]


def test_a_forest_may_name_labels_that_its_leaf_does_not_bear():
    leaf, other = Forest([1], [0], [0, 1], ["a", "b"]), Forest([0], [0], [0, 1], ["b"])
    assert similarity(leaf, other) == similarity(leaf, "(b)") == 1
    assert similarity(leaf, "(a)") == 0


def test_comparing_two_trees_packs_no_two_trees_together(monkeypatch):
    a, b = (Tree.parse(f"(S (A a) (B {word}))") for word in "bc")
    monkeypatch.delattr(Forest, "concat")
    assert similarity(a, b) == defined(a, b) > 0


@given(trees())
def test_a_tree_is_like_itself(tree):
    assert similarity(tree, tree) == 1


def test_single_leaves_are_alike_where_they_are_equal():
    assert similarity(Tree("a"), Tree("a")) == 1
    assert similarity(Tree("a"), Tree("b")) == 0


def test_two_trees_are_compared_and_no_more():
    with pytest.raises(ParameterError, match="expected one tree, found 2"):
        similarity("(a b)", Forest.from_trees([Tree("a"), Tree("b")]))


@given(st.lists(trees(max_leaves=12), max_size=12), st.sampled_from([0.1, 1 / 3, 0.5, 0.7, 0.8, 1.0]))
def test_all_similar_pairs_are_found_and_no_others(some, threshold):
    forest = Forest.from_trees(some)
    found = similar_pairs(production_multisets(forest), threshold)
    expected = {
        (i, j): (x & y).total() / (x | y).total()
        for (i, x), (j, y) in combinations(enumerate(map(productions, some)), 2)
        if x and y and (x & y).total() / (x | y).total() >= threshold
    }
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == sorted(expected)
    assert found.similarity.tolist() == [expected[pair] for pair in sorted(expected)]


@given(st.lists(st.lists(st.integers(0, 9)), max_size=20), st.floats(0.05, 1))
def test_any_multisets_are_joined(lists, threshold):
    counted = [Counter(numbers) for numbers in lists]
    elements = [sorted(10 * x + k for x, n in c.items() for k in range(n)) for c in counted]
    bounds = np.cumsum([0, *map(len, elements)])
    sets = Multisets(np.array([x for e in elements for x in e], np.int64), bounds)
    found = similar_pairs(sets, threshold)
    expected = [
        (i, j)
        for (i, x), (j, y) in combinations(enumerate(counted), 2)
        if (x | y).total() and (x & y).total() / (x | y).total() >= threshold
    ]
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == expected


def test_threads_find_the_same_pairs_in_the_same_order():
    sets = production_multisets(Forest.from_trees(all_trees(5, "ab")))
    one, three = similar_pairs(sets, 0.5), similar_pairs(sets, 0.5, n_jobs=3)
    assert len(one.a) > 100
    for x, y in zip(one[:3], three[:3], strict=True):
        assert x.tobytes() == y.tobytes()


@pytest.fixture
def limits(monkeypatch):
    """Return a function that sets the limits, and a list of how many trees each tree was compared with."""
    compared = []
    partners = similarity_module._partners

    def counting(x, *arguments):
        found = partners(x, *arguments)
        compared.append(int((arguments[9] == x).sum()))
        return found

    def set_limits(max_compared, max_similar):
        monkeypatch.setattr(similarity_module, "_partners", counting)
        monkeypatch.setattr(similarity_module, "MAX_COMPARED", max_compared)
        monkeypatch.setattr(similarity_module, "MAX_SIMILAR", max_similar)
        return compared

    return set_limits


def alike(count: int) -> Forest:
    """Return different trees of which every two share almost all productions."""
    common = [Tree(f"s{k}", ["x"]) for k in range(38)]
    return Forest.from_trees(Tree("f", [*common, Tree(f"t{k}", ["x"])]) for k in range(count))


def test_many_trees_that_are_alike_have_a_limited_number_of_pairs(limits):
    sets = production_multisets(alike(60))
    assert len(similar_pairs(sets, 0.5).a) == 60 * 59 / 2
    compared = limits(10_000, 7)
    found = similar_pairs(sets, 0.5)
    assert max(compared) == 7
    assert len(found.a) == sum(min(x, 7) for x in range(60))
    assert found.n_limited == 60 - 8


def test_many_trees_that_share_something_rare_are_compared_with_a_limited_number(limits):
    chance = random.Random(0)
    common = [Tree(f"s{k}", ["x"]) for k in range(40)]
    rare = [[Tree("r", ["x"])]] * 60 + [[]] * 60
    sets = production_multisets(
        Forest.from_trees(Tree("f", [*first, *chance.sample(common, 26)]) for first in rare)
    )
    compared = limits(9, 500)
    found = similar_pairs(sets, 0.8)
    assert max(compared) == 9
    assert len(found.a) == 0
    assert found.n_limited >= 50


def test_nothing_is_limited_where_the_numbers_are_just_reached(limits):
    sets = production_multisets(alike(20))
    limits(19, 19)
    assert (len(similar_pairs(sets, 0.5).a), similar_pairs(sets, 0.5).n_limited) == (20 * 19 / 2, 0)
