"""Estimated counts of fragments."""

import numpy as np
import pytest

from treedot import DistributedTreeVectorizer, Forest
from treedot.errors import ParameterError
from treedot.parameters import COMPOSITIONS

TREE = "(S (NP (NNP Ann)) (VP (VBZ sees) (NP (NNP Ann))))"
FRAGMENTS = ["(NP (NNP Ann))", "(NP NNP)", "(NP (NNP Bob))", "(S NP (VP VBZ NP))"]
TRUE = np.array([2, 2, 0, 1])


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_estimates_are_unbiased_with_the_stated_errors(composition):
    """Over 40 seeds, errors over standard errors have mean 0 and standard deviation about 1.

    With the plain product, elements of a vector are products of Gaussians, which scatter more.
    """
    deviations = []
    for seed in range(40):
        vectorizer = DistributedTreeVectorizer(
            n_components=1024, random_state=seed, normalize=False, composition=composition
        )
        counts, errors = vectorizer.contains(vectorizer.transform([TREE]), FRAGMENTS)
        assert counts.shape == errors.shape == (1, 4)
        deviations.append((counts[0] - TRUE) / errors[0])
    found = np.array(deviations)
    assert abs(found.mean()) < 0.25
    assert 0.6 < found.std() < (1.6 if composition == "product" else 1.3)


def test_counts_of_normalised_vectors_need_norms():
    vectorizer = DistributedTreeVectorizer(n_components=8192, decay=0.2)
    vectors = vectorizer.transform([TREE])
    with pytest.raises(ParameterError, match="pass norms"):
        vectorizer.contains(vectors, FRAGMENTS)
    (found,) = vectorizer.decode(vectors, [TREE])
    counts, _ = vectorizer.contains(vectors, FRAGMENTS, [found.norm])
    plain = DistributedTreeVectorizer(n_components=8192, decay=0.2, normalize=False)
    expected, _ = plain.contains(plain.transform([TREE]), FRAGMENTS)
    np.testing.assert_allclose(counts, expected, atol=1e-4)


def test_wrong_input_is_refused():
    vectorizer = DistributedTreeVectorizer(n_components=256, normalize=False)
    vectors = vectorizer.transform([TREE])
    with pytest.raises(ParameterError, match="fragment 2 is a single node"):
        vectorizer.contains(vectors, ["(A b)", "(A)"])
    with pytest.raises(ParameterError, match="no effect"):
        vectorizer.contains(vectors, FRAGMENTS, [1.0])
    normalised = DistributedTreeVectorizer(n_components=256)
    with pytest.raises(ParameterError, match="1 numbers"):
        normalised.contains(vectors, FRAGMENTS, [1.0, 2.0])
    assert vectorizer.contains(vectors, Forest.from_trees([])).counts.shape == (1, 0)
