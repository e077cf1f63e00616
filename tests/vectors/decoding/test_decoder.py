"""Vectors back to trees."""

import itertools
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from strategies import all_trees, corpus, trees
from treedot import DistributedTreeVectorizer, Forest, Tree, Vectors, read_trees
from treedot.errors import ParameterError, SpecMismatchError
from treedot.parameters import COMPOSITIONS
from treedot.vectors import DenseEncoder, DenseSpec, Productions, SparseSpec
from treedot.vectors.decoding import production_vectors
from treedot.vectors.decoding.certificate import margin_of
from treedot.vectors.decoding.decoder import Decoder
from treedot.vectors.decoding.draft import Node

QUESTIONS = Path(__file__).parents[3] / "docs" / "examples" / "questions.tsv"
SENTENCES = read_trees(QUESTIONS)[::4][:12]


def draft_of(tree):
    """Return a tree as a draft whose productions are numbered."""
    numbers = defaultdict(itertools.count().__next__)
    root = Node(tree.label)
    waiting = [(tree, root)]
    while waiting:
        given, node = waiting.pop()
        if given.children:
            labels = tuple(child.label for child in given.children)
            node.expand(numbers[given.label, labels], labels)
            waiting.extend(zip(given.children, node.children, strict=True))
    return root


def production_counts(tree):
    return Counter(
        str(Tree(node.label, [child.label for child in node.children]))
        for node in tree.postorder()
        if node.children
    )


@pytest.mark.slow
@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_vectors_of_sentences_are_read_back(composition, normalize, dtype):
    vectorizer = DistributedTreeVectorizer(
        n_components=4096, decay=0.3, composition=composition, normalize=normalize
    )
    found = vectorizer.decode(vectorizer.transform(SENTENCES).astype(dtype), SENTENCES)
    right = [one.tree == tree for one, tree in zip(found, SENTENCES, strict=True)]
    assert np.mean(right) >= 0.9
    assert all(is_right for one, is_right in zip(found, right, strict=True) if one.is_certified)
    assert np.mean([one.is_certified for one in found]) >= 0.9
    assert all(
        one.counts == production_counts(one.tree) and one.distance <= one.tolerance
        for one in found
        if one.is_certified
    )


@pytest.mark.parametrize("composition", COMPOSITIONS)
@given(trees(max_leaves=6))
@settings(deadline=None, max_examples=20)
def test_a_certificate_is_never_wrong(composition, tree):
    vectorizer = DistributedTreeVectorizer(n_components=1024, composition=composition)
    (found,) = vectorizer.decode(vectorizer.transform([tree]), [tree, "(A B)", "(B A C)", "(A A)", "(A A B)"])
    assert found.tree == tree or not found.is_certified


@pytest.mark.slow
@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_brute_force_over_all_small_trees_agrees_with_certificates(composition):
    """Trees with one vector get no certificate; a certified tree is the only one with its vector."""
    every = Forest.from_trees([tree for tree in all_trees(6, "A") if tree.children])
    vectorizer = DistributedTreeVectorizer(n_components=1024, composition=composition, normalize=False)
    vectors = vectorizer.transform(every).astype(float)
    squares = (vectors**2).sum(axis=1)
    apart = squares[:, None] + squares - 2 * vectors @ vectors.T
    distances = np.sqrt(np.maximum(apart, 0) / squares[:, None])
    np.fill_diagonal(distances, np.inf)
    has_twin = distances.min(axis=1) < 1e-3
    assert has_twin.any() == (composition != "mixed")  # only right folds confuse trees
    found = vectorizer.decode(vectors.astype(np.float32), every)
    for one, tree, twin in zip(found, every, has_twin, strict=True):
        assert not one.is_certified or (one.tree == tree and not twin)
    assert sum(one.is_certified for one in found) >= 0.6 * (~has_twin).sum()


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize(("n_components", "least"), [(4096, 0.99), (1024, 0.95)])
def test_held_out_questions_are_read_back(n_components, least):
    """The bars of docs/decoding.md, on every fifth question."""
    every = read_trees(corpus("qc_test.tsv.gz"))
    questions = every[::5]
    known = Productions.of(read_trees(corpus("qc_train.tsv.gz")) + every)
    vectorizer = DistributedTreeVectorizer(n_components=n_components, decay=0.2, normalize=False)
    found = vectorizer.decode(vectorizer.transform(questions), known)
    right = [one.tree == tree for one, tree in zip(found, questions, strict=True)]
    assert np.mean(right) >= least
    assert all(is_right for one, is_right in zip(found, right, strict=True) if one.is_certified)


