import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import random_forest, trees
from treedot import KernelTransformer, PartialTreeKernel, Tree
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.kernels import SmoothedPartialTreeKernel, reference

EXACT = 1e-12
FORESTS = st.lists(trees(max_leaves=7), min_size=1, max_size=4)
SETTINGS = st.fixed_dictionaries(
    {
        "decay": st.sampled_from([0.0, 0.4, 1.0]),
        "mu": st.sampled_from([0.0, 0.3, 1.0]),
        "gaps": st.sampled_from(["toolkit", "span"]),
        "terminal_factor": st.sampled_from([0.0, 1.0, 5.0]),
        "max_length": st.sampled_from([None, 1, 2, 5]),
    }
)


def matrix(first, second, settings):
    return np.array([[reference.partial_tree_kernel(a, b, **settings) for b in second] for a in first])


@given(FORESTS, FORESTS, SETTINGS)
def test_the_partial_kernel_is_its_reference(first, second, settings):
    kernel = PartialTreeKernel(**settings)
    expected, own = matrix(first, second, settings), matrix(first, first, settings)
    assert np.allclose(kernel.gram(first, second), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first), own, rtol=EXACT, atol=0)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=EXACT)
    rows, columns = np.indices(own.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(first, rows, columns), own.ravel(), rtol=EXACT, atol=0)
    assert np.allclose(kernel.diagonal(first), np.diagonal(own), rtol=EXACT, atol=0)
    log = math.log(expected[0, 0]) if expected[0, 0] > 0 else -math.inf
    assert kernel.log(first[0], second[0]) == pytest.approx(log, abs=EXACT)


@given(FORESTS, SETTINGS)
def test_normalised_partial_kernels_are_cosines_or_0(first, settings):
    raw = matrix(first, first, settings)
    own = np.sqrt(np.outer(np.diagonal(raw), np.diagonal(raw)))
    expected = np.divide(raw, own, out=np.zeros_like(raw), where=own > 0)
    kernel = PartialTreeKernel(**settings, normalize=True)
    assert np.allclose(kernel.gram(first), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first, first), expected, rtol=EXACT, atol=0)
    assert kernel(first[0], first[-1]) == pytest.approx(expected[0, -1], rel=EXACT)
    last = len(first) - 1
    assert kernel.pairs(first, [0, last], [last, 0]) == pytest.approx([expected[0, -1]] * 2, rel=EXACT)


WIDE = st.lists(
    st.builds(Tree, st.sampled_from("ab"), st.lists(st.builds(Tree, st.sampled_from("ab")), max_size=2))
)


@given(st.lists(WIDE.map(lambda children: Tree("A", children[:6])), min_size=2, max_size=3), SETTINGS)
def test_nodes_of_many_children_that_are_alike_agree_with_the_reference(first, settings):
    """More than ``subsequences.FEW`` pairs of children have equal labels."""
    kernel, expected = PartialTreeKernel(**settings), matrix(first, first, settings)
    assert np.allclose(kernel.gram(first), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first[:1], first), expected[:1], rtol=EXACT, atol=0)


@pytest.mark.parametrize("gaps", ["toolkit", "span"])
def test_few_children_among_many_agree_with_the_reference(gaps):
    many = Tree("A", [f"w{k % 60}" for k in range(70)])
    chosen = [many, Tree("A", ["w3", "x", "w7"]), Tree("A", ["w59", "w3"])]
    settings = {"decay": 0.9, "mu": 0.8, "gaps": gaps}
    expected = matrix(chosen[1:], chosen, settings)
    assert np.allclose(PartialTreeKernel(**settings).gram(chosen[1:], chosen), expected, rtol=EXACT, atol=0)


@pytest.mark.parametrize("gaps", ["toolkit", "span"])
def test_random_forests_agree_with_the_reference(gaps):
    forest = random_forest(6, 10, nodes=60)
    settings = {"decay": 0.4, "mu": 0.4, "gaps": gaps}
    kernel, expected = PartialTreeKernel(**settings), matrix(forest, forest, settings)
    assert np.allclose(kernel.gram(forest), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(forest[:3], forest), expected[:3], rtol=EXACT, atol=0)
    rows, columns = np.indices(expected.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(forest, rows, columns), expected.ravel(), rtol=EXACT, atol=0)


