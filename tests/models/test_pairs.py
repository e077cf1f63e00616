"""Pairs of texts: linked words and lexical overlap, against plain definitions, and models that use them."""

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from strategies import trees
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    FragmentVectorizer,
    LinearModel,
    SubsetTreeKernel,
    Tree,
    TreeClassifier,
    TreeRegressor,
    explain,
    explain_model,
    read_trees,
)
from treedot.errors import ParameterError, SourceError
from treedot.kernels import ColumnKernel, LinearKernel
from treedot.models import PairTransformer
from treedot.models.inputs.inputs import described, restored
from treedot.models.inputs.links import PENN, UNIVERSAL, Pairs
from treedot.models.inputs.overlap import LexicalOverlap, OverlapInput
from treedot.models.inputs.table import Columns, read_table
from treedot.models.training.kernel_descent import train_kernel

PAIR = ("text", "hypothesis")
SOME_LABELS = st.sampled_from(["NN", "NNS", "DT", "VERB", "dog", "Dog", "a", "#1", "ß", "SS"])
TREES = trees(SOME_LABELS, 6)
PAIRS = st.lists(st.tuples(TREES, TREES), min_size=1, max_size=3)


def links_of(text, hypothesis):
    """The definition: the content words that both trees have, in the order of the hypothesis."""

    def words(tree):
        return [word for leaf, word in leaves(tree) if leaf]

    def leaves(tree, tag=""):
        if tree.is_leaf:
            yield tag.startswith(PENN) or tag in UNIVERSAL, tree.label.lower()
        for child in tree.children:
            yield from leaves(child, tree.label)

    there = set(words(text))
    shared = dict.fromkeys(word for word in words(hypothesis) if word in there)
    return {word: f"#{k}" for k, word in enumerate(shared, 1)}


def marked(tree, links, tag=""):
    """Return the tree with the marks of linked words."""
    if tree.is_leaf:
        is_content = tag.startswith(PENN) or tag in UNIVERSAL
        return Tree(links.get(tree.label.lower(), tree.label) if is_content else tree.label)
    return Tree(tree.label, [marked(child, links, tree.label) for child in tree.children])


def words_of(tree):
    return {node.label.lower() for node in tree.postorder() if node.is_leaf}


def overlaps(training, pairs):
    """The definition of the lexical overlap."""
    held = [words_of(tree) for pair in training for tree in pair]

    def weight(words):
        return math.fsum(math.log((len(held) + 1) / (sum(word in own for own in held) + 1)) for word in words)

    asked = [(words_of(text), words_of(hypothesis)) for text, hypothesis in pairs]
    return [weight(own & there) / weight(own) if weight(own) > 0 else 0.0 for there, own in asked]


def forests(pairs):
    return Pairs(*(Forest.from_trees(list(side)) for side in zip(*pairs, strict=True)))


@given(PAIRS)
def test_links_are_those_of_the_definition(pairs):
    links = [links_of(*pair) for pair in pairs]
    linked = forests(pairs).linked()
    assert list(linked.texts) == [marked(t, own) for (t, _), own in zip(pairs, links, strict=True)]
    assert list(linked.hypotheses) == [marked(h, own) for (_, h), own in zip(pairs, links, strict=True)]


@given(PAIRS, PAIRS)
def test_overlap_is_that_of_the_definition(training, pairs):
    learned = LexicalOverlap.learned(forests(training))
    assert learned(forests(pairs)).tolist() == pytest.approx(overlaps(training, pairs), abs=1e-12)


def test_shared_content_words_become_placeholders():
    text = "(S (NP (DT the) (NN Dog)) (VP (VBD bit) (NP (NNP Ann) (CC and) (NN dog))))"
    hypothesis = "(S (NP (NNP Ann)) (VP (VBD met) (NP (DT the) (NN dog))))"
    found = PairTransformer().fit_transform({"text": [text], "hypothesis": [hypothesis]})
    assert str(found["text"][0]) == "(S (NP (DT the) (NN #2)) (VP (VBD bit) (NP (NNP #1) (CC and) (NN #2))))"
    assert str(found["hypothesis"][0]) == "(S (NP (NNP #1)) (VP (VBD met) (NP (DT the) (NN #2))))"


def test_empty_and_unequal_columns():
    empty = Forest([], [], [0], [])
    assert len(Pairs(empty, empty).linked()) == 0
    assert LexicalOverlap.learned(Pairs(empty, empty))(Pairs(empty, empty)).size == 0
    with pytest.raises(ParameterError, match="do not form pairs"):
        Pairs(empty, read_trees(["(A b)"]))


NOUNS = [f"n{k}" for k in range(40)]


def sentences(seed, count):
    """Return pairs whose hypothesis follows if its subject is the subject of the text, too."""
    rng = np.random.default_rng(seed)
    rows = {"text": [], "hypothesis": [], "class": []}
    for _ in range(count):
        a, b, c = rng.choice(NOUNS, 3, replace=False)
        follows = bool(rng.integers(2))
        rows["text"].append(f"(S (NP (NN {a})) (VP (VBD saw) (NP (NN {b}) (CC and) (NN {c}))))")
        rows["hypothesis"].append(f"(S (NP (NN {a if follows else b})) (VP (VBD saw)))")
        rows["class"].append("YES" if follows else "NO")
    return rows


