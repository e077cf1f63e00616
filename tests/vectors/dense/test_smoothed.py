"""Vectors of partial trees of similar words: against the definition and the exact kernel."""

import hashlib

import numpy as np
import pytest
from benchmarks.smoothed_vectors import UnclippedKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from estimates import assert_same_large_vector, assert_unbiased, far, pooled_error
from strategies import corpus, examples, random_forest, trees
from treedot import Forest, Tree, read_trees
from treedot.errors import ParameterError, RangeError, SpecMismatchError
from treedot.kernels import WordVectors
from treedot.kernels.reference import partial_tree_kernel
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.dense import encoder as encoder_module
from treedot.vectors.dense import label_table, reference
from treedot.vectors.dense.compositions import MixedProduct
from treedot.vectors.dense.word_labels import WordLabels

WORDS = WordVectors(
    {"A": [1, 0, 0], "B": [3, 4, 0], "C": [-1, 0.2, 0.1], "a": [1, 1, 1], "b::v": [1, 0.9, 0]}
)
LABELS = st.sampled_from(["A::n", "B::n", "C::n", "A::v", "b::v", "x::n", "S"])
SETTINGS = st.fixed_dictionaries(
    {
        "decay": st.sampled_from([0.0, 0.4, 1.0]),
        "mu": st.sampled_from([0.0, 0.3, 1.0]),
        "gaps": st.sampled_from(["toolkit", "span"]),
        "max_length": st.sampled_from([None, 1, 2, 5]),
    }
)
TOLERANCE = {"float32": 3e-6, "float64": 1e-13}  # of the largest element


def spec_of(size=512, seed=5, words=WORDS, normalize=False, **fields):
    similarity = words.fingerprint
    return DenseSpec(size, seed=seed, normalize=normalize, kernel="smoothed", similarity=similarity, **fields)


def encode(forest, size=512, seed=5, words=WORDS, n_jobs=None, **fields):
    return DenseEncoder(spec_of(size, seed, words, **fields), words).encode(forest, n_jobs=n_jobs)


def by_definition(forest, size=512, seed=5, words=WORDS, **partial):
    algebra = MixedProduct(size, seed)
    labels = WordLabels(algebra, words)
    return np.array(
        [reference.distributed_partial_tree(tree, algebra, **partial, labels=labels) for tree in forest]
    )


def with_words(forest, dimensions=10):
    """Return trees whose labels are words of two parts of speech, and vectors of two thirds of the words."""
    labels = [f"{text}::{'nv'[k % 2]}" for k, text in enumerate(forest.labels)]
    return Forest(forest.label, forest.arity, forest.offsets, labels), random_words(forest.labels, dimensions)


def random_words(texts, dimensions=10):
    """Return vectors of words with cosines of either sign, of about a third."""
    rows = np.random.default_rng(0).normal(size=(len(texts), dimensions))
    return WordVectors({text: row for k, (text, row) in enumerate(zip(texts, rows, strict=True)) if k % 3})


@pytest.mark.slow
@given(st.lists(trees(LABELS, max_leaves=20), min_size=1, max_size=4), SETTINGS)
@settings(max_examples=examples(40))
def test_the_fast_encoder_is_the_definition(chosen, partial):
    expected = by_definition(chosen, **partial)
    for dtype, tolerance in TOLERANCE.items():
        found = encode(Forest.from_trees(chosen), dtype=dtype, **partial)
        assert found.dtype == dtype
        assert np.abs(found - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-30)


@pytest.mark.large
@pytest.mark.parametrize("max_length", [None, 3])
@pytest.mark.parametrize("size", [256, 2048])
def test_the_fast_encoder_is_the_definition_on_larger_trees(size, max_length):
    forest, words = with_words(random_forest(1, 4, nodes=120))
    partial = {"decay": 0.4, "mu": 0.5, "max_length": max_length}
    expected = by_definition(forest, size, words=words, **partial)
    for dtype, tolerance in TOLERANCE.items():
        assert far(encode(forest, size, words=words, dtype=dtype, **partial), expected) < tolerance


