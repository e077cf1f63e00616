"""Explanations of models of exact kernels and of dense vectors, against the definitions of their values."""

import json
import math
from collections import Counter
from functools import cache

import numpy as np
import pytest

from models.explain.test_decision import CLASSES, FOREST, cut
from models.explain.test_shares import assert_close, inner_nodes, shapley
from models.explain.test_shares import occurrences as all_occurrences
from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    LinearModel,
    PartialTreeKernel,
    SubsetTreeKernel,
    SubtreeKernel,
    TreeClassifier,
    explain,
    explain_model,
)
from treedot.errors import LimitError, ParameterError
from treedot.kernels import BoundedTreeKernel, RouteKernel
from treedot.kernels.fragments.cost import fragment_cost
from treedot.models import DualLinearSVC
from treedot.models.explain import pair_shares, removal, tree_parts
from treedot.readers import read_tree

occurrences = cache(all_occurrences)
SMALL = [tree for tree in random_forest(21, 600, 9) if 0 < inner_nodes(tree) <= 6][:200]
SMALL_CLASSES = [("one", "two", "three")[len(str(tree)) % 3] for tree in SMALL]

WITH_SHAPLEY = [
    SubsetTreeKernel(normalize=True),
    SubsetTreeKernel(),
    SubsetTreeKernel(normalize=True, convention="collins-duffy", leaves=True),
    SubsetTreeKernel(convention="collins-duffy"),
    BoundedTreeKernel(normalize=True, budget=3),
    BoundedTreeKernel(budget=4),
]
BY_REMOVAL = [
    SubtreeKernel(normalize=True),
    PartialTreeKernel(normalize=True),
    RouteKernel(normalize=True),
    SubsetTreeKernel(normalize=True, weighting="distinct"),
]


def trained(decay=0.4, **settings):
    return TreeClassifier(**settings, decay=decay, C=1).fit(SMALL, SMALL_CLASSES)


def costs_at_most(kernel):
    return kernel.budget if isinstance(kernel, BoundedTreeKernel) else math.inf


def kernel_game(model, tree, row):
    """Return the score of a set of nodes: that of the fragment occurrences within it, lengths held fixed."""
    kernel, support = model.inputs_[0].kernel, list(model.inputs_[0].trees)
    raw = type(kernel)(**{**kernel.get_params(), "normalize": False})
    unit = kernel.decay if getattr(kernel, "convention", "paper") == "collins-duffy" else 1.0
    weights = Counter()
    for other, alpha in zip(support, model.weights_[:, row].astype(float).tolist(), strict=True):
        length = math.sqrt(raw(other, other) * raw(tree, tree)) if kernel.normalize else 1.0
        for nodes, fragment in occurrences(other):
            if length and fragment_cost(fragment) <= costs_at_most(kernel):
                weights[fragment] += unit * alpha * kernel.decay ** (len(nodes) - 1) / length
    own = [(nodes, weights[f]) for nodes, f in occurrences(tree) if f in weights]
    return lambda coalition: math.fsum(weight for nodes, weight in own if nodes <= coalition)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", WITH_SHAPLEY, ids=repr)