TRAIN, TEST = sentences(0, 80), sentences(1, 60)


def trained(**settings):
    settings = {"pair_columns": list(PAIR), "decay": 0.4, "C": 10.0} | settings
    return TreeClassifier(**settings).fit(TRAIN, TRAIN["class"])


WAYS = {
    "rows": {},
    "dense": {"vectorizer": DistributedTreeVectorizer(n_components=1024)},
    "exact": {"kernel": SubsetTreeKernel(normalize=True, leaves=True)},
}


@pytest.mark.parametrize("way", WAYS)
def test_links_show_what_no_word_shows(way):
    model = trained(**WAYS[way])
    apart = TreeClassifier(tree_columns=list(PAIR), decay=0.4, C=10.0).fit(TRAIN, TRAIN["class"])
    assert model.score(TEST, TEST["class"]) == 1.0
    assert apart.score(TEST, TEST["class"]) < 0.75


@pytest.mark.parametrize("way", WAYS)
def test_a_loaded_model_prepares_pairs_alike(way, tmp_path):
    model = trained(**WAYS[way])
    model.save(tmp_path / "model")
    loaded = LinearModel.load(tmp_path / "model")
    assert loaded.reads == Columns(PAIR, pair=PAIR)
    assert loaded.decision_function(TEST) == pytest.approx(model.decision_function(TEST), rel=1e-12)
    again = TreeClassifier.load(tmp_path / "model")
    assert (again.tree_columns, again.pair_columns) == (None, list(PAIR))
    assert (again.fit(TRAIN, TRAIN["class"]).predict(TEST) == model.predict(TEST)).all()


def test_the_transformer_before_a_classifier_gives_the_same_model():
    columns = {"tree_columns": list(PAIR), "number_columns": ["overlap"]}
    steps = make_pipeline(PairTransformer(), TreeClassifier(**columns, decay=0.4, C=10.0))
    steps.fit(TRAIN, TRAIN["class"])
    wanted = trained().decision_function(TEST)
    assert steps.decision_function(TEST) == pytest.approx(wanted, rel=1e-9)