@given(st.lists(trees(max_leaves=12), min_size=1, max_size=3), SETTINGS)
@settings(max_examples=examples(20))
def test_without_words_vectors_are_those_of_partial_trees_to_the_byte(chosen, partial):
    forest = Forest.from_trees(chosen)
    plain = DenseEncoder(DenseSpec(512, seed=5, normalize=False, kernel="partial", **partial)).encode(forest)
    assert encode(forest, **partial).tobytes() == plain.tobytes()


def test_a_single_word_is_its_label():
    vectors = encode(read_trees(["(A::n)", "(B::n)", "(C::n)"]), decay=0.5, mu=0.25, dtype="float64")
    labels = ["A::n", "B::n", "C::n"]
    assert np.allclose(vectors @ vectors.T, 0.25**2 * WORDS.cosines(labels), atol=1e-14)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("decay", "mu"), [(0.0, 0.4), (0.4, 0.0)])
def test_where_nothing_counts_vectors_are_zero(decay, mu, normalize):
    forest, words = with_words(random_forest(0, 3))
    assert not encode(forest, words=words, decay=decay, mu=mu, normalize=normalize).any()


SHAPES = {
    "deep": Tree.parse("(A::n " * 3000 + "B::n" + ")" * 3000),
    "right branching": Tree.parse("(A::n S " * 300 + "C::n" + ")" * 300),
    "wide": Tree("S", ["A::n", "B::n"] * 1000),
    "wide, of families": Tree("B::n", [Tree("A::n", ["b::v"])] * 200),
}


@pytest.mark.slow
@pytest.mark.large
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("decay", "mu", "max_length"), [(0.4, 0.5, None), (0.5, 0.6, 2)])
def test_large_trees_are_the_definition(shape, decay, mu, max_length):
    partial = {"decay": decay, "mu": mu, "max_length": max_length}
    (expected,) = by_definition([SHAPES[shape]], 256, **partial)
    forest = Forest.from_trees([SHAPES[shape]])
    (whole,) = encode(forest, 256, dtype="float64", **partial)
    (short,) = encode(forest, 256, normalize=True, **partial)
    assert_same_large_vector(whole, short, expected)


@pytest.mark.large
def test_giant_trees_have_finite_normalised_vectors_and_refuse_raw_ones():
    deep, wide = "(A::n " * 3000 + "B::n" + ")" * 3000, "(S" + " A::n (B::n C::n)" * 2000 + ")"
    forest = read_trees([deep, wide])
    vectors = encode(forest, 256, decay=1.0, mu=1.0, normalize=True)
    assert np.allclose((vectors.astype(float) ** 2).sum(axis=1), 1, atol=1e-5)
    with pytest.raises(RangeError, match=r"tree 2 \(6001 nodes\).*normalize=True"):
        encode(forest, 256, decay=1.0, mu=1.0)


@pytest.mark.large
def test_vectors_do_not_depend_on_threads_chunks_order_or_neighbours(monkeypatch):
    forest, words = with_words(random_forest(6, 30))
    spec = spec_of(words=words)
    once = DenseEncoder(spec, words).encode(forest)
    assert DenseEncoder(spec, words).encode(forest, n_jobs=3).tobytes() == once.tobytes()
    assert DenseEncoder(spec, words).encode(forest[::-1])[::-1].tobytes() == once.tobytes()
    alone = [DenseEncoder(spec, words).encode(forest[[i]]).tobytes() for i in range(len(forest))]
    assert b"".join(alone) == once.tobytes()
    monkeypatch.setattr(encoder_module, "PART_NODES", 50)
    monkeypatch.setattr(label_table, "TABLE_BYTES", 100_000)
    assert DenseEncoder(spec, words).encode(forest, n_jobs=2).tobytes() == once.tobytes()


def test_vectors_are_frozen_to_the_byte():
    forest = read_trees(
        ["(B::n (A::n x::n) (b::v C::n))", "(S (S A::v) C::n (S (A::n B::n B::n) S) S)", "(a::n)"]
    )
    partial = {"decay": 0.25, "mu": 0.25}
    found = [encode(forest, 256, 11, normalize=normalize, **partial) for normalize in (False, True)]
    assert far(found[0], by_definition(forest, 256, 11, **partial)) < 1e-6
    digest = hashlib.sha256(b"".join(rows.tobytes() for rows in found)).hexdigest()[:16]
    assert digest == "0221a26efb43525c"


