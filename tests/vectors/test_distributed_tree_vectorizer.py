"""Dense vectors of trees, as a transformer."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from strategies import random_forest
from treedot import DistributedTreeVectorizer, LinearModel, TreeClassifier, read_trees
from treedot.errors import ParameterError
from treedot.kernels import SmoothedPartialTreeKernel, WordVectors
from treedot.kernels.reference import partial_tree_values
from treedot.vectors import DenseEncoder, DenseSpec


def test_vectors_are_those_of_the_encoder_and_can_be_written_to_out():
    forest = random_forest(0, 6)
    vectorizer = DistributedTreeVectorizer(
        n_components=256, decay=0.2, composition="product", random_state=4, dtype=np.float64
    )
    assert vectorizer.spec == DenseSpec(256, 0.2, "product", 4, normalize=True, dtype="float64")
    expected = DenseEncoder(vectorizer.spec).encode(forest)
    out = np.empty((6, 256))
    assert vectorizer.transform(forest, out=out) is out
    assert (out == expected).all()
    assert vectorizer.get_feature_names_out()[0] == "distributedtreevectorizer0"


def test_impossible_parameters_are_refused():
    with pytest.raises(ParameterError, match="multiple of 256"):
        DistributedTreeVectorizer(n_components=3).fit(["(A b)"])
    with pytest.raises(ParameterError, match="integer"):
        DistributedTreeVectorizer(random_state=None).transform(["(A b)"])


def test_a_fragments_weight_can_be_read_off_a_vector():
    vectorizer = DistributedTreeVectorizer(n_components=8192, decay=0.25, normalize=False)
    tree = read_trees(["(S (NP (DT a) (NN tree)) (VP (VBZ is) (NP (DT a) (NN tree))))"])
    vector = vectorizer.transform(tree)[0]
    noise = 6 * np.linalg.norm(vector) / np.sqrt(8192)
    assert vector @ vectorizer.transform_fragment("(NP (DT a) NN)") == pytest.approx(2 * 0.5, abs=noise)
    assert vector @ vectorizer.transform_fragment("(DT a)") == pytest.approx(2, abs=noise)
    assert vector @ vectorizer.transform_fragment("(DT the)") == pytest.approx(0, abs=noise)


PARTIAL = {"kernel": "partial", "mu": 0.3, "gaps": "span", "max_length": 3}


def test_vectors_of_partial_trees_are_those_of_the_encoder():
    forest = random_forest(0, 6)
    vectorizer = DistributedTreeVectorizer(n_components=256, **PARTIAL)
    assert vectorizer.spec == DenseSpec(256, **PARTIAL)
    expected = DenseEncoder(vectorizer.spec).encode(forest)
    for same in (vectorizer, clone(vectorizer), pickle.loads(pickle.dumps(vectorizer))):
        assert (same.transform(forest) == expected).all()
    assert DistributedTreeVectorizer._of_spec(vectorizer.spec).get_params() == vectorizer.get_params()


def test_settings_of_partial_trees_are_refused_without_them():
    with pytest.raises(ParameterError, match="mu has no effect with kernel='subset'"):
        DistributedTreeVectorizer(mu=0.3).fit(["(A b)"])
    with pytest.raises(TypeError, match="terminal_factor"):  # there are no vectors for any but 1
        DistributedTreeVectorizer(kernel="partial", terminal_factor=5)


def test_a_partial_trees_weight_can_be_read_off_a_vector():
    vectorizer = DistributedTreeVectorizer(decay=0.5, kernel="partial", mu=1, normalize=False)
    tree = read_trees(["(S (NP (DT a) (JJ old) (NN tree)) (VP (VBZ is) (NP (DT a) (NN tree))))"])
    vector = vectorizer.transform(tree)[0]
    noise = 6 * np.linalg.norm(vector) / np.sqrt(8192)
    values = partial_tree_values(tree[0], decay=0.5, mu=1)
    for part in ("(a)", "(NP DT NN)", "(NP (DT a) NN)", "(S (VP (NP (NN tree))))"):
        expected = values[read_trees([part])[0]]
        assert vector @ vectorizer.transform_fragment(part) == pytest.approx(expected, abs=noise)
    assert vector @ vectorizer.transform_fragment("(NP NN DT)") == pytest.approx(0, abs=noise)


WORDS = {"dog": [3.0, 4.0], "cat": [4.0, 3.0], "car": [-1.0, 3.0], "bus": [-1.5, 3.0]}
SENTENCES = [f"(S (NP the::d {noun}::n) (VP runs::v))" for noun in WORDS]


def smoothed(similarity=WORDS, **settings):
    return DistributedTreeVectorizer(kernel="smoothed", similarity=similarity, **settings)


def test_vectors_of_similar_words_are_those_of_the_encoder(tmp_path):
    path, words = tmp_path / "words.txt", WordVectors(WORDS)
    path.write_text("".join(f"{word} {x} {y}\n" for word, (x, y) in WORDS.items()))
    spec = DenseSpec(256, kernel="smoothed", mu=0.3, similarity=words.fingerprint)
    expected = DenseEncoder(spec, words).encode(read_trees(SENTENCES))
    for similarity in (words, WORDS, path, str(path)):
        made = smoothed(similarity, n_components=256, mu=0.3)
        assert made.spec == spec
        for same in (made, clone(made), pickle.loads(pickle.dumps(made))):
            assert (same.transform(SENTENCES) == expected).all()
            assert same.fit(SENTENCES).spec == spec


def test_vectors_of_similar_words_estimate_the_smoothed_kernel():
    exact = SmoothedPartialTreeKernel(WORDS, normalize=True).gram(SENTENCES)  # no cosine is negative here
    vectors = smoothed().transform(SENTENCES)
    assert np.abs(vectors @ vectors.T - exact).max() < 6 / np.sqrt(8192)


def test_another_similarity_makes_other_vectors():
    vectorizer = smoothed(n_components=256)
    before, spec = vectorizer.transform(SENTENCES), vectorizer.spec
    vectorizer.set_params(similarity={**WORDS, "dog": [1.0, 0.0]})
    assert vectorizer.spec != spec
    assert (vectorizer.transform(SENTENCES) != before).any()
    vectorizer.set_params(similarity=WORDS)
    assert (vectorizer.transform(SENTENCES) == before).all()


def test_word_vectors_are_searched_over_a_grid():
    blind = WordVectors({word: np.eye(4)[k] for k, word in enumerate(WORDS)})
    grid = {"distributedtreevectorizer__similarity": [blind, WordVectors(WORDS)]}
    pipeline = make_pipeline(smoothed(n_components=2048), LinearSVC())
    y = ["animal", "animal", "vehicle", "vehicle"]
    search = GridSearchCV(pipeline, grid, cv=2).fit(SENTENCES, y)
    assert search.best_params_ == {"distributedtreevectorizer__similarity": WordVectors(WORDS)}


def test_models_keep_word_vectors(tmp_path):
    y = ["animal", "animal", "vehicle", "vehicle"]
    model = TreeClassifier(vectorizer=smoothed(n_components=512), decay=0.4, C=10).fit(SENTENCES, y)
    model.save(tmp_path / "model")
    wanted = model.decision_function(SENTENCES)
    for again in (LinearModel.load(tmp_path / "model"), TreeClassifier.load(tmp_path / "model")):
        assert (again.decision_function(SENTENCES) == wanted).all()


def test_an_invalid_similarity_raises():
    for similarity, message in (
        (None, "needs word vectors as similarity"),
        (lambda a, b: 1.0, "similarity must be word vectors here, a mapping .* not <function"),
        ({"a": [1.0], "b": []}, "finite numbers, and equally long for all words"),
    ):
        with pytest.raises(ParameterError, match=message):
            smoothed(similarity).fit(SENTENCES)
    with pytest.raises(ParameterError, match="similarity has no effect with kernel='partial'"):
        smoothed().set_params(kernel="partial").transform(SENTENCES)
    with pytest.raises(ParameterError, match=r"n_components must be at least 300, .* not 256"):
        smoothed({"a": np.ones(300)}, n_components=256).transform(SENTENCES)


def test_the_weight_of_a_partial_tree_counts_similar_words():
    vectorizer = smoothed(decay=0.5, mu=1, normalize=False)
    vector = vectorizer.transform(["(NP cat::n)"])[0]
    noise = 6 * np.linalg.norm(vector) / np.sqrt(8192)
    for part, weight in (("(cat::n)", 0.5), ("(dog::n)", 0.96 * 0.5), ("(NP dog::n)", 0.96 * 0.5)):
        assert vector @ vectorizer.transform_fragment(part) == pytest.approx(weight, abs=noise)