def test_the_overlap_learns_from_the_training_examples_of_each_fold():
    seen = []

    class Watched(LexicalOverlap):
        @classmethod
        def learned(cls, pairs):
            seen.append(len(pairs))
            return LexicalOverlap.learned(pairs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("treedot.models.inputs.overlap.LexicalOverlap", Watched)
        trained(C=(1.0, 10.0), cv=4)
    assert seen == [60, 60, 60, 60, 80]


def test_more_columns_stand_beside_a_pair(tmp_path):
    table = TRAIN | {"other": TRAIN["text"], "size": range(80), "note": ["x"] * 80}
    names = {"tree_columns": ["other"], "number_columns": ["size"], "text_columns": ["note"]}
    model = TreeClassifier(pair_columns=list(PAIR), **names, decay=0.4, C=1).fit(table, TRAIN["class"])
    model.save(tmp_path / "model")
    found = TreeClassifier.load(tmp_path / "model")
    assert {name: getattr(found, name) for name in names} == names
    assert (found.predict(table) == model.predict(table)).all()
    assert explain_model(model, table).n_trees == 240


def test_a_regressor_takes_pairs():
    y = np.arange(80.0)
    model = TreeRegressor(pair_columns=list(PAIR), decay=0.4, alpha=1.0).fit(TRAIN, y)
    assert model.predict(TRAIN).shape == (80,)
    assert model.to_model().reads.pair == PAIR


@pytest.mark.parametrize("way", WAYS)
def test_an_explanation_names_nodes_and_links(way):
    model, number = trained(**WAYS[way]), TEST["class"].index("YES")
    example = {name: TEST[name][number] for name in PAIR}
    found = explain(model, example, "YES")
    assert found.score == pytest.approx(sum(value for _, value in found.parts), abs=1e-6)
    assert "overlap of text and hypothesis" in found.others
    assert [one.column for one in found.trees] == list(PAIR)
    assert {share.mark for share in found.links} == {"#1", "#2"}
    subject = next(share for share in found.links if share.mark == "#1")
    assert subject.word in NOUNS
    assert subject == found.links[0]
    assert subject.value > 0
    assert f"{subject.value:+.3f}  #1 {subject.word}" in str(found)
    assert subject.word in found.to_html()
    assert json.loads(found.to_json())["links"][0] == subject._asdict()


def test_the_value_of_a_link_is_that_of_undoing_it():
    model, number = trained(), TEST["class"].index("YES")
    example = {name: TEST[name][number] for name in PAIR}
    linear = model.to_model()
    table = read_table({name: [value] for name, value in example.items()}, linear.reads)
    (share, *_) = explain(model, example, "YES").links
    undone = {
        name: Forest.from_trees([Tree.parse(str(table[name][0]).replace("#1", share.word))]) for name in PAIR
    }
    after = linear.scores(table.with_values(undone))
    assert share.value == pytest.approx(float(linear.scores(table)[0] - after[0]), abs=1e-6)


def test_kernels_of_both_sides_are_summed_and_multiplied():
    found = PairTransformer().fit_transform(TRAIN)
    sides = [found[name] for name in PAIR]
    tree = SubsetTreeKernel(0.4, normalize=True)
    exact = [tree.gram(side) for side in sides]
    rows = [FragmentVectorizer(decay=0.4).transform(side) for side in sides]
    dense = [DistributedTreeVectorizer(n_components=1024, decay=0.4).transform(side) for side in sides]
    for parts, kernel, table in (
        (exact, tree, found),
        ([(x @ x.T).toarray() for x in rows], LinearKernel(), dict(zip(PAIR, rows, strict=True))),
        ([x @ x.T for x in dense], LinearKernel(), dict(zip(PAIR, dense, strict=True))),
    ):
        a, b = (ColumnKernel(kernel, name) for name in PAIR)
        np.testing.assert_allclose((a + b).gram(table), parts[0] + parts[1], atol=1e-5)
        np.testing.assert_allclose((a * b).gram(table), parts[0] * parts[1], atol=1e-5)


def test_the_sum_of_models_is_the_sum_of_both_kernels_and_the_overlap():
    hypotheses = [
        text.replace("saw", "saw" if k % 3 else "ran") for k, text in enumerate(TRAIN["hypothesis"])
    ]
    table = TRAIN | {"hypothesis": hypotheses}
    found = PairTransformer().fit_transform(table)
    lex = (found["overlap"] - found["overlap"].mean()) / found["overlap"].std()
    tree = SubsetTreeKernel(0.4, normalize=True)
    whole = tree.gram(found["text"]) + tree.gram(found["hypothesis"]) + np.outer(lex, lex)
    settings = {"kernel": tree, "decay": 0.4, "C": 10.0, "tol": 1e-10, "max_passes": 100_000}
    model = TreeClassifier(pair_columns=list(PAIR), **settings).fit(table, TRAIN["class"])
    inputs = described(model.to_model().inputs)[0]
    assert [each["kind"] for each in inputs] == ["kernel", "kernel", "overlap"]
    sides = (np.array(TRAIN["class"]) == "YES")[:, None]
    fit = train_kernel(whole, sides, np.full((1, 2), 10.0), tol=1e-10, max_passes=100_000)
    wanted = (whole @ fit.weights + fit.bias)[:, 0]
    assert model.decision_function(table) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("pair", ["text", [], ["text"], ["text", "text"], ["a", "b", "c"], ["text", 2]])
def test_a_pair_is_two_columns(pair):
    with pytest.raises(ParameterError):
        TreeClassifier(pair_columns=pair).fit(TRAIN, TRAIN["class"])
    with pytest.raises(ParameterError):
        PairTransformer(columns=pair).fit(TRAIN)


def test_a_pair_and_a_tree_column_may_not_share_a_name():
    with pytest.raises(ParameterError, match="named twice"):
        TreeClassifier(pair_columns=list(PAIR), tree_columns=["text"]).fit(TRAIN, TRAIN["class"])
    with pytest.raises(ParameterError, match="no column 'hypothesis'"):
        TreeClassifier(pair_columns=list(PAIR)).fit({"text": TRAIN["text"]}, TRAIN["class"])


def test_damaged_inputs_are_refused():
    configs, arrays = described(trained().to_model().inputs)
    assert restored(configs, arrays)[-1].reads.pair == PAIR
    *trees_, overlap = configs
    for change in ({"columns": ["text"]}, {"columns": ["text", "text"]}, {"columns": [1, 2]}, {"version": 2},
                   {"columns": ["text", "other"]}, {"columns": "ab"}):  # fmt: skip
        with pytest.raises(SourceError):
            restored([*trees_, overlap | change], arrays)
    for name, value in (("mean", np.array([np.nan])), ("documents", np.array([-1])), ("scale", np.zeros(1))):
        with pytest.raises(SourceError):
            restored(configs, arrays | {f"input2.{name}": value})
    with pytest.raises(SourceError):
        restored(configs, {key: value for key, value in arrays.items() if key != "input2.columns"})
    second = {name.replace("input2", "input3"): x for name, x in arrays.items() if "input2" in name}
    with pytest.raises(SourceError, match="more than one pair"):
        restored([*configs, overlap | {"columns": ["hypothesis", "text"]}], arrays | second)


def test_a_model_without_a_pair_does_not_mention_pairs():
    model = TreeClassifier(tree_columns=list(PAIR), decay=0.4, C=1.0).fit(TRAIN, TRAIN["class"]).to_model()
    assert "pair" not in json.dumps([described(model.inputs)[0], model.facts])


def test_an_overlap_that_is_the_same_everywhere_is_no_problem():
    same = {name: [TRAIN[name][0]] * 6 for name in PAIR}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        each, rows = OverlapInput.of_pair(PAIR).fitted(read_table(same, Columns(PAIR, pair=PAIR)))
    assert rows.ravel().tolist() == [0.0] * 6
    assert each.width == 1
