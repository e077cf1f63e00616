"""Two trees beside each other."""

import numpy as np
import pytest
from hypothesis import given, settings

from strategies import examples, trees
from treedot import Forest, FragmentVectorizer, Tree, compare, dot_products, edit_distance, similarity


@settings(max_examples=examples(30), deadline=None)
@given(trees(), trees())
def test_all_numbers_are_those_of_the_functions_they_are_named_after(a, b):
    found = compare(a, b)
    assert found.similarity == similarity(a, b)
    assert found.edits == edit_distance(a, b)
    rows = FragmentVectorizer(damping="sqrt").transform([a, b]).astype(float)
    assert found.cosine == pytest.approx(dot_products(rows)[0, 1], abs=1e-6)
    both = sum(found.shared.values())
    either = both + sum(found.only_a.values()) + sum(found.only_b.values())
    if either:
        assert found.similarity == pytest.approx(both / either)


def test_productions_are_told_in_words_the_most_frequent_first():
    found = compare("(f (a x) (a x) (b y))", "(f (a x) (a x) (b z) (b z))")
    assert found.shared == {"a → x": 2}
    assert list(found.only_a.items()) == [("b → y", 1), ("f → a a b", 1)]
    assert list(found.only_b.items()) == [("b → z", 2), ("f → a a b b", 1)]


def test_names_agree_as_far_as_they_are_the_same():
    forest = Forest.from_trees([Tree.parse("(f x y z)")] * 2)
    forest.columns["blurred"] = [np.array([1, 2, 3]), np.array([2, 3, 4])]
    assert compare(forest[[0]], forest[[1]]).agreement == 0.5
    assert compare(forest[[0]], forest[[0]]).agreement == 1
    assert compare("(f x)", forest[[0]]).agreement is None


def test_large_trees_have_no_edit_distance():
    large = Tree("a", [Tree("b")] * 3000)
    found = compare(large, large)
    assert found.edits is None
    assert found.similarity == 1


def test_a_comparison_of_large_trees_prints_its_figures():
    a, b = (Tree("S", [Tree(f"B{k}", [str(k)]) for k in range(n)]) for n in (900, 1000))
    found = compare(a, b)
    assert repr(found).endswith("shared=<900 productions>, only_a=<1 productions>, only_b=<101 productions>)")
    assert repr(found).startswith(f"Comparison(similarity={found.similarity!r}, ")