def test_productions_keep_their_vectors_for_the_same_settings(monkeypatch):
    known = Productions.of(SENTENCES)
    for decay in (0.2, 0.2, 0.3):
        vectorizer = DistributedTreeVectorizer(n_components=1024, decay=decay)
        before, vectors = known.encoded, vectorizer.transform(SENTENCES[:2])
        together = [one.tree for one in vectorizer.decode(vectors, known)]
        assert (known.encoded is before) == (before is not None and before.spec.decay == decay)
        monkeypatch.setattr(production_vectors, "LIMIT", 4 * 1024 * 10)  # ten productions, the rest made anew
        again = vectorizer.decode(vectors, Productions(known.forest, known.at_root))
        assert [one.tree for one in again] == together
        monkeypatch.undo()


def test_trees_that_the_right_fold_confuses_are_not_certified():
    pair = ["(A (A A A))", "(A A (A A))"]
    for composition, certified in (("product", False), ("mixed", True)):
        vectorizer = DistributedTreeVectorizer(n_components=1024, composition=composition)
        found = vectorizer.decode(vectorizer.transform(pair), pair)
        assert [one.is_certified for one in found] == [certified, certified]
        assert [one.distance < 1e-3 for one in found] == [True, True]


def test_an_exchange_that_rounding_hides_is_not_certified():
    """Below equal contexts an exchange changes only large fragments, whose weight may be below rounding."""
    deep = Tree.parse("(S (X (U (W (R (V a))))) (Y (U (W (R (V b))))))")
    for decay, is_hidden in ((0.4, False), (0.0005, True)):
        encoder = DenseEncoder(DenseSpec(4096, decay))
        margin = margin_of(draft_of(deep), encoder, decay, norm=4.0, needed=3e-5)
        assert (margin < 3e-5) == is_hidden


@pytest.mark.slow
@pytest.mark.parametrize("unknown", [1, 3])
def test_unknown_productions_are_reported_as_a_remainder(unknown):
    vectorizer = DistributedTreeVectorizer(n_components=8192, decay=0.2, normalize=False)
    known = vectorizer.fit_productions(SENTENCES)
    right = total = 0
    for i in range(6):
        one = SENTENCES[[i]]
        leaves = np.flatnonzero(one.arity == 0)[:unknown]
        label = one.label.copy()
        label[leaves] = len(one.labels)
        changed = Forest(label, one.arity, one.offsets, [*one.labels, "unknown"])
        (found,) = vectorizer.decode(vectorizer.transform(changed), known)
        assert not found.is_certified
        assert found.remainder > 0.05
        true = production_counts(changed[0])
        is_known = {text: n for text, n in true.items() if "unknown" not in text}
        right += sum(found.counts.get(text) == n for text, n in is_known.items())
        total += len(is_known)
    assert right >= 0.95 * total


def test_subtrees_that_repeat_are_read_back():
    tree = "(S (NP (DT the) (NN dog)) (VP (V sees) (NP (DT the) (NN dog)) (NP (DT the) (NN dog))))"
    vectorizer = DistributedTreeVectorizer(n_components=4096, decay=0.2)
    (found,) = vectorizer.decode(vectorizer.transform([tree]), [*map(str, SENTENCES), tree])
    assert found.is_certified
    assert str(found.tree) == tree
    assert found.counts["(DT the)"] == 3