@given(st.lists(trees(LABELS, max_leaves=6), min_size=1, max_size=3), SETTINGS)
@settings(max_examples=examples(40))
def test_the_kernel_that_they_estimate_is_its_reference(chosen, partial):
    expected = np.array(
        [[partial_tree_kernel(a, b, similarity=WORDS, **partial) for b in chosen] for a in chosen]
    )
    own = np.sqrt(np.diagonal(expected))
    found = UnclippedKernel(WORDS, **partial).gram(chosen)
    assert (np.abs(found - expected) <= 1e-12 * np.outer(own, own)).all()


@pytest.mark.slow
@pytest.mark.large
@pytest.mark.parametrize("max_length", [None, 2])
@pytest.mark.parametrize("gaps", ["toolkit", "span"])
def test_estimates_are_unbiased(gaps, max_length):
    forest, words = with_words(random_forest(1, 30))
    partial = {"decay": 0.6, "mu": 0.6, "gaps": gaps, "max_length": max_length}
    exact = UnclippedKernel(words, **partial).gram(forest)
    vectors = (encode(forest, 2048, seed, words, **partial) for seed in range(40))
    assert_unbiased(exact, vectors, most=0.0035)  # a bias of one hundredth would show


@pytest.mark.large
@pytest.mark.parametrize("gaps", ["toolkit", "span"])
@pytest.mark.parametrize(
    "source", ["generated", *(pytest.param(column, marks=pytest.mark.corpus) for column in ("grct", "lct"))]
)
def test_errors_are_near_the_floor(source, gaps):
    if source == "generated":
        forest, words = with_words(random_forest(0, 60))
    else:
        forest = read_trees(corpus("qc_train_dep.tsv.gz"), column=source)
        forest = forest[np.random.default_rng(0).choice(len(forest), 60, replace=False)]
        texts = {text.removeprefix("LEX##").partition("::")[0] for text in forest.labels if "::" in text}
        words = random_words(sorted(texts))
    partial = {"decay": 0.4, "mu": 0.4, "gaps": gaps}
    exact = UnclippedKernel(words, **partial).gram(forest)
    vectors = (encode(forest, 4096, seed, words, **partial) for seed in range(5))
    assert pooled_error(exact, vectors, 4096) <= 1.2


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"kernel": "smoothed"}, "kernel='smoothed' needs word vectors as similarity, .* not None"),
        ({"kernel": "smoothed", "similarity": WORDS}, "in a spec their fingerprint"),
        ({"kernel": "partial", "similarity": "x"}, "similarity has no effect with kernel='partial'"),
        ({"similarity": "x"}, "similarity has no effect with kernel='subset'"),
        (
            {"kernel": "smoothed", "similarity": "x", "composition": "product"},
            "kernel='smoothed' needs composition='mixed', not 'product'",
        ),
    ],
)
def test_impossible_settings_are_refused(fields, complaint):
    with pytest.raises(ParameterError, match=complaint):
        DenseSpec(**fields)


def test_an_encoder_needs_the_word_vectors_that_its_spec_names():
    other = WordVectors({"A": [1, 0]})
    with pytest.raises(SpecMismatchError, match=f"word vectors of fingerprint {WORDS.fingerprint}"):
        DenseEncoder(spec_of())
    with pytest.raises(SpecMismatchError, match=r"not WordVectors\(1 words, 2 dimensions\)"):
        DenseEncoder(spec_of(), other)
    for foreign in ({"A": [1, 0]}, WORDS.fingerprint):
        with pytest.raises(SpecMismatchError, match="word vectors of fingerprint"):
            DenseEncoder(spec_of(), foreign)
    for needless in (other, {"A": [1, 0]}):
        with pytest.raises(SpecMismatchError, match="similarity has no effect with kernel='partial'"):
            DenseEncoder(DenseSpec(kernel="partial"), needless)
    wide = WordVectors({"A": np.ones(300)})
    with pytest.raises(ParameterError, match="n_components must be at least 300"):
        DenseEncoder(spec_of(256, words=wide), wide)
