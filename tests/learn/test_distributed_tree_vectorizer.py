"""Dense vectors of trees, as a transformer."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from strategies import random_forest
from treedot import DistributedTreeVectorizer, read_trees
from treedot.encode import DenseEncoder, DenseSpec
from treedot.errors import ParameterError
from treedot.kernels.reference import partial_tree_values


def test_vectors_are_those_of_the_encoder_and_go_where_they_are_told():
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
