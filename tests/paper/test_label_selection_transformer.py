import itertools
import math
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from paper.rivals.label_selection import LabelSelectionKernel, label_alignment
from paper.rivals.label_selection_transformer import LabelSelectionTransformer, _relaxed, _rounded
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from strategies import corpus, random_forest, trees
from treedot import Forest, SubsetTreeKernel, Tree, read_trees
from treedot.errors import ParameterError, RangeError
from treedot.kernels import reference


def label_parts(a, b, decay):
    """K_s by label s: the exact kernel's Δ over pairs of nodes labelled s, by its definition."""

    def delta(x, y):
        if not x.children or reference.production(x) != reference.production(y):
            return 0.0
        return math.prod(1 + decay * delta(c, d) for c, d in zip(x.children, y.children, strict=True))

    parts = dict.fromkeys((x.label for x in a.postorder()), 0.0)
    for x, y in itertools.product(a.postorder(), b.postorder()):
        if x.label == y.label:
            parts[x.label] += delta(x, y)
    return parts


@pytest.mark.slow
@given(
    st.lists(trees(max_leaves=6), min_size=1, max_size=4), st.integers(0, 9), st.sampled_from([0.0, 0.4, 1.0])
)
def test_label_sums_need_no_gram_matrices(some, seed, decay):
    forest = Forest.from_trees(some)
    weights = np.random.default_rng(seed).normal(size=(len(some), 2))
    defined = [[label_parts(a, b, decay) for b in some] for a in some]
    for max_pairs in (2**20, 60):
        found = label_alignment(forest, weights, decay, max_pairs=max_pairs)
        for k, label in enumerate(forest.labels):
            values = [[defined[i][j].get(label, 0.0) for j in range(len(some))] for i in range(len(some))]
            agreeing = weights @ weights.T * values
            own = np.trace(agreeing)
            assert found[k] == pytest.approx(agreeing.sum() - own, rel=1e-9, abs=1e-11 * max(own, 1))


@given(
    st.lists(st.tuples(st.integers(-5, 20), st.integers(1, 9)), min_size=1, max_size=8),
    st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.8, 1.0]),
)
def test_the_linear_program_bounds_every_selection_and_rounding_loses_less_than_one_label(labels, share):
    value = np.array([v for v, _ in labels], float)
    assume((value >= 0).any())
    cost = np.array([c for _, c in labels], float) ** 2
    cost /= cost.sum()
    best = max(
        value[list(picks)].sum()
        for n in range(value.size + 1)
        for picks in itertools.combinations(range(value.size), n)
        if cost[list(picks)].sum() <= share + 1e-12
    )
    weight = _relaxed(value, cost, share)
    assert cost @ weight <= share + 1e-6
    assert value @ weight >= best - 1e-5
    if not ((value >= 0) & (cost <= share)).any():
        with pytest.raises(ParameterError, match="no room for any label"):
            _rounded(weight, value, cost, share)
        return
    chosen = _rounded(weight, value, cost, share)
    assert cost[chosen].sum() <= share + 1e-12
    assert best - value.max() <= value[chosen].sum() <= best + 1e-9
    assert (value[chosen] >= 0).all()
    if share == 1.0:
        assert (chosen == (value >= 0)).all()


def labelled():
    """Trees whose class shows in the words under one frequent label among much else."""
    classes = np.array(["yes", "no", "maybe"] * 20)
    rest = random_forest(5, 60, nodes=12)
    made = [Tree("S", [Tree("X", [kind]), tree]) for kind, tree in zip(classes, rest, strict=True)]
    return Forest.from_trees(made), classes


@cache
def defined_parts():
    """Return 50 trees with their classes, of different sizes, and the values K_s of all their pairs."""
    forest, classes = labelled()
    forest = forest[:50]
    parts = defaultdict(lambda: np.zeros((50, 50)))
    for (i, a), (j, b) in itertools.combinations_with_replacement(enumerate(forest), 2):
        for label, value in label_parts(a, b, 0.4).items():
            parts[label][i, j] = parts[label][j, i] = value
    return forest, classes[:50], parts


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_what_is_learned_is_what_is_defined(normalize, center):
    forest, classes, parts = defined_parts()
    model = LabelSelectionTransformer(comparisons=0.3, normalize=normalize, center=center).fit(
        forest, classes
    )
    inner = [[n.label for n in tree.postorder() if not n.is_leaf] for tree in forest]
    names = sorted({label for tree in inner for label in tree})
    compared = {s: sum(a.count(s) * b.count(s) for a in inner for b in inner) for s in names}
    chosen = sum(compared[s] for s in model.labels_)
    assert model.speedup_ == pytest.approx(sum(compared.values()) / chosen, rel=1e-12)
    assert chosen <= 0.3 * sum(compared.values())
    assert set(model.weights_) == set(names)
    assert all(0 <= weight <= 1 for weight in model.weights_.values())

    codes = np.array([[1 if c == one else -1 for one in ("yes", "no", "maybe")] for c in classes])
    if center:
        codes = codes - codes.mean(axis=0)
    if normalize:
        codes = codes / np.sqrt(SubsetTreeKernel().diagonal(forest))[:, None]
    agreement = codes @ codes.T
    np.fill_diagonal(agreement, 0)
    value = np.array([(agreement * parts[s]).sum() for s in names])
    cost = np.array([compared[s] for s in names]) / sum(compared.values())
    found = np.array([model.weights_[s] for s in names])
    assert value @ found == pytest.approx(value @ _relaxed(value, cost, 0.3), rel=1e-6)
    assert "X" in model.labels_


