"""Vectors of partial trees: against enumeration, the exact kernel, and the definition."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimates import assert_same_large_vector, assert_unbiased, far, pooled_error
from strategies import corpus, examples, random_forest, trees
from treedot import Forest, PartialTreeKernel, Tree, read_trees
from treedot.errors import ParameterError, RangeError
from treedot.kernels.reference import partial_tree_kernel, partial_tree_values
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.dense import encoder as encoder_module
from treedot.vectors.dense import label_table, reference
from treedot.vectors.dense.compositions import ALGEBRAS

SMALL = ALGEBRAS["mixed"](512, 5)
SETTINGS = st.fixed_dictionaries(
    {
        "decay": st.sampled_from([0.0, 0.4, 1.0]),
        "mu": st.sampled_from([0.0, 0.3, 1.0]),
        "gaps": st.sampled_from(["toolkit", "span"]),
        "max_length": st.sampled_from([None, 1, 2, 5]),
    }
)
TOLERANCE = {"float32": 3e-6, "float64": 1e-13}  # of the largest element


def encode(forest, size=512, seed=5, n_jobs=None, normalize=False, dtype="float32", **partial):
    spec = DenseSpec(size, seed=seed, normalize=normalize, dtype=dtype, kernel="partial", **partial)
    return DenseEncoder(spec).encode(forest, n_jobs=n_jobs)


def by_definition(forest, algebra=SMALL, **partial):
    return np.array([reference.distributed_partial_tree(tree, algebra, **partial) for tree in forest])


@given(trees(max_leaves=5), trees(max_leaves=5), SETTINGS)
def test_the_kernel_is_the_dot_product_of_all_partial_trees_written_out(a, b, partial):
    first, second = (partial_tree_values(tree, **partial) for tree in (a, b))
    explicit = math.fsum(value * second.get(part, 0.0) for part, value in first.items())
    assert explicit == pytest.approx(partial_tree_kernel(a, b, **partial), rel=1e-12)


@given(trees(max_leaves=5), SETTINGS)
def test_the_recursion_is_the_weighted_sum_of_all_partial_trees(tree, partial):
    explicit = np.zeros(SMALL.size)
    for part, value in partial_tree_values(tree, **partial).items():
        explicit += value * reference.fragment_vector(part, SMALL)
    recursive = reference.distributed_partial_tree(tree, SMALL, **partial)
    assert np.abs(recursive - explicit).max() <= 1e-12 * max(np.abs(explicit).max(), 1e-30)


@pytest.mark.parametrize("name", ["product", "convolution"])
def test_compositions_that_fold_right_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} does not fold left"):
        reference.distributed_partial_tree(Tree.parse("(A b)"), ALGEBRAS[name](512), 0.4, 0.4)
    with pytest.raises(ParameterError, match=f"needs composition='mixed', not '{name}'"):
        DenseSpec(composition=name, kernel="partial")


@given(st.lists(trees(max_leaves=20), min_size=1, max_size=4), SETTINGS)
@settings(max_examples=examples(40))
def test_the_fast_encoder_is_the_reference(forest, partial):
    expected = by_definition(forest, **partial)
    for dtype, tolerance in TOLERANCE.items():
        found = encode(Forest.from_trees(forest), dtype=dtype, **partial)
        assert found.dtype == dtype
        assert np.abs(found - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-30)


@pytest.mark.large
@pytest.mark.parametrize("max_length", [None, 1, 3])
@pytest.mark.parametrize("gaps", ["toolkit", "span"])
@pytest.mark.parametrize("size", [256, 2048])
def test_the_fast_encoder_is_the_reference_on_larger_trees(size, gaps, max_length):
    forest = random_forest(1, 4, nodes=120)
    partial = {"decay": 0.4, "mu": 0.5, "gaps": gaps, "max_length": max_length}
    expected = by_definition(forest, ALGEBRAS["mixed"](size, 5), **partial)
    for dtype, tolerance in TOLERANCE.items():
        assert far(encode(forest, size, dtype=dtype, **partial), expected) < tolerance


@pytest.mark.parametrize("gaps", ["toolkit", "span"])
def test_a_single_node_is_its_label(gaps):
    vector = encode(read_trees(["(x)"]), decay=0.5, mu=0.25, gaps=gaps)[0]
    assert far(vector, 0.25 * SMALL.label_vectors(["x"])[0]) < 1e-6


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("decay", "mu"), [(0.0, 0.4), (0.4, 0.0), (0.0, 0.0)])
def test_where_nothing_counts_vectors_are_zero(decay, mu, normalize):
    assert not encode(random_forest(0, 3), decay=decay, mu=mu, normalize=normalize).any()


@pytest.mark.parametrize("decay", [1e-30, 1e-44])
def test_weights_that_float32_cannot_hold_do_not_spoil_normalised_vectors(decay):
    """What is left then are the labels."""
    forest = read_trees(["(A (B c) d)"])
    labels = SMALL.label_vectors(["A", "B", "c", "d"]).sum(axis=0)
    vector = encode(forest, decay=decay, mu=1e-30, normalize=True)[0]
    assert far(vector, labels / np.linalg.norm(labels)) < 1e-6


GIANT = Tree("n", [Tree("m", [Tree("a", ["x", "y"])] * 60)] * 8)
SHAPES = {
    "deep": Tree.parse("(n " * 400 + "x" + ")" * 400),
    "right branching": Tree.parse("(n x " * 300 + "y" + ")" * 300),
    "wide": Tree("n", ["x", "y"] * 150),
    "wide, of families": Tree("n", [Tree("m", ["x"])] * 200),
    "giants far apart": Tree("r", [GIANT, *["z"] * 150, GIANT, "z"]),  # between them B fades, and S does not
}


@pytest.mark.large
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("decay", "mu", "max_length"), [(0.5, 1.0, None), (1.0, 0.3, None), (0.5, 1.0, 2)])
def test_large_trees_are_the_reference(shape, decay, mu, max_length):
    partial = {"decay": decay, "mu": mu, "max_length": max_length}
    algebra = ALGEBRAS["mixed"](256, 5)
    (expected,) = by_definition([SHAPES[shape]], algebra, **partial)
    forest = Forest.from_trees([SHAPES[shape]])
    (whole,) = encode(forest, 256, dtype="float64", **partial)
    (short,) = encode(forest, 256, normalize=True, **partial)
    assert_same_large_vector(whole, short, expected)


@pytest.mark.large
def test_giant_trees_have_finite_normalised_vectors_and_refuse_raw_ones():
    deep, wide = "(n " * 20_000 + "x" + ")" * 20_000, "(n" + " x (m y)" * 10_000 + ")"
    forest = read_trees([deep, wide])
    vectors = encode(forest, 256, decay=1.0, mu=1.0, normalize=True)
    assert np.allclose((vectors.astype(float) ** 2).sum(axis=1), 1, atol=1e-5)
    again = encode(forest[::-1], 256, decay=1.0, mu=1.0, normalize=True, n_jobs=2)[::-1]
    assert vectors.tobytes() == again.tobytes()
    with pytest.raises(RangeError, match=r"tree 2 \(30001 nodes\).*normalize=True"):
        encode(forest, 256, decay=1.0, mu=1.0)


@pytest.mark.slow
@pytest.mark.large
@pytest.mark.parametrize("max_length", [None, 3])
def test_vectors_do_not_depend_on_threads_chunks_order_or_neighbours(max_length, monkeypatch):
    forest = random_forest(6, 30) + read_trees(["(A" + " b" * 40 + ")", "(A)"])
    spec = DenseSpec(512, kernel="partial", normalize=False, max_length=max_length)
    once = DenseEncoder(spec).encode(forest)
    for threads in (2, 3):
        assert DenseEncoder(spec).encode(forest, n_jobs=threads).tobytes() == once.tobytes()
    assert DenseEncoder(spec).encode(forest[::-1])[::-1].tobytes() == once.tobytes()
    alone = [DenseEncoder(spec).encode(forest[[i]]).tobytes() for i in range(len(forest))]
    assert b"".join(alone) == once.tobytes()
    monkeypatch.setattr(encoder_module, "PART_NODES", 50)
    monkeypatch.setattr(label_table, "TABLE_BYTES", 100_000)
    assert DenseEncoder(spec).encode(forest, n_jobs=2).tobytes() == once.tobytes()


FROZEN = read_trees(["(S (NP (DT the) (NN tree)) (VP (VBZ grows)))", "(A (B b) c (D (E e e) f) g)", "(x)"])
DIGESTS = {
    ("toolkit", None): "4f127fecb2c0c47b",
    ("span", None): "338d9802423f2fb1",
    ("toolkit", 2): "dc96f8292d360156",
}


@pytest.mark.parametrize(("gaps", "max_length"), DIGESTS)
def test_vectors_are_frozen_to_the_byte(gaps, max_length):
    partial = {"decay": 0.25, "mu": 0.25, "gaps": gaps, "max_length": max_length}
    found = [encode(FROZEN, 256, 11, normalize=normalize, **partial) for normalize in (False, True)]
    assert far(found[0], by_definition(FROZEN, ALGEBRAS["mixed"](256, 11), **partial)) < 1e-6
    digest = hashlib.sha256(b"".join(rows.tobytes() for rows in found)).hexdigest()[:16]
    assert digest == DIGESTS[gaps, max_length]


@pytest.mark.large
@pytest.mark.parametrize("max_length", [None, 2])
@pytest.mark.parametrize("gaps", ["toolkit", "span"])
def test_estimates_are_unbiased(gaps, max_length):
    forest = random_forest(1, 30)
    partial = {"decay": 0.6, "mu": 0.6, "gaps": gaps, "max_length": max_length}
    exact = PartialTreeKernel(**partial).gram(forest)
    vectors = (encode(forest, 2048, seed, **partial) for seed in range(40))
    assert_unbiased(exact, vectors, most=0.0035)  # a bias of one hundredth would show


def questions(column):
    file = "qc_train.tsv.gz" if column == "tree" else "qc_train_dep.tsv.gz"
    forest = read_trees(corpus(file), column=column)
    return forest[np.random.default_rng(0).choice(len(forest), 60, replace=False)]


@pytest.mark.large
@pytest.mark.parametrize("gaps", ["toolkit", "span"])
@pytest.mark.parametrize(
    "source",
    ["generated", *(pytest.param(column, marks=pytest.mark.corpus) for column in ("tree", "grct", "lct"))],
)
def test_errors_are_near_the_floor(source, gaps):
    forest = random_forest(0, 60) if source == "generated" else questions(source)
    partial = {"decay": 0.4, "mu": 0.4, "gaps": gaps}
    exact = PartialTreeKernel(**partial).gram(forest)
    assert pooled_error(exact, (encode(forest, 4096, seed, **partial) for seed in range(5)), 4096) <= 1.2


@pytest.mark.parametrize(
    ("partial", "complaint"),
    [
        ({"kernel": "partial", "mu": 1.5}, r"mu \(μ\) must be a number from 0 to 1"),
        ({"kernel": "partial", "gaps": "wide"}, "gaps must be one of 'toolkit', 'span'"),
        ({"kernel": "partial", "max_length": 0}, "max_length must be at least 1"),
        ({"kernel": "partial", "max_length": 65}, "at most 64 for vectors, not 65"),
        ({"kernel": "subtree"}, "kernel must be one of 'subset', 'partial'"),
        ({"mu": 0.3}, "mu has no effect with kernel='subset': use kernel='partial'"),
        ({"gaps": "span"}, "gaps has no effect"),
        ({"max_length": 3}, "max_length has no effect"),
    ],
)
def test_impossible_settings_are_refused(partial, complaint):
    with pytest.raises(ParameterError, match=complaint):
        DenseSpec(**partial)
