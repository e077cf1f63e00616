import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import random_forest, trees
from treedot import KernelTransformer, PartialTreeKernel, Tree
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.kernels import SmoothedPartialTreeKernel, WordVectors, reference

EXACT = 1e-12
WORDS = WordVectors({"A::n": [1, 0], "B::n": [3, 4], "C": [-1, 0.2], "a::v": [1, 1], "b::v": [1, 0.9]})
LABELS = st.sampled_from(["A::n", "B::n", "C::n", "C::v", "a::v", "b::v", "x::n", "S"])
FORESTS = st.lists(trees(LABELS, max_leaves=7), min_size=1, max_size=3)
SETTINGS = st.fixed_dictionaries(
    {
        "decay": st.sampled_from([0.0, 0.4, 1.0]),
        "mu": st.sampled_from([0.0, 0.3, 1.0]),
        "gaps": st.sampled_from(["toolkit", "span"]),
        "terminal_factor": st.sampled_from([0.0, 1.0, 5.0]),
        "max_length": st.sampled_from([None, 1, 2]),
    }
)
THRESHOLDS = st.sampled_from([0.0, 0.01, 0.7, 1.0])


def matrix(first, second, similarity, threshold, settings):
    def sigma(a, b):
        value = 1.0 if a == b else similarity(a, b)
        return value if a == b or value >= threshold else 0.0

    return np.array(
        [[reference.partial_tree_kernel(a, b, similarity=sigma, **settings) for b in second] for a in first]
    )


def check(first, second, similarity, threshold, settings):
    kernel = SmoothedPartialTreeKernel(similarity, threshold=threshold, **settings)
    expected = matrix(first, second, similarity, threshold, settings)
    own = matrix(first, first, similarity, threshold, settings)
    assert np.allclose(kernel.gram(first, second), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first), own, rtol=EXACT, atol=0)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=EXACT)
    rows, columns = np.indices(own.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(first, rows, columns), own.ravel(), rtol=EXACT, atol=0)
    assert np.allclose(kernel.diagonal(first), np.diagonal(own), rtol=EXACT, atol=0)
    log = math.log(expected[0, 0]) if expected[0, 0] > 0 else -math.inf
    assert kernel.log(first[0], second[0]) == pytest.approx(log, abs=EXACT)


@given(FORESTS, FORESTS, THRESHOLDS, SETTINGS)
def test_the_smoothed_kernel_of_word_vectors_is_its_reference(first, second, threshold, settings):
    check(first, second, WORDS, threshold, settings)


def by_length(a, b):
    """Return a similarity that is 0, or that connects labels over others."""
    return max(0.0, 1 - abs(ord(a[0]) - ord(b[0])) / 2)


@given(st.lists(trees(max_leaves=6), min_size=1, max_size=3), THRESHOLDS, SETTINGS)
def test_the_smoothed_kernel_of_any_similarity_is_its_reference(chosen, threshold, settings):
    check(chosen, chosen[::-1], by_length, threshold, settings)


def test_small_kernels_are_those_found_by_hand():
    # Leaves: σμλ². NN over them: μ(λ² + σμλ²).
    for decay, mu in ((0.4, 0.4), (1.0, 1.0)):
        node = mu * decay**2
        kernel = SmoothedPartialTreeKernel({"dog": [3, 4], "cat": [4, 3]}, decay=decay, mu=mu)
        assert kernel("(dog::n)", "(cat::n)") == pytest.approx(0.96 * node)
        assert kernel("(dog::n)", "(dog::n)") == node
        assert kernel("(dog::n)", "(cat::v)") == 0
        assert kernel("(NN dog::n)", "(NN cat::n)") == pytest.approx(
            0.96 * node + mu * (decay**2 + 0.96 * node)
        )
        # Words with children, as in lexicalised dependency trees.
        assert kernel("(dog::n x)", "(cat::n x)") == pytest.approx(node + 0.96 * mu * (decay**2 + node))


@given(st.lists(trees(), min_size=2, max_size=4), SETTINGS)
def test_without_similar_labels_it_is_the_partial_kernel(chosen, settings):
    plain = PartialTreeKernel(**settings).gram(chosen)
    assert (SmoothedPartialTreeKernel(lambda a, b: 0.0, **settings).gram(chosen) == plain).all()
    assert (SmoothedPartialTreeKernel(WORDS, **settings).gram(chosen) == plain).all()


