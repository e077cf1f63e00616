import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import random_forest, trees
from treedot import KernelTransformer, SubsetTreeKernel, Tree
from treedot.errors import LimitError, ParameterError
from treedot.kernels import BoundedTreeKernel, reference
from treedot.kernels.fragments.cost import fragment_cost

EXACT = 1e-12
DECAY = st.sampled_from([0.0, 0.3, 1.0])
BUDGET = st.integers(0, 9)
FORESTS = st.lists(trees(max_leaves=7), min_size=1, max_size=4)


def matrix(first, second, budget, decay):
    return np.array([[reference.bounded_tree_kernel(a, b, budget, decay) for b in second] for a in first])


def test_the_cost_of_a_fragment_counts_siblings():
    costs = {"(A b)": 0, "(A (B c))": 1, "(A (B c) d)": 2, "(A (B c) (D e))": 4, "(A (B (C d) e) f g)": 3 + 2}
    for text, cost in costs.items():
        assert fragment_cost(Tree.parse(text)) == cost


@given(trees(max_leaves=6), BUDGET)
def test_bounded_fragments_are_the_fragments_within_the_budget(tree, budget):
    every = reference.fragment_counts(tree)
    within = Counter({part: n for part, n in every.items() if fragment_cost(part) <= budget})
    assert reference.bounded_fragment_counts(tree, budget) == within


@given(trees(max_leaves=6), DECAY)
def test_bounded_values_are_damped_counts(tree, decay):
    values = reference.fragment_values(tree, decay)
    counts = reference.fragment_counts(tree)
    assert reference.bounded_fragment_values(tree, 100, decay) == pytest.approx(values)
    for damping in (math.sqrt, math.log1p):
        damped = {part: value / counts[part] * damping(counts[part]) for part, value in values.items()}
        assert reference.bounded_fragment_values(tree, 100, decay, damping) == pytest.approx(damped)


@given(FORESTS, FORESTS, DECAY, BUDGET)
def test_the_bounded_kernel_is_its_reference(first, second, decay, budget):
    kernel = BoundedTreeKernel(decay, budget=budget)
    expected, own = matrix(first, second, budget, decay), matrix(first, first, budget, decay)
    assert np.allclose(kernel.gram(first, second), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first), own, rtol=EXACT, atol=0)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=EXACT)
    rows, columns = np.indices(own.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(first, rows, columns), own.ravel(), rtol=EXACT, atol=0)
    assert np.allclose(kernel.diagonal(first), np.diagonal(own), rtol=EXACT, atol=0)
    assert np.allclose(kernel.norms(first), np.sqrt(np.diagonal(own)), rtol=EXACT, atol=0)
    if expected[0, 0] > 0:
        assert kernel.log(first[0], second[0]) == pytest.approx(math.log(expected[0, 0]), abs=EXACT)
    else:
        assert kernel.log(first[0], second[0]) == -math.inf


@given(FORESTS, st.sampled_from([0.3, 1.0]), BUDGET)
def test_normalised_bounded_kernels_are_cosines(first, decay, budget):
    raw = matrix(first, first, budget, decay)
    own = np.sqrt(np.outer(np.diagonal(raw), np.diagonal(raw)))
    expected = np.divide(raw, own, out=np.zeros_like(raw), where=own > 0)
    kernel = BoundedTreeKernel(decay, normalize=True, budget=budget)
    assert np.allclose(kernel.gram(first), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first, first), expected, rtol=EXACT, atol=0)
    assert kernel(first[0], first[-1]) == pytest.approx(expected[0, -1], rel=EXACT)
    last = len(first) - 1
    assert kernel.pairs(first, [0, last], [last, 0]) == pytest.approx([expected[0, -1]] * 2, rel=EXACT)


@pytest.mark.parametrize("budget", [0, 1, 4, 7])
@pytest.mark.parametrize("decay", [0.2, 1.0])
def test_random_forests_agree_with_the_reference(budget, decay):
    forest = random_forest(6, 10, nodes=60)
    expected = matrix(forest, forest, budget, decay)
    kernel = BoundedTreeKernel(decay, budget=budget)
    assert np.allclose(kernel.gram(forest), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(forest[:3], forest), expected[:3], rtol=EXACT, atol=0)
    rows, columns = np.indices(expected.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(forest, rows, columns), expected.ravel(), rtol=EXACT, atol=0)


@given(FORESTS, DECAY)
def test_with_enough_budget_nothing_is_left_out(first, decay):
    everything = BoundedTreeKernel(decay, budget=100).gram(first)
    assert np.allclose(everything, SubsetTreeKernel(decay).gram(first), rtol=EXACT, atol=0)


def test_bounded_tiles_do_not_matter():
    forest = random_forest(0, 30)
    whole = BoundedTreeKernel().gram(forest)
    tiled = BoundedTreeKernel(max_pairs=2000)
    assert np.allclose(tiled.gram(forest), whole, rtol=EXACT)
    assert np.allclose(tiled.gram(forest[:7], forest), whole[:7], rtol=EXACT)


def test_coefficients_count_as_pairs_do():
    tree = "(A" + " (B x)" * 200 + ")"  # 40,001 matching pairs of nodes, 2 of distinct subtrees
    assert BoundedTreeKernel(max_pairs=10).pairs([tree, tree], [0, 0], [1, 0]).tolist() == [40_001] * 2
    assert BoundedTreeKernel(max_pairs=10)(tree, tree) == 40_001
    with pytest.raises(LimitError, match="10 coefficients of matching pairs of nodes, more than max_pairs=9"):
        BoundedTreeKernel(max_pairs=9)(tree, tree)


@pytest.mark.large
def test_the_largest_kernels_fit_a_float():
    tree = Tree("N", ["x"])
    for _ in range(9):
        tree = Tree("N", [tree, tree])
    kernel = BoundedTreeKernel(1.0, budget=256)
    assert 100 < kernel.log(tree, tree) < 514 * math.log(2) + 2 * math.log(tree.size)
    assert kernel.gram([tree])[0, 0] == pytest.approx(kernel(tree, tree), rel=EXACT)


@pytest.mark.parametrize("budget", [-1, 1.5, "4", 257])
def test_impossible_budgets_are_refused(budget):
    with pytest.raises(ParameterError, match="budget"):
        BoundedTreeKernel(budget=budget)


def test_the_kernel_transformer_takes_a_bounded_kernel():
    forest = random_forest(1, 8)
    gram = KernelTransformer(kernel=BoundedTreeKernel(0.3, budget=3))
    expected = BoundedTreeKernel(0.3, budget=3).gram(forest)
    assert (gram.fit_transform(forest) == expected).all()
    assert np.allclose(gram.transform(forest[:2]), expected[:2], rtol=EXACT)
    with pytest.raises(ParameterError, match="budget"):
        gram.set_params(kernel__budget=-1)
