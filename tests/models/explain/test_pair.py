"""What two trees share, fragment by fragment and node by node."""

import json

import numpy as np
import pytest

from strategies import random_forest
from treedot import SubsetTreeKernel, SubtreeKernel, Tree, explain_pair
from treedot.errors import ParameterError
from treedot.kernels import list_fragments

FOREST = random_forest(6, 6, 20)
KERNELS = [
    SubsetTreeKernel(0.4),
    SubsetTreeKernel(0.4, normalize=True),
    SubsetTreeKernel(0.4, convention="collins-duffy"),
    SubsetTreeKernel(0.4, leaves=True, normalize=True, convention="collins-duffy"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_parts_sum_to_the_kernel_by_either_tree(kernel):
    for a in FOREST[:3]:
        for b in FOREST:
            found = explain_pair(a, b, kernel)
            others = sum(found.others.values())
            assert found.value == kernel(a, b)
            assert found.values_a.sum() + others == pytest.approx(found.value, rel=1e-9)
            assert found.values_b.sum() + others == pytest.approx(found.value, rel=1e-9)
            assert bool(found.others) == kernel.leaves


def test_fragments_are_those_of_both_with_their_weights():
    a, b = Tree.parse("(S (A (B b)) (A (B b)))"), Tree.parse("(S (A (B b)) (A (B c)))")
    found = explain_pair(a, b, SubsetTreeKernel(0.25), budget=100, n_fragments=100)
    ours, theirs = list_fragments(a, 0.25), list_fragments(b, 0.25)
    shared = {fragment: ours[fragment] * theirs[fragment] for fragment in ours.keys() & theirs.keys()}
    assert {share.fragment: share.value for share in found.fragments} == pytest.approx(shared)
    assert sum(shared.values()) == pytest.approx(found.value)
    assert found.unlisted == pytest.approx(0, abs=1e-12)
    by_fragment = {str(share.fragment): share for share in found.fragments}
    assert by_fragment["(B b)"].nodes_a == [[1], [4]]
    assert by_fragment["(B b)"].nodes_b == [[1]]
    values = [share.value for share in found.fragments]
    assert values == sorted(values, reverse=True)


def test_trees_that_share_nothing_have_no_shares():
    for kernel in KERNELS[:3]:
        found = explain_pair("(A a)", "(B b)", kernel)
        assert found.value == 0
        assert not found.values_a.any()
        assert found.fragments == []
        assert "kernel 0" in str(found)


def test_other_kernels_are_refused():
    for kernel in (SubtreeKernel(), SubsetTreeKernel(weighting="distinct")):
        with pytest.raises(ParameterError, match="SubsetTreeKernel with weighting='count'"):
            explain_pair("(A a)", "(A a)", kernel)


def test_json_and_text_have_both_trees():
    found = explain_pair(FOREST[0], FOREST[0])
    read = json.loads(found.to_json())
    assert (read["a"], read["b"], read["value"]) == (str(FOREST[0]), str(FOREST[0]), found.value)
    assert read["fragments"][0]["nodes_a"] == found.fragments[0].nodes_a
    np.testing.assert_array_equal(read["values_a"], found.values_a)
    trees = str(found).split("\n\n")
    assert trees[1] == trees[2]
    assert "\x1b[48;5;" in found.to_text(color=True)


@pytest.mark.slow
def test_explanations_of_pairs_of_large_trees_print_a_line():
    large = Tree("S", [Tree("B", ["b"])] * 1000)
    found = explain_pair(large, large)
    assert repr(found).endswith(": trees of 2001 and 2001 nodes>")
    assert "nodes_a=<1000 occurrences>, nodes_b=<1000 occurrences>" in repr(found.fragments)
    assert all(len(repr(share)) < 300 for share in found.fragments)
