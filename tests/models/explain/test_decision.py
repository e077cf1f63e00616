"""Explanations of decisions: what flips them, what is listed, and what is refused."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC

from strategies import random_forest
from treedot import (
    FragmentVectorizer,
    KernelTransformer,
    Tree,
    TreeClassifier,
    explain,
    explain_model,
)
from treedot.errors import LimitError, ParameterError
from treedot.models import DualLinearSVC
from treedot.models.explain import removal
from treedot.readers import read_tree

FOREST = random_forest(8, 60, 24)
CLASSES = [("one", "two", "three")[len(str(tree)) % 3] for tree in FOREST]


@pytest.fixture(scope="module")
def model():
    return make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(FOREST, CLASSES)


@pytest.fixture(scope="module")
def sides():
    chosen = np.array(CLASSES) != "three"
    return make_pipeline(FragmentVectorizer(), LinearSVC()).fit(FOREST[chosen], np.array(CLASSES)[chosen])


def cut(tree: Tree, number: int) -> Tree:
    """Return a tree whose node with some number in post-order has become a leaf, by definition."""
    done: list[Tree] = []
    for k, node in enumerate(tree.postorder()):
        first = len(done) - len(node.children)
        done[first:] = [Tree(node.label, () if k == number else done[first:])]
    return done[0]


def test_the_flip_is_the_smallest_subtree_whose_removal_changes_the_decision(model):
    flips = 0
    for tree in FOREST[:20]:
        nodes = list(tree.postorder())
        before = model.predict([tree])[0]
        changed = {
            k: node.size
            for k, node in enumerate(nodes)
            if node.children and model.predict([cut(tree, k)])[0] != before
        }
        flip = explain(model, tree).flip
        assert (flip is None) == (not changed)
        if flip is not None:
            flips += 1
            assert (changed[flip.node], flip.node) == min((size, k) for k, size in changed.items())
            assert flip.subtree == nodes[flip.node]
            assert flip.decision == model.predict([cut(tree, flip.node)])[0]
    assert flips > 0


def test_removing_a_subtree_keeps_its_label():
    tree = FOREST[0]
    forest = read_tree(tree)
    inner = np.flatnonzero(forest.arity)
    assert list(removal.pruned(forest, inner)) == [cut(tree, k) for k in inner]


def test_any_class_can_be_explained_and_by_default_the_decision(model):
    for tree in FOREST[:5]:
        assert explain(model, tree, find_flip=False).target == model.predict([tree])[0]
        scores = dict(zip(model.classes_, model.decision_function([tree])[0], strict=True))
        for name, score in scores.items():
            found = explain(model, tree, name, find_flip=False)
            assert found.target == name
            assert found.score == pytest.approx(score, abs=1e-5)


def test_the_first_of_two_classes_has_the_negative_score(sides):
    for tree in FOREST[:5]:
        score = sides.decision_function([tree])[0]
        first, second = (explain(sides, tree, name) for name in sides.classes_)
        assert first.score == pytest.approx(-score)
        np.testing.assert_array_equal(first.node_values, -second.node_values)
        assert first.opposing[0].fragment == second.supporting[0].fragment
        assert explain(sides, tree).score >= 0


def test_a_classifier_and_its_model_are_explained_like_a_pipeline():
    one = TreeClassifier(vectorizer=FragmentVectorizer(), decay=None, C=1).fit(FOREST, CLASSES)
    linear = LinearSVC().fit(one.inputs_[0].vectorizer.transform(FOREST), CLASSES)
    linear.coef_ = csr_matrix((3, 2**20), dtype=np.float64).tolil()
    linear.coef_[:, one.columns_] = one.weights_.T
    linear.coef_, linear.intercept_ = linear.coef_.tocsr(), one.intercept_
    wanted = explain(Pipeline([("rows", FragmentVectorizer()), ("linear", linear)]), FOREST[2], "one")
    for model in (one, one.to_model()):
        found = explain(model, FOREST[2], "one")
        assert found.score == pytest.approx(wanted.score, abs=1e-9)
        np.testing.assert_allclose(found.node_values, wanted.node_values, atol=1e-12)


def test_fragments_are_listed_with_their_weights_and_places(model):
    vectorizer, svm = model[0], model[1]
    tree = FOREST[3]
    found = explain(model, tree, "two", n_fragments=5)
    row = list(model.classes_).index("two")
    plain = FragmentVectorizer(normalize=False, dtype="float64")
    length = np.linalg.norm(plain.transform([tree]).data)
    assert len(found.supporting) == len(found.opposing) == 5
    for share in found.supporting + found.opposing:
        weight = (vectorizer.transform_fragment(share.fragment) @ svm.coef_[row].T).toarray()[0, 0]
        value = (plain.transform_fragment(share.fragment) @ plain.transform([tree]).T).toarray()[0, 0]
        assert share.value == pytest.approx(weight * value / length, rel=1e-5)
        nodes = list(tree.postorder())
        assert all(nodes[places[-1]].label == share.fragment.label for places in share.nodes)
    values = [share.value for share in found.supporting]
    assert values == sorted(values, reverse=True)
    assert all(share.value < 0 for share in found.opposing)


def test_numbers_are_explained_without_a_target():
    model = make_pipeline(FragmentVectorizer(), Ridge()).fit(FOREST, np.arange(len(FOREST)))
    found = explain(model, FOREST[0])
    assert found.target is None
    assert found.score == pytest.approx(model.predict(FOREST[:1])[0])
    assert found.flip is None
    assert not found.flip_sought
    with pytest.raises(ParameterError, match="predicts numbers"):
        explain(model, FOREST[0], "two")


def test_a_single_node_has_the_bias_alone(model):
    found = explain(model, Tree("a"))
    assert found.score == found.bias
    assert found.node_values.tolist() == [0.0]
    assert found.supporting == found.opposing == []
    assert "a" in found.to_text()
    assert "<svg" in found.to_html()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            LinearSVC(),
            "cannot explain LinearSVC: give .* a Pipeline of a FragmentVectorizer and a linear model",
        ),
        (make_pipeline(FragmentVectorizer(n_features=32), TruncatedSVD(2), LinearSVC()), "TruncatedSVD"),
        (make_pipeline(FragmentVectorizer(n_features=32), BernoulliNB()), "no weights"),
        (
            make_pipeline(FragmentVectorizer(n_features=32), SVC(kernel="linear")),
            "does not have one row of weights",
        ),
        (make_pipeline(KernelTransformer(), LinearSVC()), "rows of KernelTransformer"),
    ],
)
def test_what_is_no_linear_model_of_rows_is_refused(wrong, message):
    if hasattr(wrong, "steps"):
        wrong.fit(FOREST, CLASSES)
    with pytest.raises(ParameterError, match=message):
        explain(wrong, FOREST[0])


def test_wrong_targets_and_limits_say_what_to_do(model, monkeypatch):
    with pytest.raises(ParameterError, match="no class 'four': choose one of 'one', 'three', 'two'"):
        explain(model, FOREST[0], "four")
    with pytest.raises(ParameterError, match="n_fragments must be at least 0"):
        explain(model, FOREST[0], n_fragments=-1)
    monkeypatch.setattr(removal, "MAX_NODES", 10)
    with pytest.raises(LimitError, match="find_flip=False"):
        explain(model, FOREST[0])
    assert explain(model, FOREST[0], find_flip=False).flip is None


def test_text_has_every_node_with_its_value(model):
    found = explain(model, FOREST[3])
    text = found.to_text()
    assert str(found) == text
    assert text.startswith(f"Class {found.target}, score {found.score:+.3f} = nodes ")
    shown = [float(line.split()[-1]) for line in text.split("\n\n")[1].splitlines()]
    inner = [
        value for value, node in zip(found.node_values, FOREST[3].postorder(), strict=True) if node.children
    ]
    np.testing.assert_allclose(sorted(shown), sorted(inner), atol=6e-4)
    assert "\x1b" not in text
    assert "\x1b[48;5;" in found.to_text(color=True)


def test_json_has_everything(model):
    found = explain(model, FOREST[3])
    read = json.loads(found.to_json())
    assert read["format"] == "treedot explanation"
    assert (read["target"], read["score"], read["bias"]) == (found.target, found.score, found.bias)
    (only,) = read["trees"]
    assert only["node_values"] == found.node_values.tolist()
    assert Tree.parse(only["tree"]) == FOREST[3]
    assert only["column"] is None
    assert [share["fragment"] for share in read["supporting"]] == [str(s.fragment) for s in found.supporting]
    flipped = next(found for found in (explain(model, tree) for tree in FOREST) if found.flip)
    assert json.loads(flipped.to_json())["flip"] == {
        "node": flipped.flip.node,
        "subtree": str(flipped.flip.subtree),
        "decision": flipped.flip.decision,
        "column": None,
    }
    assert f"the decision would be {flipped.flip.decision}." in flipped.to_text()


@pytest.mark.slow
def test_explanations_of_large_trees_print_a_line():
    large = Tree("S", [Tree("A", [Tree("B", ["b"])] * 3000)])
    rows = make_pipeline(FragmentVectorizer(), LinearSVC()).fit([large, "(S (A a))"] * 3, ["x", "y"] * 3)
    found = explain(rows, large)
    assert found.flip is not None
    for shown in (found, found.flip, found.trees[0].tree, found.supporting[0]):
        assert len(repr(shown)) < 300
    assert repr(found).endswith("for 'x': trees of 6002 nodes>")
    assert "nodes=<3000 occurrences>" in repr([share for share in found.supporting if len(share.nodes) > 1])
    assert repr(explain_model(rows, [large])) == "<ModelExplanation of 2 classes: 4 fragments of 1 trees>"
