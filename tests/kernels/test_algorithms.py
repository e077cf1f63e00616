import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.rivals.label_selection import LabelSelectionKernel
from paper.rivals.reference import label_selection_kernel

from strategies import SimilarTags, random_forest, trees
from treedot import Forest, PartialTreeKernel, SubsetTreeKernel, SubtreeKernel, Tree
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.kernels import BoundedTreeKernel, RouteKernel, SmoothedPartialTreeKernel, reference
from treedot.kernels.normalisation import Norms, finish_triangle, norms_of
from treedot.kernels.subset import pairwise

EXACT = 1e-12
DECAY = st.sampled_from([0.0, 0.3, 1.0])
FORESTS = st.lists(trees(max_leaves=7), min_size=1, max_size=4)
ALGORITHMS = pytest.mark.parametrize("algorithm", ["auto", "TK", "FTK", "shared"])


def matrix(first, second, kernel):
    return np.array([[kernel(a, b) for b in second] for a in first])


def every_pair(forest):
    return (side.ravel() for side in np.indices((len(forest), len(forest))))


@ALGORITHMS
@given(first=FORESTS, second=FORESTS, decay=DECAY)
def test_all_algorithms_give_the_reference(algorithm, first, second, decay):
    kernel = SubsetTreeKernel(decay, algorithm=algorithm)
    expected = matrix(first, second, lambda a, b: reference.subset_tree_kernel(a, b, decay))
    own = matrix(first, first, lambda a, b: reference.subset_tree_kernel(a, b, decay))
    assert np.allclose(kernel.gram(first, second), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first), own, rtol=EXACT, atol=0)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=EXACT)
    assert np.allclose(kernel.pairs(first, *every_pair(first)), own.ravel(), rtol=EXACT, atol=0)


@ALGORITHMS
@pytest.mark.parametrize(
    "settings",
    [
        {"normalize": True},
        {"leaves": True},
        {"convention": "collins-duffy"},
        {"leaves": True, "normalize": True},
    ],
)
def test_pairs_are_entries_of_the_gram_matrix(algorithm, settings):
    forest = random_forest(2, 12)
    kernel = SubsetTreeKernel(algorithm=algorithm, **settings)
    rows, columns = [0, 3, -1, 3, 5], [1, 3, 2, 0, 5]
    expected = SubsetTreeKernel(**settings).gram(forest)[rows, columns]
    assert np.allclose(kernel.pairs(forest, rows, columns), expected, rtol=EXACT, atol=0)
    assert kernel.pairs(forest, [], []).shape == (0,)


def test_every_kernel_compares_pairs():
    forest = random_forest(3, 6)
    rows, columns = np.array([0, 1, 5]), np.array([2, 1, 4])
    for kernel in (
        SubtreeKernel(),
        SubtreeKernel(normalize=True),
        SubsetTreeKernel(0.4, weighting="distinct"),
        LabelSelectionKernel(["N0", "N3", "T1"], normalize=True),
    ):
        small = forest if not isinstance(kernel, SubsetTreeKernel) else random_forest(3, 6, nodes=6)
        assert np.allclose(kernel.pairs(small, rows, columns), kernel.gram(small)[rows, columns], rtol=EXACT)


def test_pairs_of_trees_that_match_too_often_are_counted_and_not_compared():
    forest = Forest.from_trees([Tree.parse(text) for text in ("(A (B b))", "(A (B b) (B b))", "(B b)")])
    rows, columns = np.array([0, 1, 1, 2, 0]), np.array([0, 1, 2, 0, 1])
    for budget, coefficients in ((-1, 1), (0, 1), (2, 3)):
        found = pairwise.fast_pairs(
            pairwise.trees_by_production(forest), rows, columns, 0.5, 2 * coefficients, budget
        )
        assert found.entries.tolist() == [pairs * coefficients for pairs in (2, 5, 2, 1, 2)]
        assert np.isnan(found.values).tolist() == [False, True, False, False, False]


