"""Values of KeLP and SVM-LIGHT-TK, and what they are here.

``toolkit_values.json`` holds pairs of trees that were generated for it, and what the original programs make
of them: KeLP (``kelp-additional-kernels`` 2.2.4-SNAPSHOT, its classes called from Java) and SVM-LIGHT-TK
(V5.01-TK-1.5, ``tree_kernel_not_norm`` called from C), each leaf in brackets of its own. KeLP computes in
single precision.
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import random_forest, trees
from treedot import PartialTreeKernel, SubsetTreeKernel, SubtreeKernel, Tree
from treedot.errors import LimitError
from treedot.kernels import reference
from treedot.kernels.toolkit_subtrees import RULES

GOLDEN = json.loads(Path(__file__).with_name("toolkit_values.json").read_text(encoding="utf-8"))
COUNTED = {"convention": "collins-duffy"}
SAME = {
    "kelp SubTreeKernel(0.4)": SubtreeKernel(0.4, convention="kelp", leaves=True),
    "kelp SubTreeKernel(0.4) includeLeaves=false": SubtreeKernel(0.4, convention="kelp"),
    "kelp SubSetTreeKernel(0.4)": SubsetTreeKernel(0.4, **COUNTED, leaves=True),
    "kelp SubSetTreeKernel(0.4) includeLeaves=false": SubsetTreeKernel(0.4, **COUNTED),
    "kelp PartialTreeKernel(0.4, 0.3, 1)": PartialTreeKernel(0.4, mu=0.3),
    "kelp PartialTreeKernel(0.4, 0.3, 5)": PartialTreeKernel(0.4, mu=0.3, terminal_factor=5),
    "kelp PartialTreeKernel(0.4, 0.3, 1) maxSubseqLeng=2": PartialTreeKernel(0.4, mu=0.3, max_length=2),
    "svm-light-tk -F 0 -L 0.4 -M 0.3": SubtreeKernel(0.4, convention="svm-light-tk"),
    "svm-light-tk -F 1 -L 0.4 -M 0.3": SubsetTreeKernel(0.4, **COUNTED),
    "svm-light-tk -F 2 -L 0.4 -M 0.3": SubsetTreeKernel(0.4, **COUNTED, leaves=True),
    "svm-light-tk -F 3 -L 0.4 -M 0.3": PartialTreeKernel(0.4, mu=0.3, max_length=5),
}
FORESTS = st.lists(trees(max_leaves=7), min_size=1, max_size=4)
DECAYS = st.sampled_from([0.0, 0.4, 1.0])


@pytest.mark.parametrize("name", SAME)
def test_the_values_are_those_of_the_original_programs(name):
    pairs = GOLDEN["trees"]
    expected = GOLDEN["values"][name]
    precision = 1e-5 if name.startswith("kelp") else 1e-12
    assert len(expected) == len(pairs) > 60
    assert [SAME[name](a, b) for a, b in pairs] == pytest.approx(expected, rel=precision, abs=0)


def test_every_program_and_setting_has_its_kernel_here_but_one():
    assert set(GOLDEN["values"]) == {*SAME, "svm-light-tk -F 4 -L 0.4 -M 0.3"}


def test_the_kernel_without_leaves_of_svm_light_tk_is_a_difference_of_kernels():
    decay, mu = 0.4, 0.3
    found = []
    for a, b in GOLDEN["trees"]:
        first, second = (list(Tree.parse(text).postorder()) for text in (a, b))
        nodes = common(first, second)
        leaves = common(*([node for node in side if node.is_leaf] for side in (first, second)))
        partial = PartialTreeKernel(decay, mu=mu, max_length=5)(a, b)
        found.append(partial - mu * decay**2 * (2 * nodes - leaves))
    assert found == pytest.approx(GOLDEN["values"]["svm-light-tk -F 4 -L 0.4 -M 0.3"], abs=1e-12)
    assert min(found) < 0  # so it is no kernel


def common(first, second):
    counts, others = (Counter(node.label for node in side) for side in (first, second))
    return sum(count * others[label] for label, count in counts.items())


def test_the_two_toolkits_count_other_pairs_of_subtrees_than_those_that_are_equal():
    subtrees = SubtreeKernel(0.4, **COUNTED, leaves=True)
    values = GOLDEN["values"]["kelp SubTreeKernel(0.4)"]
    different = [
        pair
        for pair, value in zip(GOLDEN["trees"], values, strict=True)
        if subtrees(*pair) != pytest.approx(value, rel=1e-5)
    ]
    assert 0 < len(different) < len(values)
    a, b = "(A (B b) (C c))", "(A (B b) (C d))"
    assert SubtreeKernel(0.4, **COUNTED)(a, b) == pytest.approx(0.4)
    assert SubtreeKernel(0.4, convention="kelp")(a, b) == pytest.approx(0.4 + 0.4**2)
    a, b = "(A (B b) (C c))", "(A (B b) C)"
    assert SubtreeKernel(0.4, convention="kelp")(a, b) == pytest.approx(0.4)
    assert SubtreeKernel(0.4, convention="svm-light-tk")(a, b) == pytest.approx(0.4 + 0.4**2)


@given(FORESTS, FORESTS, DECAYS, st.sampled_from(sorted(RULES)), st.booleans())
def test_the_subtree_kernels_of_the_toolkits_are_their_reference(first, second, decay, convention, leaves):
    def value(a, b):
        equal = common(*([node for node in tree.postorder() if node.is_leaf] for tree in (a, b)))
        return reference.toolkit_subtree_kernel(a, b, decay, *RULES[convention]) + leaves * decay * equal

    kernel = SubtreeKernel(decay, convention=convention, leaves=leaves)
    expected = np.array([[value(a, b) for b in second] for a in first])
    own = np.array([[value(a, b) for b in first] for a in first])
    assert np.allclose(kernel.gram(first, second), expected, rtol=1e-12, atol=0)
    assert np.allclose(kernel.gram(first), own, rtol=1e-12, atol=0)
    assert np.allclose(kernel.diagonal(first), np.diagonal(own), rtol=1e-12, atol=0)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=1e-12)


@given(FORESTS, FORESTS, DECAYS)
def test_without_what_they_count_beside_equal_subtrees_they_are_the_subtree_kernel(first, second, decay):
    expected = SubtreeKernel(decay, **COUNTED).gram(first, second)
    found = [[reference.toolkit_subtree_kernel(a, b, decay, 0, 0) for b in second] for a in first]
    assert np.allclose(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("convention", RULES)
def test_threads_make_no_difference_to_the_toolkits_kernels(convention):
    forest = random_forest(3, 40)
    kernel = SubtreeKernel(convention=convention, leaves=True)
    assert np.array_equal(kernel.gram(forest), kernel.gram(forest, n_jobs=2))


def test_trees_with_too_many_pairs_of_nodes_are_refused():
    wide = "(A" + " (B b)" * 100 + ")"
    assert SubtreeKernel(0.5, convention="kelp", max_pairs=201**2)(wide, wide) > 0
    with pytest.raises(LimitError, match="40401 pairs of nodes"):
        SubtreeKernel(0.5, convention="kelp", max_pairs=201**2 - 1)(wide, wide)
