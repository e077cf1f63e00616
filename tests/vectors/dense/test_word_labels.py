"""Labels whose vectors are as similar as words are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treedot.errors import ParameterError
from treedot.kernels import WordVectors
from treedot.vectors.dense.compositions import MixedProduct
from treedot.vectors.dense.word_labels import Isometry, WordLabels

VECTORS = dict(zip([f"w{k}" for k in range(40)], np.random.default_rng(0).normal(size=(40, 30)), strict=True))
WORDS = WordVectors(VECTORS | {"of": np.zeros(30)})


@given(st.integers(1, 256), st.integers(0, 3), st.sampled_from([256, 512]))
def test_isometries_keep_all_dot_products(dimensions, seed, size):
    image = Isometry(dimensions, size, seed, "a")(np.eye(dimensions))
    assert np.abs(image @ image.T - np.eye(dimensions)).max() < 1e-14


@pytest.mark.slow
def test_isometries_spread_every_vector_over_all_elements():
    """The fourth moment of normal variables is 3; of a single element that holds everything it is d."""
    single, spread = np.eye(250), np.random.default_rng(0).normal(size=(250, 250))
    for vectors, most in ((single, 5.0), (spread, 3.1)):
        image = Isometry(250, 8192, 0, "a")(vectors)
        assert ((image**4).mean(axis=1) / (image**2).mean(axis=1) ** 2).mean() < most


def test_words_of_one_part_of_speech_have_their_cosines():
    labels = [f"w{k}::n" for k in range(40)]
    vectors = WordLabels(MixedProduct(1024, 7), WORDS)(labels)
    assert np.abs(vectors @ vectors.T - WORDS.cosines(labels)).max() < 1e-14


def test_other_labels_are_orthogonal_but_for_noise():
    """Words of two parts of speech, labels that are no words, and words without a direction."""
    texts = [*(f"w{k}::n" for k in range(40)), *(f"w{k}::v" for k in range(40)), "S", "x::n", "w0", "of::n"]
    words = np.array([text.startswith("w") and "::" in text for text in texts])
    same = words[:, None] & words & np.equal.outer([t[-1] for t in texts], [t[-1] for t in texts])
    products = []
    for seed in range(20):
        vectors = WordLabels(MixedProduct(1024, seed), WORDS)(texts)
        assert np.allclose((vectors**2).sum(axis=1), 1)
        products.append((vectors @ vectors.T)[~same & ~np.eye(len(texts), dtype=bool)])
    noise = np.array(products) * np.sqrt(1024)
    assert np.sqrt((noise**2).mean()) == pytest.approx(1, abs=0.05)
    assert abs(noise.mean()) < 0.05


def test_labels_that_are_not_words_are_those_of_the_algebra():
    algebra = MixedProduct(256, 3)
    texts = ["S", "w0", "x::n", "of::n", "w1::n"]
    found = WordLabels(algebra, WORDS)(texts)
    assert (found[:4] == algebra.label_vectors(texts)[:4]).all()
    assert WordLabels(algebra, WORDS)([]).shape == (0, 256)


def test_a_label_does_not_depend_on_others_nor_on_other_words():
    algebra, texts = MixedProduct(256, 3), ["S", "w0::n", "w1::v", "w2::n"]
    whole = WordLabels(algebra, WORDS)(texts)
    fewer = WordVectors({name: VECTORS[name] for name in ("w2", "w1", "w0")})
    for k, text in enumerate(texts):
        assert WordLabels(algebra, fewer)([text]).tobytes() == whole[[k]].tobytes()


def test_more_dimensions_of_words_than_of_vectors_are_refused():
    words = WordVectors({"a": np.ones(300)})
    with pytest.raises(ParameterError, match=r"n_components must be at least 300, .* not 256"):
        WordLabels(MixedProduct(256), words)