@pytest.mark.slow
@pytest.mark.large
def test_pairs_of_huge_trees_are_refused_or_normalised():
    def comb(depth, last):
        tree = Tree("B", [last])
        for _ in range(depth):
            tree = Tree("B", [tree, Tree("B", ["x"])])
        return tree

    forest = Forest.from_trees([comb(1200, "x"), comb(1190, "y"), Tree.parse("(B x)"), Tree.parse("(x)")])
    for algorithm in ("TK", "FTK"):
        kernel = SubsetTreeKernel(1.0, algorithm=algorithm)
        assert kernel.pairs(forest, [2, 3], [0, 0]).tolist() == [1201, 0]
        with pytest.raises(RangeError, match=r"trees 1 and 2 .*log\(a, b\)"):
            kernel.pairs(forest, [2, 0], [0, 1])
        normalised = SubsetTreeKernel(1.0, normalize=True, algorithm=algorithm)
        expected = [math.exp(normalised.log(forest[0], forest[1])), 1, 0, 0]
        found = normalised.pairs(forest, [0, 1, 3, 3], [1, 1, 0, 3])
        assert found == pytest.approx(expected, rel=1e-12)
        assert 0 < found[0] < 1


def test_pairs_that_do_not_fit_are_refused():
    tree = "(A" + " (B x)" * 200 + ")"  # 40,001 matching pairs of nodes, 2 distinct subtrees
    expected = reference.subset_tree_kernel(Tree.parse(tree), Tree.parse(tree), 0.1)
    for algorithm in ("auto", "shared"):
        small = SubsetTreeKernel(0.1, algorithm=algorithm, max_pairs=1000)
        assert small.pairs([tree, tree], [0, 0], [1, 0]) == pytest.approx([expected] * 2, rel=EXACT)
    with pytest.raises(LimitError, match="40001 matching pairs of nodes, more than max_pairs=1000"):
        SubsetTreeKernel(0.1, algorithm="FTK", max_pairs=1000).pairs([tree, tree], [0], [1])
    with pytest.raises(LimitError, match="160801 pairs of nodes, more than max_pairs=1000"):
        SubsetTreeKernel(0.1, algorithm="TK", max_pairs=1000)(tree, tree)
    enough = SubsetTreeKernel(0.1, algorithm="FTK", max_pairs=40001)
    assert enough.pairs([tree, tree], [0], [1]) == pytest.approx([expected], rel=EXACT)


def test_impossible_pairs_are_refused():
    kernel = SubsetTreeKernel()
    with pytest.raises(ParameterError, match="rows and columns must have the same length, not 2 and 1"):
        kernel.pairs(["(a b)"], [0, 0], [0])
    with pytest.raises(ParameterError, match="columns holds a tree number outside the 1 trees"):
        kernel.pairs(["(a b)"], [0], [1])
    with pytest.raises(ParameterError, match="rows must be a list of tree numbers"):
        kernel.pairs(["(a b)"], [0.5], [0])
    with pytest.raises(ParameterError, match="algorithm must be one of"):
        SubsetTreeKernel(algorithm="fast")


def literal_work(first, second, algorithm):
    """Count Δ entries with sets and loops; ``second`` is None for a matrix of trees with themselves."""

    def inner(tree):
        return [node for node in tree.postorder() if not node.is_leaf]

    if algorithm == "shared":
        rows = {node for tree in first for node in inner(tree)}
        columns = rows if second is None else {node for tree in second for node in inner(tree)}
        matching = [
            (a, b) for a in rows for b in columns if reference.production(a) == reference.production(b)
        ]
        return len({frozenset(pair) for pair in matching}) if second is None else len(matching)
    if second is None:
        pairs = [(a, b) for i, a in enumerate(first) for b in first[: i + 1]]
    else:
        pairs = [(a, b) for a in first for b in second]
    if algorithm == "TK":
        return sum(len(list(a.postorder())) * len(list(b.postorder())) for a, b in pairs)
    return sum(
        reference.production(x) == reference.production(y)
        for a, b in pairs
        for x in inner(a)
        for y in inner(b)
    )


