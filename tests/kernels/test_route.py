import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import random_forest, trees
from treedot import Tree
from treedot.errors import LimitError, ParameterError
from treedot.kernels import RouteKernel, reference

EXACT = 1e-12
FORESTS = st.lists(trees(max_leaves=7), min_size=1, max_size=4)


@given(FORESTS, FORESTS, st.sampled_from([0.0, 0.4, 1.0]), st.sampled_from(["any", "root"]))
def test_the_route_kernel_is_its_reference(first, second, decay, start):
    def matrix(rows, columns):
        return np.array([[reference.route_kernel(a, b, decay, start) for b in columns] for a in rows])

    kernel, own, expected = RouteKernel(decay, start=start), matrix(first, first), matrix(first, second)
    assert np.allclose(kernel.gram(first, second), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first), own, rtol=EXACT, atol=0)
    assert np.allclose(kernel.diagonal(first), np.diagonal(own), rtol=EXACT, atol=0)
    rows, columns = np.indices(own.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(first, rows, columns), own.ravel(), rtol=EXACT, atol=0)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=EXACT)
    log = math.log(expected[0, 0]) if expected[0, 0] > 0 else -math.inf
    assert kernel.log(first[0], second[0]) == pytest.approx(log, abs=EXACT)


def test_routes_are_counted_by_hand():
    # (S (A a) (A a)): the label a twice, two routes [1] and [2] to A, [1] to a twice, [1 1] and [2 1] to a.
    tree = "(S (A a) (A a))"
    for decay in (0.0, 0.5, 1.0):
        kernel = RouteKernel(decay)
        assert kernel(tree, tree) == pytest.approx(1 + 4 + 4 + decay * (2 + 4) + decay**2 * 2)
        assert kernel("(A)", "(A)") == 1
        assert kernel("(A)", "(B)") == 0
        assert RouteKernel(decay, start="root")(tree, tree) == pytest.approx(1 + 2 * decay + 2 * decay**2)


def test_with_decay_0_labels_alone_count():
    kernel = RouteKernel(0.0)
    assert kernel("(S (A a) (B b))", "(b (B A))") == 3
    assert RouteKernel(0.0, start="root")("(S a)", "(S b)") == 1  # the root alone


def test_long_routes_of_random_forests_agree_with_the_reference():
    forest = random_forest(3, 6, nodes=60)
    for start in ("any", "root"):
        expected = [[reference.route_kernel(a, b, 0.7, start) for b in forest] for a in forest]
        assert np.allclose(RouteKernel(0.7, start=start).gram(forest), expected, rtol=EXACT, atol=0)


def test_chains_are_compared_from_the_root_and_refused_elsewhere():
    chain = Tree("A")
    for _ in range(20_000):
        chain = Tree("A", [chain])
    value = RouteKernel(0.5, start="root")(chain, chain)
    assert value == pytest.approx(2.0)  # 1 + 1/2 + 1/4 + …
    with pytest.raises(LimitError, match="400060002 routes, more than max_pairs"):
        RouteKernel()(chain, chain)


def test_impossible_starts_are_refused():
    with pytest.raises(ParameterError, match="start must be one of 'any', 'root', not 'leaf'"):
        RouteKernel(start="leaf")