def test_values_of_kernel_models_are_the_shapley_values_of_200_trees(kernel):
    model = TreeClassifier(kernel=kernel, decay=0.4, C=1).fit(SMALL[:40], SMALL_CLASSES[:40])
    assert len(SMALL) == 200
    for number, tree in enumerate(SMALL):
        row = number % 3
        found = explain(model, tree, model.classes_[row], find_flip=False)
        assert found.values_are == "shapley"
        assert_close(found.node_values, shapley(tree, kernel_game(model, tree, row)), 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("composition", ["mixed", "product", "convolution"])
def test_values_of_dense_models_are_the_shapley_values_of_200_trees(normalize, composition):
    vectorizer = DistributedTreeVectorizer(
        n_components=256, normalize=normalize, composition=composition, decay=0.4, dtype="float64"
    )
    model = TreeClassifier(vectorizer=vectorizer, decay=0.4, C=1).fit(SMALL[:40], SMALL_CLASSES[:40])
    plain = DistributedTreeVectorizer(**{**vectorizer.get_params(), "normalize": False})
    for number, tree in enumerate(SMALL):
        row = number % 3
        found = explain(model, tree, model.classes_[row], find_flip=False)
        length = np.linalg.norm(plain.transform([tree])) if normalize else 1.0
        weights = model.weights_[:, row].astype(float)
        own = [
            (nodes, weights @ plain.transform_fragment(f) * math.sqrt(0.4) ** (len(nodes) - 1) / length)
            for nodes, f in occurrences(tree)
            if fragment_cost(f) <= 4
        ]

        def worth(coalition, own=own):
            return math.fsum(weight for nodes, weight in own if nodes <= coalition)

        assert_close(found.node_values, shapley(tree, worth), 1e-8)
        every = math.fsum(
            weights @ plain.transform_fragment(f) * math.sqrt(0.4) ** (len(nodes) - 1) / length
            for nodes, f in occurrences(tree)
            if fragment_cost(f) > 4
        )
        assert found.others == {"fragments beyond the budget": pytest.approx(every, abs=1e-8)}


@pytest.mark.parametrize("kernel", WITH_SHAPLEY + BY_REMOVAL, ids=repr)
def test_parts_sum_to_the_decision_value_and_survive_saving(kernel, tmp_path):
    is_slow = isinstance(kernel, SubsetTreeKernel) and kernel.weighting == "distinct"  # it lists fragments
    n_trees = 20 if is_slow else 60
    model = TreeClassifier(kernel=kernel, decay=0.4, C=1).fit(SMALL[:n_trees], SMALL_CLASSES[:n_trees])
    model.save(tmp_path / "model")
    stored = LinearModel.load(tmp_path / "model")
    for tree in SMALL[: 2 if is_slow else 6]:
        scores = model.decision_function([tree])[0]
        for row, target in enumerate(model.classes_.tolist()):
            found = explain(model, tree, target, find_flip=False)
            assert found.score == pytest.approx(scores[row], rel=1e-9)
            assert sum(value for _, value in found.parts) == pytest.approx(found.score, abs=1e-6)
            again = explain(stored, tree, target, find_flip=False)
            assert again.node_values.tolist() == found.node_values.tolist()


@pytest.mark.parametrize("kernel", BY_REMOVAL, ids=repr)
def test_values_by_removal_are_differences_of_scores_and_say_so(kernel):
    model = TreeClassifier(kernel=kernel, decay=0.4, C=1).fit(SMALL[:60], SMALL_CLASSES[:60])
    tree = SMALL[3]
    found = explain(model, tree, "two")
    row = model.classes_.tolist().index("two")
    before = model.decision_function([tree])[0, row]
    for k, node in enumerate(tree.postorder()):
        fall = before - model.decision_function([cut(tree, k)])[0, row] if node.children else 0.0
        assert found.node_values[k] == pytest.approx(fall, abs=1e-9)
    assert found.values_are == "removal"
    assert [name for name, _ in found.parts] == ["tree", "bias"]
    assert found.supporting == found.opposing == []
    words = "The value of a node is how much the score falls if the node's children are removed."
    assert words in str(found)
    assert words in found.to_html()
    assert "Shapley" not in found.to_html()
    (only,) = json.loads(found.to_json())["trees"]
    assert only["values_are"] == "removal"
    assert only["contribution"] == pytest.approx(found.score - found.bias)


def test_values_by_removal_of_dense_vectors_of_partial_trees():
    vectorizer = DistributedTreeVectorizer(n_components=256, kernel="partial")
    model = TreeClassifier(vectorizer=vectorizer, decay=0.4, C=1).fit(FOREST, CLASSES)
    found = explain(model, FOREST[0])
    assert found.values_are == "removal"
    row = model.classes_.tolist().index(found.target)
    root = found.score - model.decision_function([cut(FOREST[0], FOREST[0].size - 1)])[0, row]
    assert found.node_values[-1] == pytest.approx(root, abs=1e-5)


def test_fragments_of_kernel_models_add_what_they_share_with_the_support_vectors():
    model = trained(kernel=SubsetTreeKernel(normalize=True))
    tree = SMALL[5]
    found = explain(model, tree, "two", n_fragments=100)
    worth = kernel_game(model, tree, model.classes_.tolist().index("two"))
    of_fragment = Counter()
    for nodes, fragment in occurrences(tree):
        smaller = [inner for inner, _ in occurrences(tree) if inner < nodes]
        of_fragment[fragment] += worth(nodes) - math.fsum(_own(worth, inner, tree) for inner in smaller)
    listed = {share.fragment: share.value for share in found.supporting + found.opposing}
    wanted = {f: v for f, v in of_fragment.items() if fragment_cost(f) <= 4 and abs(v) > 1e-12}
    assert listed == pytest.approx(wanted, abs=1e-8)


def _own(worth, nodes, tree):
    """Return what one occurrence adds by itself: its worth without that of the occurrences within it."""
    within = [inner for inner, _ in occurrences(tree) if inner < nodes]
    return worth(nodes) - math.fsum(_own(worth, inner, tree) for inner in within)


def test_many_support_vectors_are_matched_in_parts(monkeypatch):
    x, others = read_tree(SMALL[0]), random_forest(4, 30, 20)
    weights = np.random.default_rng(0).normal(size=30)
    wanted = sum(
        weight * pair_shares.kernel_shares(x, others[[k]], 0.4)[0] for k, weight in enumerate(weights)
    )
    assert_close(pair_shares.weighted_shares(x, others, weights, 0.4), wanted)
    monkeypatch.setattr(pair_shares, "MAX_PAIRS", x.n_nodes * int(others.sizes.max()))
    assert_close(pair_shares.weighted_shares(x, others, weights, 0.4), wanted)
    assert not pair_shares.weighted_shares(x, others[:0], weights[:0], 0.4).any()
    monkeypatch.setattr(pair_shares, "MAX_PAIRS", 10)
    with pytest.raises(LimitError, match="explain smaller trees"):
        pair_shares.weighted_shares(x, others, weights, 0.4)


def test_large_trees_have_fewer_fragment_vectors_and_the_same_sum(monkeypatch):
    model = TreeClassifier(vectorizer=DistributedTreeVectorizer(n_components=256), decay=0.4, C=1)
    model.fit(FOREST, CLASSES)
    whole = explain(model, FOREST[3], find_flip=False)
    monkeypatch.setattr(tree_parts, "MAX_FRAGMENT_VECTORS", 12)
    few = explain(model, FOREST[3], find_flip=False)
    assert all(fragment_cost(share.fragment) == 0 for share in few.supporting + few.opposing)
    assert few.others != whole.others
    for found in (whole, few):
        assert sum(value for _, value in found.parts) == pytest.approx(found.score, abs=1e-6)


def test_pipelines_of_dense_vectors_are_explained():
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(DistributedTreeVectorizer(n_components=256), DualLinearSVC()).fit(FOREST, CLASSES)
    found = explain(model, FOREST[0])
    assert found.target == model.predict(FOREST[:1])[0]
    assert sum(value for _, value in found.parts) == pytest.approx(found.score, abs=1e-6)


def test_several_trees_and_numbers_have_their_parts():
    table = {"a": list(map(str, FOREST)), "b": list(map(str, FOREST[::-1])), "n": np.arange(60.0)}
    for kernel, name in ((SubsetTreeKernel(normalize=True, leaves=True), "nodes"), (SubtreeKernel(), "tree")):
        model = TreeClassifier(
            tree_columns=["a", "b"], number_columns=["n"], kernel=kernel, decay=0.4, C=1
        ).fit(table, CLASSES)
        found = explain(model, {name: values[7] for name, values in table.items()})
        leaves = ["equal leaves of a", "equal leaves of b"] if name == "nodes" else []
        assert [part for part, _ in found.parts] == [f"{name} of a", f"{name} of b", *leaves, "n", "bias"]
        assert sum(value for _, value in found.parts) == pytest.approx(found.score, abs=1e-6)


def test_trees_without_fragments_are_explained():
    for kernel in (WITH_SHAPLEY[0], WITH_SHAPLEY[4], BY_REMOVAL[1]):
        found = explain(TreeClassifier(kernel=kernel, decay=0.4, C=1).fit(FOREST, CLASSES), "(X)")
        assert found.node_values.tolist() == [0.0]
        assert found.flip is None


def test_models_of_kernels_have_no_fragments_to_list_and_large_trees_a_limit(monkeypatch):
    model = trained(kernel=SubtreeKernel(normalize=True))
    with pytest.raises(ParameterError, match="explain_model needs a model of fragments"):
        explain_model(model, SMALL)
    monkeypatch.setattr(removal, "MAX_NODES", 10)
    with pytest.raises(LimitError, match="explain a smaller tree"):
        explain(model, FOREST[0], find_flip=False)