@pytest.mark.parametrize("algorithm", ["TK", "FTK", "shared"])
@given(first=FORESTS, second=FORESTS)
def test_work_is_counted_literally(algorithm, first, second):
    kernel = SubsetTreeKernel(algorithm=algorithm)
    assert kernel.work(first) == literal_work(first, None, algorithm)
    assert kernel.work(first, second) == literal_work(first, second, algorithm)


def test_work_follows_what_is_computed():
    forest = random_forest(0, 30)
    shared = SubsetTreeKernel(algorithm="shared")
    assert SubsetTreeKernel().work(forest) == shared.work(forest)
    assert SubsetTreeKernel().work(forest[:1]) == SubsetTreeKernel(algorithm="FTK").work(forest[:1])
    assert SubsetTreeKernel(max_pairs=400).work(forest) > shared.work(forest)  # tiles share less
    many = ["(A" + " (B x)" * 200 + ")"]
    assert SubsetTreeKernel(max_pairs=1000).work(many) == 2
    with pytest.raises(ParameterError, match="does not compute Δ"):
        SubsetTreeKernel(weighting="distinct").work(forest)


LABELS = st.sets(st.sampled_from("ABCab"))


@given(FORESTS, FORESTS, DECAY, LABELS)
def test_the_approximate_kernel_is_its_reference(first, second, decay, labels):
    kernel = LabelSelectionKernel(labels, decay=decay)
    expected = matrix(first, second, lambda a, b: label_selection_kernel(a, b, decay, labels))
    own = matrix(first, first, lambda a, b: label_selection_kernel(a, b, decay, labels))
    assert np.allclose(kernel.gram(first, second), expected, rtol=EXACT, atol=0)
    assert np.allclose(kernel.gram(first), own, rtol=EXACT, atol=0)
    assert np.allclose(kernel.pairs(first, *every_pair(first)), own.ravel(), rtol=EXACT, atol=0)
    assert np.allclose(kernel.diagonal(first), np.diagonal(own), rtol=EXACT, atol=0)
    if expected[0, 0] > 0:
        assert kernel.log(first[0], second[0]) == pytest.approx(math.log(expected[0, 0]), abs=EXACT)


@given(FORESTS, DECAY)
def test_with_all_labels_the_approximate_kernel_is_exact(first, decay):
    kernel, exact = LabelSelectionKernel(list("ABCab"), decay=decay), SubsetTreeKernel(decay)
    assert (kernel.gram(first) == SubsetTreeKernel(decay, algorithm="shared").gram(first)).all()
    assert kernel.work(first) == SubsetTreeKernel(algorithm="shared").work(first)
    assert kernel(first[0], first[-1]) == pytest.approx(exact(first[0], first[-1]), rel=EXACT)


def test_fewer_labels_mean_less_work():
    forest = random_forest(4, 40)
    labels = sorted({forest.labels[k] for k in forest.label[forest.arity > 0]})
    work = [LabelSelectionKernel(labels[:n]).work(forest) for n in range(len(labels) + 1)]
    assert work[0] == 0
    assert work == sorted(work)
    assert work[-1] == SubsetTreeKernel(algorithm="shared").work(forest)
    # What an unselected node holds does not distinguish subtrees.
    assert LabelSelectionKernel(["A"]).work(["(A (B x))", "(A (B y))"]) == 1
    assert SubsetTreeKernel(algorithm="shared").work(["(A (B x))", "(A (B y))"]) == 3 + 2