def test_random_forests_agree_with_the_reference():
    forest = random_forest(6, 8, nodes=40)

    def similar(a, b):
        return 0.25 * (a[0] == b[0]) * (1 + (a[-1] == b[-1]))

    settings = {"decay": 0.4, "mu": 0.4}
    kernel = SmoothedPartialTreeKernel(similar, **settings)
    expected = matrix(forest, forest, similar, 0.01, settings)
    assert np.allclose(kernel.gram(forest), expected, rtol=EXACT, atol=0)
    tiled = SmoothedPartialTreeKernel(similar, **settings, max_pairs=8000)
    assert np.allclose(tiled.gram(forest), expected, rtol=EXACT, atol=0)
    assert np.allclose(tiled.gram(forest[:3], forest), expected[:3], rtol=EXACT, atol=0)
    rows, columns = np.indices(expected.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(forest, rows, columns), expected.ravel(), rtol=EXACT, atol=0)


def test_many_children_that_are_similar_agree_with_the_reference():
    first = [Tree("A", [f"{'ab'[k % 2]}{k % 3}" for k in range(n)]) for n in (5, 6, 7)]
    settings = {"decay": 0.8, "mu": 0.9}
    check(first, first, lambda a, b: 0.7 * (a[0] == b[0]), 0.01, settings)


def test_where_all_kernels_are_0_so_are_normalised_ones():
    for settings in ({"decay": 0.0}, {"mu": 0.0}):
        kernel = SmoothedPartialTreeKernel(WORDS, **settings, normalize=True)
        assert kernel.gram(["(S A::n)", "(S B::n)"]).tolist() == [[0, 0], [0, 0]]
        assert kernel("(S A::n)", "(S A::n)") == 0


def test_normalised_kernels_of_similar_words_are_cosines():
    kernel = SmoothedPartialTreeKernel({"dog": [3, 4], "cat": [4, 3]}, normalize=True)
    assert kernel.gram(["(dog::n)", "(cat::n)", "(x)"]) == pytest.approx(
        np.array([[1, 0.96, 0], [0.96, 1, 0], [0, 0, 1]])
    )


@pytest.mark.large
def test_wide_trees_have_logarithms():
    # All pairs of children have σ = ½: at the root Σ C(n, k)² 2^-k for λ = μ = 1.
    n = 1500
    one, other = Tree("A", ["b"] * n), Tree("A", ["c"] * n)
    kernel = SmoothedPartialTreeKernel(lambda a, b: 0.5, decay=1.0, mu=1.0)
    logs = [
        2 * (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) - k * math.log(2)
        for k in range(n + 1)
    ]
    expected = np.logaddexp.reduce(logs)
    assert kernel.log(one, other) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(RangeError, match="too large for a float"):
        kernel(one, other)


def test_what_is_too_large_is_refused():
    with pytest.raises(LimitError, match="10000 pairs of labels to compare, more than max_pairs=9999"):
        SmoothedPartialTreeKernel(by_length, max_pairs=9999)(Tree("S", [f"a{k}" for k in range(99)]), "(S)")
    with pytest.raises(LimitError, match="pairs of children"):
        SmoothedPartialTreeKernel(WORDS).gram([Tree("A", ["b"] * 100_000)])


@pytest.mark.parametrize(
    ("similarity", "settings", "message"),
    [
        (3, {}, r"similarity must be word vectors .* or a function of two labels, not 3"),
        (None, {}, "similarity must be word vectors"),
        ({}, {}, "word vectors must be finite numbers"),
        (WORDS, {"threshold": 2}, "threshold must be a number from 0 to 1, not 2"),
        (WORDS, {"mu": 2}, "mu"),
    ],
)
def test_impossible_settings_are_refused(similarity, settings, message):
    with pytest.raises(ParameterError, match=message):
        SmoothedPartialTreeKernel(similarity, **settings)


@pytest.mark.parametrize("value", ["much", None, math.nan, math.inf])
def test_a_similarity_must_be_a_number(value):
    kernel = SmoothedPartialTreeKernel(lambda a, b: value)
    with pytest.raises(ParameterError, match=r"must return a number, but returned .* for 'a' and 'b'"):
        kernel("(a)", "(b)")


def test_negative_similarities_count_as_none():
    assert SmoothedPartialTreeKernel(lambda a, b: -1.0)("(a)", "(b)") == 0


def test_the_kernel_transformer_takes_a_smoothed_kernel():
    chosen = ["(S A::n)", "(S B::n)", "(S b::v)"]
    kernel = SmoothedPartialTreeKernel(WORDS)
    transformer = KernelTransformer(kernel=kernel)
    assert (transformer.fit_transform(chosen) == kernel.gram(chosen)).all()
    assert transformer.kernel_.similarity is WORDS
    assert (
        repr(kernel) == "SmoothedPartialTreeKernel(similarity=WordVectors(5 words, 2 dimensions), decay=0.4)"
    )
