"""What two trees share, fragment by fragment and node by node."""

import json
from collections import Counter

import numpy as np
import pytest

from models.explain.test_decision import cut
from models.explain.test_shares import assert_close, inner_nodes, occurrences, shapley
from strategies import random_forest
from treedot import PartialTreeKernel, SubsetTreeKernel, SubtreeKernel, Tree, explain_pair
from treedot.errors import ParameterError
from treedot.kernels import BoundedTreeKernel, RouteKernel, list_fragments
from treedot.kernels.fragments.cost import fragment_cost

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


OTHERS = [
    SubtreeKernel(),
    SubsetTreeKernel(weighting="distinct"),
    PartialTreeKernel(normalize=True),
    RouteKernel(),
    SubtreeKernel(normalize=True) + 2 * PartialTreeKernel(normalize=True),
    SubtreeKernel() * SubsetTreeKernel(normalize=True),
]


@pytest.mark.parametrize("kernel", OTHERS, ids=repr)
def test_other_kernels_are_explained_by_removal(kernel):
    a, b = FOREST[0], FOREST[1]
    found = explain_pair(a, b, kernel)
    assert found.value == pytest.approx(kernel(a, b), rel=1e-12)
    assert (found.values_are, found.fragments) == ("removal", [])
    for values, tree, other in ((found.values_a, a, b), (found.values_b, b, a)):
        falls = [
            kernel(tree, other) - kernel(cut(tree, k), other) if node.children else 0.0
            for k, node in enumerate(tree.postorder())
        ]
        np.testing.assert_allclose(values, falls, rtol=1e-9, atol=1e-12)
    words = "The value of a node is how much the kernel falls if the node's children are removed."
    assert str(found).endswith(words)
    assert words in found.to_html()
    assert "Shapley" not in found.to_html()
    assert json.loads(found.to_json())["values_are"] == "removal"


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0, 3, 6])
@pytest.mark.parametrize("normalize", [False, True])
def test_bounded_kernels_are_explained_by_their_fragments(budget, normalize):
    kernel = BoundedTreeKernel(0.4, budget=budget, normalize=normalize)
    small = [tree for tree in random_forest(21, 600, 9) if 0 < inner_nodes(tree) <= 6][:200]
    assert len(small) == 200
    for a, b in zip(small, small[1:] + small[:1], strict=True):
        found = explain_pair(a, b, kernel, n_fragments=1000, budget=None)
        raw = BoundedTreeKernel(0.4, budget=budget)
        length = np.sqrt(raw(a, a) * raw(b, b)) if normalize else 1.0
        assert found.value == pytest.approx(kernel(a, b), rel=1e-12)
        assert sum(share.value for share in found.fragments) == pytest.approx(found.value, rel=1e-9)
        for values, tree, other in ((found.values_a, a, b), (found.values_b, b, a)):
            times = Counter(f for _, f in occurrences(other) if fragment_cost(f) <= budget)
            own = [(nodes, times[f] * 0.4 ** (len(nodes) - 1)) for nodes, f in occurrences(tree) if times[f]]

            def worth(coalition, own=own):
                return sum(weight for nodes, weight in own if nodes <= coalition)

            assert_close(values, shapley(tree, worth) / length)


def test_the_list_of_a_bounded_kernel_may_be_shorter():
    kernel = BoundedTreeKernel(0.4, budget=6)
    found = explain_pair(FOREST[0], FOREST[0], kernel, budget=1, n_fragments=1000)
    assert max(fragment_cost(share.fragment) for share in found.fragments) <= 1
    assert found.values_a.sum() == pytest.approx(found.value)
    assert found.unlisted > 0


def test_what_is_no_kernel_is_refused():
    with pytest.raises(ParameterError, match="kernel must be a tree kernel"):
        explain_pair("(A a)", "(A a)", "subset")


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
