"""Vectors of partial trees: against enumeration, the exact kernel, and the definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import trees
from treedot.algebra import ALGEBRAS
from treedot.encode.dense import reference
from treedot.kernels.reference import partial_tree_kernel, partial_tree_values

SMALL = ALGEBRAS["mixed"](512, 5)
SETTINGS = st.fixed_dictionaries(
    {
        "decay": st.sampled_from([0.0, 0.4, 1.0]),
        "mu": st.sampled_from([0.0, 0.3, 1.0]),
        "gaps": st.sampled_from(["toolkit", "span"]),
        "max_length": st.sampled_from([None, 1, 2, 5]),
    }
)


@given(trees(max_leaves=5), trees(max_leaves=5), SETTINGS)
def test_the_kernel_is_the_dot_product_of_all_partial_trees_written_out(a, b, settings):
    first, second = (partial_tree_values(tree, **settings) for tree in (a, b))
    explicit = math.fsum(value * second.get(part, 0.0) for part, value in first.items())
    assert explicit == pytest.approx(partial_tree_kernel(a, b, **settings), rel=1e-12)


@given(trees(max_leaves=5), SETTINGS)
def test_the_recursion_is_the_weighted_sum_of_all_partial_trees(tree, settings):
    explicit = np.zeros(SMALL.size)
    for part, value in partial_tree_values(tree, **settings).items():
        explicit += value * reference.fragment_vector(part, SMALL)
    recursive = reference.distributed_partial_tree(tree, SMALL, **settings)
    assert np.abs(recursive - explicit).max() <= 1e-12 * max(np.abs(explicit).max(), 1e-30)


@pytest.mark.parametrize("name", ["product", "convolution"])
def test_compositions_that_fold_right_have_no_such_recursion(name):
    tree = reference.Tree.parse("(A b)")
    with pytest.raises(ValueError, match=f"{name} does not fold left"):
        reference.distributed_partial_tree(tree, ALGEBRAS[name](512), 0.4, 0.4)
