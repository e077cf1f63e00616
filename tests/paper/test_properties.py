"""Properties 2.1 to 2.6 (Definition 2), each with a bound that can fail."""

import numpy as np
import pytest
import scipy.linalg

from paper import properties
from treedot.errors import ParameterError
from treedot.vectors.dense.compositions import ALGEBRAS, MixedProduct, bent_signs

SIZE = 8192
NEAR_ZERO = 6 / np.sqrt(SIZE)


@pytest.fixture(params=ALGEBRAS)
def algebra(request):
    return ALGEBRAS[request.param](SIZE, 1)


def test_2_1_composition_does_not_commute_across_0_to_20_vectors(algebra):
    cosines = properties.commuted_cosines(algebra, 20)
    between = np.arange(21)
    # The fourth moment of a product of j Gaussians is 3^j, so compositions by ⊠ live in ever fewer
    # elements, and by as much a random direction comes nearer: its known drift.
    drift = 3.0 ** (between / 2) if algebra.name == "product" else 1.0
    assert (cosines <= NEAR_ZERO * drift).all()
    assert cosines.max() < 1 - 1e-6


def test_2_2_composition_does_not_associate(algebra):
    assert properties.reassociated_cosine(algebra) <= NEAR_ZERO


def test_2_3_composition_is_bilinear(algebra):
    assert properties.bilinearity_error(algebra) < 1e-14


def test_2_4_norms_are_kept(algebra):
    norms = properties.norms(algebra, 20, samples=20)
    if algebra.name == "mixed":  # signs stay signs in labels, and mixers are orthogonal
        assert np.abs(norms.mean - 1).max() < 1e-12
        assert norms.variance.max() < 1e-24
    elif algebra.name == "convolution":
        assert np.abs(norms.mean - 1).max() < 0.1
        assert norms.variance.max() < 0.05
    else:
        assert np.abs(norms.mean[:5] - 1).max() < 0.1
        assert 0.02 < norms.mean[-1] < 1  # the typical norm sinks, as in Fig. 2(a)


def test_2_5_a_vector_is_unlike_compositions_of_others(algebra):
    similar = properties.similarities(algebra, 20, samples=20)
    assert np.abs(similar.mean).max() < 0.01  # "below 1%"
    assert similar.variance.max() < (60 if algebra.name == "product" else 4) / SIZE


@pytest.mark.parametrize("last", [False, True])
def test_2_6_one_changed_vector_makes_compositions_unlike(algebra, last):
    changed = properties.one_changed(algebra, 20, samples=20, last=last)
    if algebra.name == "product":
        assert np.abs(changed.mean[:5]).max() < 0.1
        assert changed.variance[0] * SIZE < 20  # and grows from there, as in Fig. 2(b)
    else:
        assert np.abs(changed.mean).max() < 3 * np.sqrt(40 / SIZE / 20)
        assert changed.variance.max() < 40 / SIZE


def test_folds_put_the_brackets_where_they_belong(algebra):
    a, b, c = properties.basic_vectors(algebra, "fold", 3)
    compose = algebra.compose
    expected = compose(compose(a, b), c) if algebra.folds_left else compose(a, compose(b, c))
    assert np.array_equal(algebra.fold([a, b, c]), expected)
    assert np.array_equal(algebra.fold([a]), a)


def test_mixers_are_orthogonal_and_keep_label_signs():
    algebra = MixedProduct(1024, 5)
    texts = ["a", "b", "c"]
    signs = algebra.label_vectors(texts) * 32
    assert (np.abs(signs) == 1).all()
    for mixer in (algebra.m1, algebra.m2):
        matrix = mixer(np.eye(1024))
        assert np.allclose(matrix @ matrix.T, np.eye(1024), atol=1e-12)
        image = mixer(signs)
        assert (np.abs(image) == 1).all()
        assert ((image < 0) == algebra.mixed_labels(texts, mixer)).all()


def test_the_label_columns_are_the_bent_functions_of_four_variables():
    signs, image = bent_signs()
    assert len(signs) == 896
    vectors = np.where(signs, -1, 1)
    assert (np.where(image, -4, 4) == vectors @ scipy.linalg.hadamard(16)).all()
    assert (vectors.sum(axis=0) == 0).all()  # every element is + as often as -,
    assert (vectors.T @ vectors == 896 * np.eye(16)).all()  # and no two elements are correlated


@pytest.mark.parametrize(
    ("name", "size"), [("mixed", 0), ("mixed", 100), ("product", 0), ("convolution", 100), ("convolution", 1)]
)
def test_impossible_sizes_are_refused(name, size):
    with pytest.raises(ParameterError, match="n_components"):
        ALGEBRAS[name](size)