def test_approximate_tiles_do_not_matter():
    forest = random_forest(0, 30)
    labels = ["N0", "N1", "N2", "T0", "T5"]
    whole = LabelSelectionKernel(labels).gram(forest)
    tiled = LabelSelectionKernel(labels, max_pairs=100)
    assert tiled.work(forest) > LabelSelectionKernel(labels).work(forest)
    assert np.allclose(tiled.gram(forest), whole, rtol=EXACT)
    assert np.allclose(tiled.gram(forest[:7], forest), whole[:7], rtol=EXACT)
    with pytest.raises(LimitError, match="matching pairs"):
        LabelSelectionKernel(["a"], max_pairs=3)("(a (a (a b)))", "(a (a (a b)))")


@pytest.mark.parametrize(
    "labels", ["NP", ["NP", 3], 0.4, None, iter(["NP"])], ids=["text", "mixed", "number", "none", "iterator"]
)
def test_labels_are_a_collection_of_strings(labels):
    with pytest.raises(ParameterError, match="collection of strings"):
        LabelSelectionKernel(labels)


EVERY_KERNEL = [
    *(SubsetTreeKernel(algorithm=algorithm) for algorithm in ("auto", "TK", "FTK", "shared")),
    SubsetTreeKernel(leaves=True, convention="collins-duffy"),
    SubsetTreeKernel(weighting="distinct"),
    SubsetTreeKernel(max_pairs=300),
    SubtreeKernel(leaves=True),
    BoundedTreeKernel(budget=3),
    LabelSelectionKernel(["A", "B", "N0", "N1", "N2"]),
    PartialTreeKernel(),
    PartialTreeKernel(gaps="span", max_pairs=300),
    SmoothedPartialTreeKernel(SimilarTags()),
    RouteKernel(),
]


@pytest.mark.slow
@given(chosen=st.lists(trees(), min_size=1, max_size=8), decay=st.floats(0.01, 1.0))
def test_a_gram_matrix_is_its_transpose_to_the_last_bit(chosen, decay):
    forest = Forest.from_trees(chosen)
    for kernel, normalize in itertools.product(EVERY_KERNEL, (False, True)):
        matrix = kernel.set_params(decay=decay, normalize=normalize).gram(forest)
        assert (matrix == matrix.T).all(), kernel


@pytest.mark.parametrize("count", [1, 63, 64, 65, 300])
def test_mirroring_keeps_the_lower_triangle(count):
    matrix = np.random.default_rng(count).normal(size=(count, count))
    lower = np.tril(matrix)
    finish_triangle(matrix, None, pytest.fail)
    assert np.array_equal(matrix, lower + np.tril(lower, -1).T)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 300])
def test_a_triangle_is_divided_by_the_norms_of_rows_and_columns(count):
    matrix = np.random.default_rng(count).random((count, count))
    matrix[0, 0] = 0.0
    expected = np.tril(matrix)
    norms = norms_of(np.diagonal(matrix).copy())
    Norms(np.diagonal(matrix).copy(), pytest.fail).divide(
        expected, np.arange(count), np.arange(count)[:, None]
    )
    finish_triangle(matrix, norms, pytest.fail)
    assert np.array_equal(matrix, np.tril(expected) + np.tril(expected, -1).T)


def test_rows_that_are_not_finite_are_finished_apart():
    matrix = np.ones((100, 100))
    matrix[70, 3] = np.inf
    finished = []

    def finish(kernels, a, b):
        finished.append((a.tolist(), b.ravel().tolist()))
        kernels[kernels == np.inf] = 5.0

    finish_triangle(matrix, np.full(100, 2.0), finish)
    assert finished == [(list(range(100)), list(range(64, 100)))]
    assert matrix[70, 3] == matrix[3, 70] == 5.0
    assert matrix[1, 0] == matrix[0, 1] == 0.25


def test_a_gram_matrix_of_overflowing_kernels_is_symmetric_too():
    wide = [Tree("S", [Tree("A", [Tree("B", ["b"])])] * n) for n in (900, 1100, 1300)]
    matrix = SubsetTreeKernel(1.0, normalize=True).gram([*wide, *random_forest(0, 3)])
    assert (matrix == matrix.T).all()
