"""A single call of a kernel gives what pairs and Gram matrices give, whatever the trees come as."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import ANY_LABEL, random_forest, trees
from treedot import Forest, SubsetTreeKernel, SubtreeKernel, Tree
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.kernels import BoundedTreeKernel, reference
from treedot.parameters import SUBTREE_CONVENTIONS

SETTINGS = [
    {},
    {"normalize": True},
    {"leaves": True},
    {"convention": "collins-duffy"},
    {"leaves": True, "convention": "collins-duffy", "normalize": True},
    {"algorithm": "FTK"},
]


@pytest.mark.parametrize("settings", SETTINGS)
@given(a=trees(), b=trees(), decay=st.sampled_from([0.0, 0.3, 1.0]))
def test_a_call_is_a_pair_to_the_last_bit(settings, a, b, decay):
    kernel = SubsetTreeKernel(decay, **settings)
    assert kernel(a, b) == kernel.pairs([a, b, b], [0], [1])[0]
    assert kernel(a, a) == pytest.approx(kernel.gram([a])[0, 0], rel=1e-12)


@given(trees(ANY_LABEL), trees(ANY_LABEL), st.integers(0, 5))
def test_a_bounded_call_is_a_pair_to_the_last_bit(a, b, budget):
    kernel = BoundedTreeKernel(budget=budget)
    assert kernel(a, b) == kernel.pairs([a, b], [0], [1])[0]


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("convention", SUBTREE_CONVENTIONS)
@given(a=trees(), b=trees(), decay=st.sampled_from([0.0, 0.3, 0.77, 1.0]))
def test_a_call_of_the_subtree_kernel_is_a_gram_matrix_to_the_last_bit(convention, leaves, a, b, decay):
    kernel = SubtreeKernel(decay, convention=convention, leaves=leaves)
    matrix = kernel.gram([a], [b])[0, 0]
    assert kernel(a, b) == matrix
    norms = [math.sqrt(kernel.gram([tree], [tree])[0, 0]) for tree in (a, b)]
    expected = matrix / norms[0] / norms[1] if all(norms) else 0.0
    assert kernel.set_params(normalize=True)(a, b) == expected


@given(trees(ANY_LABEL), trees(ANY_LABEL), st.sampled_from([0.0, 0.3, 1.0]))
def test_a_call_of_the_subtree_kernel_is_its_reference(a, b, decay):
    expected = pytest.approx(reference.subtree_kernel(a, b, decay), rel=1e-12)
    assert SubtreeKernel(decay)(a, b) == expected


def test_copies_of_a_subtree_are_added_up_one_by_one():
    a, b = "(A" + " (B (C (D d)))" * 1001 + ")", "(A" + " (B (C (D d)))" * 77 + ")"
    for decay in (0.1, 0.3, 0.9):
        kernel = SubtreeKernel(decay, leaves=True)
        assert kernel(a, b) == kernel.gram([a], [b])[0, 0]


@pytest.mark.parametrize("convention", SUBTREE_CONVENTIONS)
def test_a_tree_keeps_no_value_of_another_setting(convention):
    a, b = (Tree.parse(text) for text in ("(S (A a) (B b))", "(S (A a) (A a) (B b))"))
    for decay, leaves in [(0.5, False), (0.5, True), (0.2, True), (0.2, False), (0.5, False)]:
        kernel = SubtreeKernel(decay, convention=convention, leaves=leaves)
        assert kernel(a, b) == kernel(str(a), str(b)) == kernel.gram([a], [b])[0, 0]
        assert kernel(a, a) == kernel(a, str(a)) == kernel.gram([a], [a])[0, 0]


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("convention", SUBTREE_CONVENTIONS)
def test_a_call_of_the_subtree_kernel_packs_no_two_trees_together(convention, leaves, monkeypatch):
    kernel = SubtreeKernel(convention=convention, leaves=leaves)
    a, b = (Tree.parse(f"(S (A a) (B {word}))") for word in "bc")
    monkeypatch.delattr(Forest, "concat")
    assert kernel(a, b) > 0


@given(trees(), trees())
def test_trees_may_come_as_anything_and_again(a, b):
    kernel = SubsetTreeKernel()
    expected = pytest.approx(reference.subset_tree_kernel(a, b, 0.4), rel=1e-12)
    forests = Forest.from_trees([a]), Forest.from_trees([b])
    for x, y in ((a, b), (str(a), str(b)), forests, (a, str(b)), (forests[0], b), (a, b), forests):
        assert kernel(x, y) == expected


def test_all_pairs_of_a_random_forest():
    forest = random_forest(8, 12, nodes=60)
    for kernel in (SubsetTreeKernel(), BoundedTreeKernel(), SubsetTreeKernel(0.7, normalize=True)):
        found = [[kernel(a, b) for b in forest] for a in forest]
        assert np.allclose(found, kernel.gram(forest), rtol=1e-12, atol=0)


def test_a_forest_of_one_tree_is_a_tree():
    forest = random_forest(0, 2)
    with pytest.raises(ParameterError, match="expected one tree, found 2"):
        SubsetTreeKernel()(forest, forest)


@pytest.mark.large
def test_what_does_not_fit_goes_the_long_way():
    tree = "(A" + " (B x)" * 200 + ")"
    expected = pytest.approx(reference.subset_tree_kernel(Tree.parse(tree), Tree.parse(tree), 0.1) + 40_000)
    assert SubsetTreeKernel(0.1, max_pairs=1000, leaves=True)(tree, tree) == expected
    with pytest.raises(LimitError, match="40001 matching pairs"):
        SubsetTreeKernel(0.1, max_pairs=1000, algorithm="FTK")(tree, tree)
    huge = Tree("B", ["x"])
    for _ in range(1200):
        huge = Tree("B", [huge, Tree("B", ["x"])])
    with pytest.raises(RangeError, match="too large for a float"):
        SubsetTreeKernel(1.0)(huge, huge)
    assert SubsetTreeKernel(1.0, normalize=True, leaves=True)(huge, huge) == pytest.approx(1, rel=1e-9)


CODE = """
import sys
sys.modules["numba"] = None  # as if it were not installed
from treedot.kernels import BoundedTreeKernel
from treedot import SubsetTreeKernel, SubtreeKernel
a, b = "(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN bird)) (VP sings))"
print(SubsetTreeKernel(0.5)(a, b), BoundedTreeKernel(0.5, budget=2)(a, b))
print(SubtreeKernel(0.5)(a, b), SubtreeKernel(0.5, convention="kelp", leaves=True)(a, b))
"""


def test_pairs_work_without_numba():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("4.25 4.0\n1.0 1.375\n", "")
