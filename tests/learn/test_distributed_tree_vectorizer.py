"""Dense vectors of trees, as a transformer."""

import numpy as np
import pytest

from strategies import random_forest
from treedot import DistributedTreeVectorizer, read_trees
from treedot.encode import DenseEncoder, DenseSpec
from treedot.errors import ParameterError


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