def test_the_matrix_is_that_of_the_kernel_over_selected_labels():
    forest, classes = labelled()
    model = LabelSelectionTransformer(comparisons=0.5, decay=0.3, normalize=True)
    matrix = model.fit_transform(forest, classes)
    kernel = LabelSelectionKernel(model.labels_, decay=0.3, normalize=True)
    assert (matrix == kernel.gram(forest)).all()
    assert np.allclose(model.transform(forest[:3]), matrix[:3])
    assert kernel.work(forest) < SubsetTreeKernel(algorithm="shared").work(forest)
    assert model.get_feature_names_out()[0] == "labelselectiontransformer0"
    everything = LabelSelectionTransformer(comparisons=1.0, decay=0.3, normalize=False)
    assert (everything.fit_transform(forest) == SubsetTreeKernel(0.3).gram(forest)).all()
    assert everything.speedup_ == pytest.approx(1)


def test_it_learns_in_pipelines():
    forest, classes = labelled()
    model = make_pipeline(
        LabelSelectionTransformer(comparisons=0.3, normalize=True), SVC(kernel="precomputed", C=10)
    )
    assert cross_val_score(model, forest, classes, cv=3).mean() > 0.9
    search = GridSearchCV(model, {"labelselectiontransformer__comparisons": [0.3, 1.0]}, cv=2)
    search.fit([str(tree) for tree in forest], classes)


def test_a_sample_of_trees_is_enough_to_learn_from():
    forest, classes = labelled()
    sampled = LabelSelectionTransformer(comparisons=0.3, max_trees=30).fit(forest, classes)
    again = LabelSelectionTransformer(comparisons=0.3, max_trees=30).fit(forest, classes)
    assert sampled.labels_ == again.labels_
    assert "X" in sampled.labels_
    assert sampled.speedup_ >= 1 / 0.3 - 1e-9
    whole = LabelSelectionTransformer(comparisons=0.3, max_trees=60).fit(forest, classes)
    assert whole.weights_ == LabelSelectionTransformer(comparisons=0.3).fit(forest, classes).weights_


def test_classes_that_no_label_agrees_with_are_left_aside():
    opposed = ["(A x)", "(A x)"]
    with pytest.warns(UserWarning, match="no label agrees"):
        model = LabelSelectionTransformer().fit(["(A x)", "(A x)", "(B y)", "(B y)"], [0, 1, 0, 1])
    assert model.labels_ == ("A",)
    with pytest.warns(UserWarning, match="no label agrees"):
        assert LabelSelectionTransformer(comparisons=1).fit(opposed, [0, 1]).labels_ == ("A",)


def test_trees_without_inner_nodes_have_nothing_to_select():
    model = LabelSelectionTransformer().fit(["(a)", "(b)"])
    assert model.labels_ == ()
    assert model.speedup_ == 1
    assert (model.transform(["(a)"]) == 0).all()


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"comparisons": 0}, None, "comparisons must be a share"),
        ({"comparisons": 1.5}, None, "comparisons must be a share"),
        ({"comparisons": "all"}, None, "comparisons must be a share"),
        ({"comparisons": 1e-9}, None, "comparisons=1e-09 has no room for any label: the least that has is"),
        ({"max_trees": 1}, None, "max_trees must be at least 2"),
        ({"max_trees": "all"}, None, "max_trees must be an integer"),
        ({"max_pairs": 0}, None, "max_pairs must be at least 1"),
        ({"normalize": "yes"}, None, "normalize must be True or False"),
        ({"decay": 2}, None, "decay"),
        ({"center": "yes"}, None, "center must be True or False"),
        ({}, [1], "y must hold one class for each of the 60 trees"),
    ],
)
def test_impossible_settings_are_refused(settings, y, message):
    with pytest.raises(ParameterError, match=message):
        LabelSelectionTransformer(**settings).fit(labelled()[0], y)


def test_kernels_beyond_floats_are_refused():
    tree = Tree("B", ["x"])
    for _ in range(1200):
        tree = Tree("B", [tree, Tree("B", ["x"])])
    for normalize in (False, True):
        with pytest.raises(RangeError, match=r"decay=1\.0: use a smaller decay"):
            LabelSelectionTransformer(decay=1.0, normalize=normalize).fit([tree, tree])


@pytest.mark.corpus
def test_questions_keep_the_kernel_within_the_share():
    forest = read_trees(corpus("qc_train.tsv.gz"))[:400]
    shares = []
    for share in (1.0, 0.5, 0.25, 0.1):
        model = LabelSelectionTransformer(comparisons=share, normalize=False)
        shares.append(model.fit_transform(forest).sum())
        assert model.speedup_ >= 1 / share - 1e-9
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(SubsetTreeKernel().gram(forest).sum())
