import hashlib

import numpy as np
import pytest
from scipy import stats

from treedot.vectors.dense import labels
from treedot.vectors.dense.compositions import ALGEBRAS
from treedot.vectors.dense.gaussians import label_vectors
from treedot.vectors.dense.mixed import MixedEncoder


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def test_label_vectors_are_frozen_to_the_bit():
    texts = ["NP", "", "ä漢", "a b"]
    assert digest(labels.words(labels.keys(7, texts, "label"), 100)) == "3f63a8094a131732"
    assert digest(labels.gaussian_units(7, texts, 1000)) == "3909015907a15dbf"
    assert digest(labels.permutation(7, "p1", 1000)) == "2e27cdbc30824f07"
    assert digest(ALGEBRAS["mixed"](1024, 7).label_vectors(texts)) == "e6be8c55f1b4fb78"


def test_normal_quantiles_match_an_independent_implementation():
    rng = np.random.default_rng(0)
    k = np.concatenate([np.arange(100), rng.integers(0, 2**32, 100_000), 2**32 - 1 - np.arange(100)])
    expected = stats.norm.ppf((k + 0.5) / 2**32)
    assert np.allclose(labels._normal_quantile(k.astype(np.uint32)), expected, rtol=1e-14, atol=0)


def test_gaussian_labels_are_normal_and_nearly_orthonormal():
    units = labels.gaussian_units(0, [str(k) for k in range(50)], 4096)
    assert np.abs((units**2).sum(axis=1) - 1).max() < 1e-14
    assert stats.kstest(units.ravel() * 64, "norm").pvalue > 1e-3
    assert np.abs(units @ units.T - np.eye(50)).max() < 6 / 64


@pytest.mark.parametrize("name", ALGEBRAS)
def test_a_vector_depends_only_on_seed_and_text(name):
    algebra = ALGEBRAS[name](256, 3)
    together = algebra.label_vectors(["a", "b", "c"])
    assert (algebra.label_vectors(["c"])[0] == together[2]).all()
    assert (ALGEBRAS[name](256, 3).label_vectors(["b"])[0] == together[1]).all()
    assert abs(ALGEBRAS[name](256, 4).label_vectors(["b"])[0] @ together[1]) < 6 / 16
    assert np.abs(together @ together.T - np.eye(3)).max() < 6 / 16


def test_seeds_may_be_any_integer():
    keys = {labels.keys(seed, ["x"], "label").tobytes() for seed in (0, 1, -1, 2**64, 2**100)}
    assert len(keys) == 5


@pytest.mark.parametrize("size", [1, 1001, 4096])
def test_compiled_gaussians_are_the_same_bits(size):
    algebra = ALGEBRAS["product"](size, 9)
    texts = [f"label {k}" for k in range(100)]
    compiled = np.concatenate([vectors for _, vectors in label_vectors(algebra, texts)])
    assert compiled.tobytes() == (algebra.label_vectors(texts) * np.sqrt(size)).tobytes()


@pytest.mark.parametrize("size", [256, 2048])
def test_compiled_sign_labels_are_the_mixed_label_vectors(size):
    algebra = ALGEBRAS["mixed"](size, 9)
    texts = [f"label {k}" for k in range(300)]
    table = MixedEncoder(algebra).label_table(texts)
    vectors = algebra.label_vectors(texts)
    for words, mixer in ((table.head, algebra.m1), (table.child, algebra.m2)):
        negative = np.unpackbits(words.astype("<u2").view(np.uint8), axis=1, bitorder="little").astype(bool)
        assert ((mixer(vectors) < 0) == negative ^ algebra.m1.negative).all()


def test_permutations_are_permutations():
    order = labels.permutation(0, "p", 1001)
    assert (np.sort(order) == np.arange(1001)).all()
    assert (order != labels.permutation(0, "q", 1001)).any()