def test_small_kernels_are_those_found_by_hand():
    # Two leaves A: μλ². (A b) with itself: b counts μλ², A counts μ(λ² + μλ²).
    for decay, mu in ((0.4, 0.4), (0.5, 0.25), (1.0, 1.0)):
        node = mu * decay**2
        kernel = PartialTreeKernel(decay, mu=mu)
        assert kernel("(A)", "(A)") == pytest.approx(node)
        assert kernel("(A)", "(B)") == 0
        assert kernel("(A b)", "(A b)") == pytest.approx(node + mu * (decay**2 + node))
        assert kernel("(A b)", "(A c)") == pytest.approx(node)
        assert kernel("(A)", "(A b)") == pytest.approx(node)
        # (A b c) and (A b x c) share b, c, and at A: nothing, b, c, and b c with one child left out.
        pair = node**2 * decay
        expected = 2 * node + mu * (decay**2 + 2 * node + pair)
        assert kernel("(A b c)", "(A b x c)") == pytest.approx(expected)
        # In the published formula g counts all children from the first to the last: 2, 2, and 2 + 3.
        spans = 2 * node * decay**2 + node**2 * decay**5
        expected = 2 * node + mu * (decay**2 + spans)
        assert PartialTreeKernel(decay, mu=mu, gaps="span")("(A b c)", "(A b x c)") == pytest.approx(expected)
        expected = 2 * node + mu * (decay**2 + 2 * node)
        assert PartialTreeKernel(decay, mu=mu, max_length=1)("(A b c)", "(A b x c)") == pytest.approx(
            expected
        )
        expected = 5 * 2 * node + mu * (decay**2 + 5 * 2 * node + 25 * pair)
        assert PartialTreeKernel(decay, mu=mu, terminal_factor=5)("(A b c)", "(A b x c)") == pytest.approx(
            expected
        )


@given(st.lists(trees(), min_size=2, max_size=5), SETTINGS)
def test_with_a_terminal_factor_of_1_it_is_a_kernel(chosen, settings):
    settings["terminal_factor"] = 1.0
    smallest = np.linalg.eigvalsh(PartialTreeKernel(**settings, normalize=True).gram(chosen))[0]
    assert smallest > -1e-9


def test_with_another_terminal_factor_it_need_not_be_one():
    # A is a leaf in one tree and an inner node in the other.
    matrix = PartialTreeKernel(0.5, mu=0.5, terminal_factor=5).gram(["(A b)", "(A)", "(A c)", "(A d)"])
    assert np.linalg.eigvalsh(matrix)[0] < -0.1


def test_where_all_kernels_are_0_so_are_normalised_ones():
    for settings in ({"decay": 0.0}, {"mu": 0.0}, {"decay": 1e-300}):
        kernel = PartialTreeKernel(**settings, normalize=True)
        assert kernel.gram(["(A b)", "(A)"]).tolist() == [[0, 0], [0, 0]]
        assert kernel("(A b)", "(A b)") == 0
        assert kernel.log("(A b)", "(A b)") == -math.inf


def test_partial_tiles_do_not_matter():
    forest = random_forest(0, 30)
    whole = PartialTreeKernel().gram(forest)
    tiled = PartialTreeKernel(max_pairs=400)
    assert np.allclose(tiled.gram(forest), whole, rtol=EXACT)
    assert np.allclose(tiled.gram(forest[:7], forest), whole[:7], rtol=EXACT)
    assert np.allclose(tiled.pairs(forest, [0, 1, 2], [2, 1, 0]), whole[[0, 1, 2], [2, 1, 0]], rtol=EXACT)


@pytest.mark.slow
@pytest.mark.large
def test_wide_trees_have_logarithms():
    # With λ = μ = 1 every pair of subsequences counts 1: Σ C(n, k)² = C(2n, n) at the root.
    n = 2000
    wide = Tree("A", ["b"] * n)
    expected = math.lgamma(2 * n + 1) - 2 * math.lgamma(n + 1)
    kernel = PartialTreeKernel(1.0, mu=1.0)
    assert kernel.log(wide, wide) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(RangeError, match=r"too large for a float.*log\(a, b\)"):
        kernel(wide, wide)
    with pytest.raises(RangeError, match="trees 2 and 2"):
        kernel.gram([Tree("A", ["b"]), wide])
    normalised = PartialTreeKernel(1.0, mu=1.0, normalize=True)
    other = Tree("A", ["b"] * (n - 1))
    matrix = normalised.gram([wide, other, Tree("A", ["c"])])
    assert matrix[0, 0] == matrix[1, 1] == 1
    # C(2n - 1, n) / √(C(2n, n) C(2n - 2, n - 1)) = √((2n - 1) / 2n)
    assert matrix[0, 1] == pytest.approx(math.sqrt((2 * n - 1) / (2 * n)), rel=1e-9)
    assert normalised(wide, other) == pytest.approx(matrix[0, 1], rel=1e-9)


@pytest.mark.large  # arithmetic in Python warns of nan
def test_trees_too_large_for_a_float_have_a_normalised_diagonal():
    wide = Tree("A", ["b", "c"] * 600)  # T is nan, where inf is multiplied by 0
    kernel = PartialTreeKernel(1.0, mu=1.0, normalize=True)
    assert kernel.diagonal([wide]) == kernel.gram([wide]) == kernel.pairs([wide], [0], [0]) == 1


