"""Shares of nodes against their definition: the Shapley values over all coalitions of inner nodes."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from strategies import random_forest, trees
from treedot import FragmentVectorizer, SubsetTreeKernel, Tree, explain
from treedot.errors import LimitError, RangeError
from treedot.kernels.fragments.cost import fragment_cost
from treedot.models import DualLinearSVC
from treedot.models.explain import pair_shares
from treedot.models.explain.shares import node_shares
from treedot.readers import read_tree
from treedot.vectors.sparse.occurrences import fragment_at

INNER = 10
SMALL = trees(st.sampled_from("ab"), max_leaves=7)


def occurrences(tree: Tree) -> list[tuple[frozenset[int], Tree]]:
    """Return every occurrence of a fragment: its inner nodes in post-order, and the fragment."""
    found, rooted = [], []
    for number, node in enumerate(tree.postorder()):
        first = len(rooted) - len(node.children)
        choices = [
            [(frozenset(), Tree(child.label)), *below]
            for child, below in zip(node.children, rooted[first:], strict=True)
        ]
        here = [
            (
                frozenset([number]).union(*(nodes for nodes, _ in chosen)),
                Tree(node.label, [f for _, f in chosen]),
            )
            for chosen in itertools.product(*choices)
            if node.children
        ]
        found += here
        rooted[first:] = [here]
    return found


def shapley(tree: Tree, worth) -> np.ndarray:
    """Return the Shapley values of the inner nodes, by definition, of a game: a set of nodes to a number."""
    nodes = list(tree.postorder())
    inner = [k for k, node in enumerate(nodes) if node.children]
    values, n = np.zeros(len(nodes)), len(inner)
    worths = {
        frozenset(chosen): worth(frozenset(chosen))
        for size in range(n + 1)
        for chosen in itertools.combinations(inner, size)
    }
    for coalition, own in worths.items():
        for node in coalition:
            others = len(coalition) - 1
            weight = math.factorial(others) * math.factorial(n - others - 1) / math.factorial(n)
            values[node] += weight * (own - worths[coalition - {node}])
    return values


def inner_nodes(tree: Tree) -> int:
    return sum(not node.is_leaf for node in tree.postorder())


def assert_close(found: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-9) -> None:
    assert np.abs(found - wanted).max() <= tolerance * max(np.abs(wanted).sum(), 1e-300)


@given(SMALL, st.sampled_from(["sqrt", "log1p", "linear"]), st.sampled_from([32, 2**20, None]), st.booleans())
def test_shares_of_a_row_are_the_shapley_values_of_its_nodes(tree, damping, width, normalize):
    assume(0 < inner_nodes(tree) <= INNER)
    vectorizer = FragmentVectorizer(
        n_features=width, damping=damping, normalize=normalize, dtype="float64", idf=width is None
    ).fit([tree, Tree("a", ["b", "a"])])
    found = vectorizer.occurrences(tree)
    weights = np.random.default_rng(7).normal(size=vectorizer.transform([tree]).shape[1])
    contribution = weights[found.column] * found.value
    forest = read_tree(tree)

    # The definition looks fragments up one by one, and takes counts, length and weights of the whole tree.
    within = [(nodes, f) for nodes, f in occurrences(tree) if fragment_cost(f) <= 4]
    by_fragment = {
        fragment_at(forest, found.nodes_of(k)[0]): contribution[k] for k in range(found.counts.size)
    }
    counts = {f: sum(other == f for _, other in within) for _, f in within}
    assert by_fragment.keys() == counts.keys()

    def worth(coalition):
        return math.fsum(by_fragment[f] / counts[f] for nodes, f in within if nodes <= coalition)

    assert_close(node_shares(found, contribution, forest.n_nodes), shapley(tree, worth))


@given(SMALL)
def test_occurrences_are_those_of_the_definition(tree):
    assume(inner_nodes(tree) <= INNER)
    found = FragmentVectorizer().occurrences(tree)
    nodes = [frozenset(part) for k in range(found.counts.size) for part in found.nodes_of(k)]
    wanted = [part for part, f in occurrences(tree) if fragment_cost(f) <= 4]
    assert sorted(map(sorted, nodes)) == sorted(map(sorted, wanted))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_features": 32},
        {"n_features": None},
        {"n_features": None, "idf": True},
        {"idf": True},
        {"normalize": False, "damping": "log1p"},
        {"budget": None, "n_features": 2**10},
        {"rest": "dense", "rest_size": 256},
        {"rest": "dense", "rest_size": 256, "n_features": None, "normalize": False},
    ],
    ids=str,
)
def test_values_of_occurrences_add_up_to_the_row(settings):
    forest = random_forest(2, 12, 14)
    vectorizer = FragmentVectorizer(dtype="float64", **settings).fit(forest[:6])
    for k in range(len(forest)):
        found, row = vectorizer.occurrences(forest[k]), vectorizer.transform(forest[k : k + 1]).toarray()[0]
        known = found.column >= 0
        width = len(vectorizer.dictionary_) if vectorizer.n_features is None else vectorizer.n_features
        values = np.bincount(found.column[known], found.value[known], width)
        np.testing.assert_allclose(values, row[:width], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "linear", [LinearSVC(), DualLinearSVC(), LogisticRegression(), Ridge()], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("rest", [None, "dense"])
def test_parts_sum_to_the_decision_value(linear, rest):
    forest = random_forest(5, 40, 25)
    classes = [k % 3 for k in range(len(forest))] if not isinstance(linear, Ridge) else np.arange(40.0)
    model = make_pipeline(FragmentVectorizer(n_features=2**12, rest=rest, rest_size=256), linear)
    model.fit(forest, classes)
    predict = model.predict if isinstance(linear, Ridge) else model.decision_function
    for k in range(0, len(forest), 5):
        score = np.atleast_2d(predict(forest[k : k + 1]))[0]
        for target in [None] if isinstance(linear, Ridge) else [None, 0, 1, 2]:
            found = explain(model, forest[k], target, find_flip=False)
            parts = [*found.node_values, *found.others.values(), found.bias]
            wanted = score[found.target or 0]
            assert abs(math.fsum(parts) - wanted) <= 1e-6 * np.abs(parts).sum()
            assert abs(found.score - wanted) <= 1e-6 * np.abs(parts).sum()
            assert bool(found.others) == (rest is not None)


def kernel_game(tree: Tree, other: Tree, decay: float):
    """Return the kernel of two trees without the fragments of the first that reach beyond some nodes."""
    times = Counter(fragment for _, fragment in occurrences(other))
    weights = [(nodes, times[f] * decay ** (len(nodes) - 1)) for nodes, f in occurrences(tree) if times[f]]

    def worth(coalition):
        return math.fsum(weight for nodes, weight in weights if nodes <= coalition)

    return worth


@given(SMALL, SMALL, st.sampled_from([0.0, 0.3, 1.0]))
def test_shares_of_a_kernel_are_the_shapley_values_of_the_nodes_of_each_tree(a, b, decay):
    assume(inner_nodes(a) <= 7)
    assume(inner_nodes(b) <= 7)
    ours, theirs = pair_shares.kernel_shares(read_tree(a), read_tree(b), decay)
    assert_close(ours, shapley(a, kernel_game(a, b, decay)))
    assert_close(theirs, shapley(b, kernel_game(b, a, decay)))


def test_shares_of_a_kernel_are_exact_for_ten_inner_nodes():
    a = Tree.parse("(S (A (B b) (C c)) (A (B b) (C (D d))) (E (B b) e))")
    assert inner_nodes(a) == INNER
    ours, _ = pair_shares.kernel_shares(read_tree(a), read_tree(a), 0.7)
    assert_close(ours, shapley(a, kernel_game(a, a, 0.7)))


@pytest.mark.parametrize("decay", [0.2, 1.0])
def test_few_points_give_the_shares_of_the_exact_rule(decay, monkeypatch):
    forest = random_forest(3, 6, 90)
    found = [
        pair_shares.kernel_shares(forest[[i]], forest[[j]], decay) for i in range(6) for j in range(i + 1)
    ]
    assert min(np.count_nonzero(forest.arity[a:b]) for a, b in itertools.pairwise(forest.offsets)) > 24
    monkeypatch.setattr(pair_shares, "EXACT", 10**6)
    exact = [
        pair_shares.kernel_shares(forest[[i]], forest[[j]], decay) for i in range(6) for j in range(i + 1)
    ]
    for (a, b), (c, d) in zip(found, exact, strict=True):
        assert_close(a, c, 1e-7)
        assert_close(b, d, 1e-7)


def test_shares_of_a_kernel_sum_to_it():
    forest = random_forest(4, 8, 200)
    for k in range(0, 8, 2):
        ours, theirs = pair_shares.kernel_shares(forest[[k]], forest[[k + 1]], 0.4)
        kernel = SubsetTreeKernel(0.4)(forest[k], forest[k + 1])
        np.testing.assert_allclose([ours.sum(), theirs.sum()], kernel, rtol=1e-6)


def test_trees_too_large_for_shares_of_a_kernel_are_refused(monkeypatch):
    wide = read_tree(Tree("S", [Tree("A", ["a"])] * 1100))
    with pytest.raises(RangeError, match="smaller decay"):
        pair_shares.kernel_shares(wide, wide, 1.0)
    monkeypatch.setattr(pair_shares, "MAX_PAIRS", 1000)
    with pytest.raises(LimitError, match="explain smaller trees"):
        pair_shares.kernel_shares(wide, wide, 0.1)
