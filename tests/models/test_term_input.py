"""Words and labels of trees as columns beside the fragments."""

import hashlib
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import trees
from treedot import Forest, LinearModel, Tree, TreeClassifier, explain, explain_model, read_trees
from treedot._runtime.hashing import keys
from treedot.errors import ParameterError, TreedotError
from treedot.models.inputs.hashed_terms import BITS
from treedot.models.inputs.inputs import described, restored
from treedot.models.inputs.table import Table
from treedot.models.inputs.term_input import TermInput, labels_of, words_of
from treedot.models.training.model_selection import rungs

QUESTIONS = read_trees("docs/examples/questions.tsv")
CLASSES = QUESTIONS.columns["label"]


def terms_in(tree, kind):
    """Return the terms of a tree by the definition."""
    nodes, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += reversed(node.children)
    if kind == "labels":
        return Counter(node.label for node in nodes if node.children)
    words = [word for node in nodes if not node.children for word in split(node.label)]
    return Counter([*words, *map(" ".join, itertools.pairwise(words))])


def split(label):
    """Return the words of a label in which lower and upper case, or underscores, are plain to see."""
    return label.replace("_", " ").casefold().split()


@pytest.mark.parametrize("kind", ["words", "labels"])
@given(st.lists(trees(), min_size=1, max_size=4))
def test_rows_are_roots_of_counts_of_length_one(kind, several):
    forest = Forest.from_trees(several)
    rows = TermInput(None, kind).transform(Table({None: forest}))
    assert rows.shape == (len(several), 2**BITS)
    for tree, row in zip(several, rows, strict=True):
        counts = terms_in(tree, kind)
        wanted = Counter()
        for term, count in counts.items():
            key = int(keys(0, [term], kind)[0, 0])
            wanted[key >> (64 - BITS)] += (-1 if key & 1 else 1) * np.sqrt(count / counts.total())
        assert row.indices.tolist() == sorted(wanted)
        np.testing.assert_allclose(row.data, [wanted[column] for column in sorted(wanted)], rtol=1e-6)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("getFileName", ["get", "file", "name"]),
        ("read_file__now", ["read", "file", "now"]),
        ("HTTPServer2", ["http", "server2"]),
        ("Größe", ["grösse"]),
        ("x.y", ["x", ".", "y"]),
        ("__", []),
    ],
)
def test_identifiers_are_split_at_underscores_and_capitals(label, words):
    names = words_of(Forest.from_trees([Tree("S", [Tree(label)])])).terms.names
    assert names[: len(words)] == words


def test_a_term_belongs_to_the_nodes_above_its_leaves():
    forest = read_trees(["(S (A a b) (B c))", "(d)"])
    terms, nodes = words_of(forest)
    found = {terms.names[k]: sorted(set(pair)) for k, pair in zip(terms.number, nodes.tolist(), strict=True)}
    assert found == {"a": [2], "b": [2], "c": [4], "d": [6], "a b": [2], "b c": [2, 4]}
    assert labels_of(forest).terms.names == ["S", "A", "B"]


def test_rows_are_frozen_to_the_byte():
    rows = TermInput(None, "words").transform(
        Table({None: read_trees(["(S (A readFile) (B x_y) (C Größe))"])})
    )
    content = rows.indices.astype("<i4").tobytes() + rows.data.astype("<f4").tobytes()
    assert hashlib.blake2b(content, digest_size=8).hexdigest() == "beba621359e534ed"


def test_frequencies_are_those_of_the_training_trees():
    table = Table({None: read_trees(["(S (A a))", "(S (A b))", "(S (B b))"])})
    made, rows = TermInput(None, "labels", idf=True).fitted(table)
    assert abs(made.transform(table) - rows).sum() == 0
    weights = np.log(4 / np.array([4, 3, 2])) + 1  # S, A, B
    wanted = np.sort(weights[:2] / np.linalg.norm(weights[:2]))
    np.testing.assert_allclose(np.sort(abs(rows[0].data)), wanted, rtol=1e-6)
    unknown = made.transform(Table({None: read_trees(["(S (Z a))"])}))
    assert np.isclose(abs(unknown.data).max() / abs(unknown.data).min(), np.log(4) + 1)


@pytest.mark.parametrize("idf", [False, True])
def test_inputs_are_stored(idf):
    table = Table({None: QUESTIONS[:30]})
    fragments = TreeClassifier(decay=0.4, C=1).fit(QUESTIONS[:60], CLASSES[:60]).to_model().inputs
    made, rows = TermInput(None, "words", idf=idf).fitted(table)
    configs, arrays = described([*fragments, made])
    (_, again) = restored(configs, arrays)
    assert abs(again.transform(table) - rows).sum() == 0
    for change in ({"terms": "more"}, {"idf": None}, {"version": 2}, {"column": "other"}):
        with pytest.raises(TreedotError):
            restored([configs[0], configs[1] | change], arrays)
    with pytest.raises(TreedotError, match="the inputs read no trees"):
        restored(configs[1:], {name.replace("input1", "input0"): x for name, x in arrays.items()})


@pytest.fixture(scope="module")
def trained():
    return TreeClassifier(decay=0.4, C=10, idf=True, words=True, labels=True).fit(QUESTIONS, CLASSES)


def test_a_model_with_words_is_saved_and_loaded(trained, tmp_path):
    trained.save(tmp_path / "m")
    scores = trained.decision_function(QUESTIONS)
    assert np.allclose(LinearModel.load(tmp_path / "m").decision_function(QUESTIONS), scores)
    again = TreeClassifier.load(tmp_path / "m")
    assert (again.words_, again.labels_, again.idf_) == (True, True, True)
    assert (again.fit(QUESTIONS, CLASSES).predict(QUESTIONS) == trained.predict(QUESTIONS)).all()


def test_words_beside_fragments_are_part_of_explanations(trained):
    found = explain(trained, QUESTIONS[0])
    assert np.isclose(sum(value for _, value in found.parts), found.score)
    assert np.isclose(found.node_values.sum() + found.bias, found.score)
    whole = explain_model(trained, QUESTIONS, n_fragments=30)
    assert any(not share.fragment.children for share in found.supporting)
    assert any(not each.fragment.children for one in whole.fragments.values() for each in one.supporting)


def test_many_settings_are_halved_and_the_winner_was_tried_on_all_folds():
    model = TreeClassifier(decay=(0.2, 0.4), C=(1, 10), idf=(False, True), words=(False, True), labels=False)
    model.fit(QUESTIONS, CLASSES)
    assert len(model.selection_) == 16
    assert sum(trial.folds == 5 for trial in model.selection_) == 2
    best = max((trial for trial in model.selection_ if trial.folds == 5), key=lambda trial: trial.score)
    assert (best.decay, best.C, best.idf, best.words) == (model.decay_, model.C_, model.idf_, model.words_)
    assert [rung.share for rung in rungs(64, 5, 5000)] == [0.125, 1 / 3, 1, 1]
    assert len(rungs(12, 5, 5000)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": 3}, "words must be True or False"),
        ({"damping": "cube"}, "damping must be one of"),
        ({"idf": ()}, "idf must be one value or a non-empty sequence"),
    ],
)
def test_wrong_settings_are_errors(options, message):
    with pytest.raises(ParameterError, match=message):
        TreeClassifier(**options).fit(QUESTIONS, CLASSES)