def test_a_single_node_has_a_vector_of_zeros_and_no_certificate():
    vectorizer = DistributedTreeVectorizer(n_components=256)
    (found,) = vectorizer.decode(vectorizer.transform(["(A)"]), ["(A b)"])
    assert found.tree is None
    assert not found.is_certified
    assert found.counts == {}


def test_nothing_gives_nothing():
    vectorizer = DistributedTreeVectorizer(n_components=256)
    assert vectorizer.decode(np.zeros((0, 256), np.float32), ["(A b)"]) == []
    (found,) = vectorizer.decode(vectorizer.transform(["(A b)"]), Forest.from_trees([]))
    assert found.tree is None
    assert not found.is_certified


def test_two_hundred_equal_children_do_no_harm():
    wide = "(A" + " (B x)" * 200 + ")"
    for decay in (0.001, 0.4):
        vectorizer = DistributedTreeVectorizer(n_components=1024, decay=decay)
        (found,) = vectorizer.decode(vectorizer.transform([wide]), [wide, "(A (B x))"])
        assert not found.is_certified or str(found.tree) == wide


def test_results_do_not_depend_on_batches_or_threads():
    vectorizer = DistributedTreeVectorizer(n_components=1024, decay=0.2)
    known = vectorizer.fit_productions(SENTENCES)
    vectors = vectorizer.transform(SENTENCES[:6])
    together = vectorizer.decode(vectors, known)
    apart = list(itertools.chain(*(vectorizer.set_params(n_jobs=2).decode(v[None], known) for v in vectors)))
    assert [one.tree for one in together] == [one.tree for one in apart]
    assert [one.is_certified for one in together] == [one.is_certified for one in apart]


def test_productions_are_saved_and_read_trees_of_two_levels(tmp_path):
    known = Productions.of(["(S (A x) (A x))", "(A y)"])
    assert [str(one) for one in known.forest] == ["(A x)", "(S A A)", "(A y)"]
    assert known.at_root.tolist() == [False, True, True]
    known.save(tmp_path / "known.parquet")
    again = Productions.load(tmp_path / "known.parquet")
    assert again.forest == known.forest
    assert (again.at_root == known.at_root).all()
    assert Productions.of(known.forest).at_root.all()
    known.forest.save(tmp_path / "trees.parquet")
    with pytest.raises(ParameterError, match="holds no productions"):
        Productions.load(tmp_path / "trees.parquet")
    with pytest.raises(ParameterError, match="one node and its children"):
        Productions(Forest.from_trees([Tree.parse("(A (B c))")]), np.ones(1, bool))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"decay": 0}, "decay=0"),
        ({"decay": 1e-300}, "decay=1e-300"),
        ({"kernel": "partial"}, "kernel='partial'"),
    ],
)
def test_vectors_that_cannot_be_decoded_are_refused(settings, words):
    vectorizer = DistributedTreeVectorizer(n_components=256, **settings)
    with pytest.raises(ParameterError, match=words):
        vectorizer.decode(np.zeros((1, 256), np.float32), ["(A b)"])


def test_wrong_input_is_refused():
    vectorizer = DistributedTreeVectorizer(n_components=256)
    for wrong in (np.zeros((1, 512), np.float32), np.zeros(256, np.float32), np.zeros((1, 256), int)):
        with pytest.raises(ParameterError, match="shape"):
            vectorizer.decode(wrong, ["(A b)"])
    with pytest.raises(ParameterError, match="vector 1 is not finite"):
        vectorizer.decode(np.full((1, 256), np.nan, np.float32), ["(A b)"])
    other = DistributedTreeVectorizer(n_components=256, decay=0.1)
    with pytest.raises(SpecMismatchError, match="decay"):
        vectorizer.decode(Vectors(other.transform(["(A b)"]), other.spec), ["(A b)"])
    with pytest.raises(ParameterError, match="sparse rows"):
        Decoder(SparseSpec(), Productions.of(["(A b)"]))