@pytest.mark.parametrize("settings", [{}, {"gaps": "span"}, {"max_length": 3}, {"terminal_factor": 2}])
def test_logarithms_are_those_of_the_kernel(settings):
    forest = random_forest(2, 4)
    kernel = PartialTreeKernel(**settings)
    for i in range(4):
        assert kernel.log(forest[0], forest[i]) == pytest.approx(math.log(kernel(forest[0], forest[i])))


@pytest.mark.large
def test_deep_trees_are_compared():
    chain = Tree("A")
    for _ in range(3000):
        chain = Tree("A", [chain])
    # Δ(i, j) = μλ² (1 + μ + … + μ^min(i, j)) for nodes i and j from below.
    kernel = PartialTreeKernel(1.0, mu=0.5)
    depth = 3001
    expected = sum((2 * (depth - k) - 1) * (1 - 0.5 ** (k + 1)) for k in range(depth))
    assert kernel.gram([chain])[0, 0] == pytest.approx(expected, rel=1e-9)


def test_what_is_too_large_is_refused():
    chain = "(A " * 50 + ")" * 50
    with pytest.raises(LimitError, match="matching pairs of nodes, more than max_pairs=100"):
        PartialTreeKernel(max_pairs=100)(chain, chain)
    wide = Tree("A", ["b"] * 100_000)
    for compare in (PartialTreeKernel(), PartialTreeKernel().log):
        with pytest.raises(LimitError, match="10000000000 pairs of children, more than max_pairs"):
            compare(wide, wide)
    with pytest.raises(LimitError, match="pairs of children"):
        PartialTreeKernel().gram([wide, Tree("A", ["b"])])
    assert PartialTreeKernel()(wide, "(A b)") > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mu": 1.5}, r"mu \(μ\) must be a number from 0 to 1, not 1.5"),
        ({"gaps": "none"}, "gaps must be one of 'toolkit', 'span', not 'none'"),
        ({"terminal_factor": -1}, "terminal_factor must be a number of at least 0, not -1"),
        ({"terminal_factor": math.inf}, "terminal_factor must be a number of at least 0"),
        ({"max_length": 0}, "max_length must be at least 1, not 0"),
        ({"max_length": 2.5}, "max_length must be an integer, not 2.5"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        PartialTreeKernel(**settings)


@pytest.mark.parametrize("longest", [10**9, 10**30])
def test_a_maximum_beyond_all_children_takes_no_memory(longest):
    trees = ["(A b c d)", "(A b (c e) d)"]
    for limited, free in (
        (PartialTreeKernel(max_length=longest), PartialTreeKernel()),
        (
            SmoothedPartialTreeKernel({"b": [1]}, max_length=longest),
            SmoothedPartialTreeKernel({"b": [1]}),
        ),
    ):
        assert limited(*trees) == pytest.approx(free(*trees))
        assert limited.log(*trees) == pytest.approx(free.log(*trees))
        np.testing.assert_allclose(limited.gram(trees), free.gram(trees))
        np.testing.assert_allclose(limited.pairs(trees, [0], [1]), free.pairs(trees, [0], [1]))


def test_the_kernel_transformer_takes_a_partial_kernel():
    forest = random_forest(1, 8)
    transformer = KernelTransformer(kernel=PartialTreeKernel(0.3))
    expected = PartialTreeKernel(0.3).gram(forest)
    assert (transformer.fit_transform(forest) == expected).all()
    assert np.allclose(transformer.transform(forest[:2]), expected[:2], rtol=EXACT)


def subsequences_of_words(first, second, decay, longest):
    """Return the kernel of Lodhi et al. (2002), summed over lengths: λ for every place that is spanned."""
    total = 0.0
    for length in range(1, longest + 1):
        for i in itertools.combinations(range(len(first)), length):
            for j in itertools.combinations(range(len(second)), length):
                if [first[k] for k in i] == [second[k] for k in j]:
                    total += decay ** (i[-1] - i[0] + 1 + j[-1] - j[0] + 1)
    return total


@given(st.text("abc", min_size=1, max_size=6), st.text("abc", min_size=1, max_size=6), st.integers(1, 4))
def test_trees_of_one_level_have_the_kernel_of_gap_weighted_subsequences(first, second, longest):
    decay = 0.5
    kernel = PartialTreeKernel(decay, mu=1.0, gaps="span", terminal_factor=decay**-2, max_length=longest)
    equal = sum(a == b for a in first for b in second)
    expected = decay**2 + equal + subsequences_of_words(first, second, decay, longest)
    assert kernel(Tree("", list(first)), Tree("", list(second))) == pytest.approx(expected, rel=EXACT)
