"""Rows of fragments against their definition, with and without what lies beyond the budget."""

import hashlib
import math
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper.corpora import Corpora
from paper.table2 import chosen_trees
from scipy.sparse import vstack

from strategies import corpus, examples, random_forest, trees
from treedot import Forest, SubsetTreeKernel, Tree, dot_products, read_trees
from treedot.errors import LimitError, ParameterError, RangeError, SpecMismatchError
from treedot.kernels import BoundedTreeKernel, count_fragments, list_fragments
from treedot.kernels.fragments.cost import fragment_cost
from treedot.kernels.reference import bounded_fragment_values
from treedot.vectors import SparseEncoder, SparseSpec
from treedot.vectors.fidelity import different_pairs, floor, spearman
from treedot.vectors.sparse.bounded import fragment_key
from treedot.vectors.sparse.reference import block
from treedot.vectors.sparse.rows import LearnedColumns

WIDE = 2**30
DAMPINGS = {"linear": float, "sqrt": math.sqrt, "log1p": math.log1p}
DECAYS = (0.2, 0.4, 0.6, 0.8, 1.0)

# One small alphabet for inner nodes and leaves: a label may be both, and productions repeat.
small_trees = trees(labels=st.sampled_from("ab"), max_leaves=6)


def make_encoder(decay=0.4, budget=4, *, n_features=WIDE, damping="linear", normalize=False, **more):
    return SparseEncoder(SparseSpec(n_features, decay, budget, damping=damping, normalize=normalize, **more))


def alike(seed, count):
    """Return trees of few labels, which share large fragments."""
    rng = np.random.default_rng(seed)

    def grow(depth):
        label = "AB"[rng.integers(2)]
        if depth == 0 or rng.random() < 0.15:
            return Tree(label)
        return Tree(label, [grow(depth - 1) for _ in range(1 + rng.integers(2))])

    return Forest.from_trees([Tree("S", [grow(5), grow(4)]) for _ in range(count)])


def as_dict(row):
    return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))


def by_definition(tree, encoder):
    """Return the sum of all fragments' rows, each times its coordinate."""
    total = {}
    for fragment, weight in list_fragments(tree, encoder.spec.decay).items():
        for column, value in as_dict(encoder.encode_fragment(fragment)).items():
            total[column] = total.get(column, 0.0) + weight * value
    return total


def agrees(found, wanted, tolerance):
    largest = max(map(abs, wanted.values()), default=1.0)
    return all(
        abs(found.get(column, 0.0) - wanted.get(column, 0.0)) <= tolerance * largest
        for column in found.keys() | wanted.keys()
    )


@given(
    trees(labels=st.sampled_from("abc"), max_leaves=12),
    st.sampled_from([0, 1, 2, 4, 7]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from(list(DAMPINGS)),
)
def test_a_row_holds_every_bounded_fragment(tree, budget, decay, damping):
    encoder = make_encoder(decay, budget, damping=damping, dtype="float64")
    wanted = {}
    for fragment, value in bounded_fragment_values(tree, budget, decay, DAMPINGS[damping]).items():
        assert fragment_cost(fragment) <= budget
        key = fragment_key(fragment, 0)
        wanted[key >> 34] = -value if key & 1 else value
    assert as_dict(encoder.encode(Forest.from_trees([tree]))) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.large
def test_products_of_rows_are_the_kernel_of_bounded_fragments():
    forest = random_forest(3, 60, 40)
    for budget in (0, 2, 4, 8):
        rows = make_encoder(0.4, budget, dtype="float64").encode(forest)
        wanted = BoundedTreeKernel(0.4, budget=budget).gram(forest)
        assert dot_products(rows) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@settings(max_examples=examples(40))
@given(
    small_trees.filter(lambda tree: count_fragments(tree) <= 150),
    st.sampled_from([0, 1, 2, 3, 5, 8]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(0, 3),
    st.sampled_from(["dense", "blocks"]),
)
def test_a_row_with_a_rest_is_the_sum_of_its_fragments_rows(tree, budget, decay, seed, rest):
    encoder = make_encoder(decay, budget, seed=seed, rest=rest, rest_size=256, dtype="float64")
    found = as_dict(encoder.encode(Forest.from_trees([tree])))
    assert agrees(found, by_definition(tree, encoder), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rest", ["dense", "blocks"])
def test_rests_are_the_sum_of_their_fragments_where_nodes_are_wide(rest):
    wide = Tree.parse("(A (B b) (B c) (B b) (C (D d) (E e)) (B (A a)) (D (B b)))")
    for budget in (2, 4, 6, 9):
        encoder = make_encoder(0.6, budget, rest=rest, rest_size=512, dtype="float64")
        found = as_dict(encoder.encode(Forest.from_trees([wide])))
        assert agrees(found, by_definition(wide, encoder), 1e-9)


@pytest.mark.large
@pytest.mark.parametrize("rest", ["dense", "blocks"])
@pytest.mark.parametrize("decay", DECAYS)
def test_products_are_unbiased_before_rescaling_and_little_off(rest, decay):
    forest = alike(5, 16)
    exact = SubsetTreeKernel(decay).gram(forest)
    own = np.sqrt(np.diagonal(exact))
    pairs = different_pairs(len(forest))
    errors = []
    for seed in range(40):
        encoder = make_encoder(decay, 4, seed=seed, rest=rest, rest_size=1024, dtype="float64")
        errors.append(((dot_products(encoder.encode(forest)) - exact) / np.outer(own, own))[pairs])
    means = np.mean(errors, axis=1)
    assert abs(means.mean()) <= 3 * means.std(ddof=1) / math.sqrt(len(means))
    assert 1e-6 < np.std(errors) < (0.06 if rest == "dense" else 0.5)


@pytest.mark.slow
@pytest.mark.large
def test_no_two_small_fragments_share_a_dense_vector():
    encoder = make_encoder(1.0, 0, rest="dense", rest_size=2048, dtype="float64")
    found = set()
    for tree in random_forest(2, 10, 12):
        found |= {f for f in list_fragments(tree) if 0 < fragment_cost(f) < 12}
    found = sorted(found, key=str)[:400]
    cosines = dot_products(vstack([encoder.encode_fragment(fragment) for fragment in found]))
    assert np.abs(cosines - np.diag(np.diagonal(cosines))).max() < 0.3
    assert np.diagonal(cosines).min() > 0.3


@pytest.mark.large
def test_bounded_fragments_hardly_matter_beside_a_huge_rest():
    forest = random_forest(4, 4, 900)
    logs = SubsetTreeKernel(1.0).log_norms(forest)
    assert logs.min() > 100  # far beyond float32
    rows = [
        make_encoder(1.0, budget, rest="dense", rest_size=512, normalize=True).encode(forest, logs)
        for budget in (0, 4)
    ]
    assert abs(rows[0] - rows[1]).max() < 1e-6
    assert np.diagonal(dot_products(rows[0])) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.large
def test_exact_lengths_make_a_dense_rest_as_long_as_it_should_be():
    forest = random_forest(7, 30, 50)
    for normalize in (False, True):
        kernel = SubsetTreeKernel(0.4, normalize=normalize)
        encoder = make_encoder(rest="dense", rest_size=1024, normalize=normalize)
        rows = encoder.encode(forest, kernel.log_norms(forest))
        assert np.diagonal(dot_products(rows)) == pytest.approx(kernel.diagonal(forest), rel=1e-5)


def test_a_tree_with_nothing_beyond_the_budget_has_no_rest():
    forest = read_trees(["(A (B b) (C c))", "(A b)", "(A)"])
    rows = make_encoder(rest="dense").encode(forest, SubsetTreeKernel(0.4).log_norms(forest))
    assert np.diff(rows.indptr).tolist() == [6, 1, 0]


@settings(max_examples=examples(25))
@given(small_trees.filter(lambda tree: count_fragments(tree) <= 60))
def test_blocks_hold_phases_and_are_told_apart_by_prefixes_beyond_the_budget(tree):
    for fragment in list_fragments(tree):
        if fragment_cost(fragment) > 2:
            key, vector = block(fragment, 2, 0)
            assert np.abs(vector) == pytest.approx(1.0, abs=1e-9)
            assert (key == fragment_key(fragment, 0)) == np.allclose(vector, 1.0)


def test_expanded_children_are_read_from_the_last_to_the_first():
    both = Tree.parse("(S (A x) (B (C y) D))")
    last = Tree.parse("(S A (B C D))")
    assert block(both, 1, 0).key == fragment_key(last, 0)


@pytest.mark.large
def test_collisions_add_noise_but_no_bias():
    forest = alike(6, 12)
    exact = BoundedTreeKernel(0.4).gram(forest)
    pairs = different_pairs(len(forest))
    errors = []
    for seed in range(200):
        rows = make_encoder(seed=seed, n_features=256).encode(forest)
        errors.append((dot_products(rows) - exact)[pairs])
    means = np.mean(errors, axis=1)
    assert abs(means.mean()) <= 3 * means.std(ddof=1) / math.sqrt(len(means))
    own = np.sqrt(np.diagonal(exact))
    noise = np.sqrt(np.mean((np.array(errors) / np.outer(own, own)[pairs]) ** 2))
    assert 0.01 < noise < 2 / math.sqrt(256)


@pytest.mark.slow
@pytest.mark.large
@pytest.mark.parametrize("rest", [None, "dense", "blocks"])
def test_rows_do_not_depend_on_threads_batches_or_neighbours(rest):
    forest = random_forest(1, 1200, 25)
    encoder = make_encoder(n_features=2**20, rest=rest, rest_size=256, normalize=True)
    whole = encoder.encode(forest, n_jobs=1)
    for threads in (2, 3, 7):
        many = encoder.encode(forest, n_jobs=threads)
        for part in ("data", "indices", "indptr"):
            assert getattr(many, part).tobytes() == getattr(whole, part).tobytes()
    for i in (0, 511, 512, 1199):
        alone = encoder.encode(forest[[i]])
        assert (whole[i].data.tobytes(), whole[i].indices.tobytes()) == (
            alone.data.tobytes(),
            alone.indices.tobytes(),
        )


@pytest.mark.parametrize("rest", [None, "dense", "blocks"])
def test_columns_are_sorted_and_distinct(rest):
    rows = make_encoder(n_features=64, rest=rest, rest_size=256).encode(random_forest(1, 50, 25))
    for first, last in pairwise(rows.indptr):
        assert (np.diff(rows.indices[first:last]) > 0).all()
    assert rows.has_canonical_format


FROZEN = read_trees(
    ["(S (NP (DT the) (NN tree)) (VP (VBZ grows) (ADVP (RB slowly))))", "(a (a (a b) a) (b (a (b a))))"]
)


def digest_of(rows, values):
    parts = (rows.indptr, rows.indices, values)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


@pytest.mark.parametrize(
    ("rest", "digest"),
    [(None, "46e935486c7fbf60"), ("dense", "c5faaf56ab80658a"), ("blocks", "3b4bf78935ed3cc7")],
)
def test_rows_are_frozen(rest, digest):
    rows = make_encoder(n_features=2**20, seed=7, rest=rest, rest_size=256).encode(FROZEN)
    assert digest_of(rows, np.round(rows.data.astype(float), 4) + 0.0) == digest


# Powers of λ = 1/4 are exact, and square roots, sums, products and quotients are rounded alike everywhere.
EXACT = {"decay": 0.25, "dtype": "float64"}
# Other powers, logarithms and exponentials may differ in the last bit of a float64 from one machine to the
# next: float32, to which they are rounded, has 29 bits fewer, so that this hardly ever shows.
ROUNDED = {"decay": 0.4, "dtype": "float32"}


@pytest.mark.parametrize(
    ("settings", "digest"),
    [
        ({**EXACT, "normalize": False}, "3b8de232bb5c5130"),
        ({**EXACT, "normalize": True}, "97bd574965f942bc"),
        ({**EXACT, "damping": "sqrt", "normalize": True}, "ed84b2e95c5e0065"),
        ({**ROUNDED, "damping": "sqrt", "normalize": True}, "d640171b2601202b"),
        ({**ROUNDED, "damping": "log1p", "normalize": True}, "dff8005603f33a03"),
        ({**ROUNDED, "rest": "dense", "normalize": False}, "a3ada25c16e1d769"),
        ({**ROUNDED, "rest": "dense", "normalize": True}, "5b7ed4bf8d8121b7"),
        ({**ROUNDED, "rest": "blocks", "normalize": False}, "0898b7d411cc96c6"),
        ({**ROUNDED, "rest": "blocks", "normalize": True}, "7d073e537eb62ec5"),
    ],
)
def test_rows_are_frozen_to_the_byte(settings, digest):
    rows = make_encoder(n_features=2**20, seed=7, rest_size=256, **settings).encode(FROZEN)
    assert digest_of(rows, rows.data) == digest


@pytest.mark.parametrize(("n_features", "digest"), [(2**20, "45623952b6157a32"), (None, "697e4ee8f2f53962")])
def test_weighted_rows_are_frozen_to_the_byte(n_features, digest):
    spec = SparseSpec(n_features, seed=7, **EXACT)
    found = make_encoder(seed=7).bounded_fragments(FROZEN)
    key = np.unique(found.key >> np.uint64(spec.shift) << np.uint64(spec.shift))
    learned = LearnedColumns.make(key[::2], 1.0 / np.arange(1, key[::2].size + 1), other=3.0)
    rows = SparseEncoder(spec, learned).encode(FROZEN)
    assert digest_of(rows, rows.data) == digest


@pytest.mark.large
@pytest.mark.parametrize("rest", [None, "dense", "blocks"])
def test_normalised_rows_have_length_1_whatever_the_size_of_the_tree(rest):
    large = ["(A" + " (B x)" * 20_000 + ")", "(A " * 2000 + "b" + ")" * 2000, "(A (B c))"]
    forest = read_trees(large)
    rows = make_encoder(0.99, rest=rest, rest_size=256, normalize=True).encode(forest)
    assert np.diagonal(dot_products(rows)) == pytest.approx(1.0, rel=1e-5)
    if rest is not None:
        with pytest.raises(
            RangeError, match=r"tree 1 \(40001 nodes\) is too large for float32 .*: use normal"
        ):
            make_encoder(0.99, rest=rest, rest_size=256).encode(forest)
    if rest == "dense":
        with pytest.raises(
            RangeError, match=r"for float64 with decay=0\.99: use normalize=True or a smaller"
        ):
            make_encoder(0.99, rest=rest, rest_size=256, dtype="float64").encode(forest)


@pytest.mark.large
@pytest.mark.parametrize("rest", ["dense", "blocks"])
@pytest.mark.parametrize("exact", [True, False])
def test_a_rest_that_is_not_finite_is_an_error_that_names_the_tree(rest, exact, monkeypatch):
    forest = read_trees(["(a b)", "(S (A (B b) (C c)) (D (E e) (F f)))"])
    spec = SparseSpec(64, budget=2, damping="linear", rest=rest, rest_size=256)
    encoder = SparseEncoder(spec)
    if rest == "dense":
        object.__setattr__(spec, "decay", np.nan)  # no spec has it
    else:
        encoder._rest._tables.phases[:] = np.nan
    log_norms = SubsetTreeKernel(0.4).log_norms(forest) if exact else None
    with pytest.raises(RangeError, match=r"of tree 2 \(11 nodes\) is not finite in float32"):
        encoder.encode(forest, log_norms)


def test_occurrences_have_values_where_the_exact_length_is_too_large_for_a_float():
    encoder = SparseEncoder(SparseSpec(64, 1.0, 2, "linear", "dense", 256))
    found = encoder.occurrences(read_trees(["(S (A a) (B b))"]), log_norm=800.0)
    assert found.counts.tolist() == [1] * 5
    assert not found.value.any()


def test_wide_and_deep_trees_take_linear_memory():
    encoder = make_encoder(0.1)
    peaks = []
    for size in (15_000, 30_000):
        wide = "(A" + " (B (C x) y)" * size + ")"
        deep = "(A " * size + "b" + ")" * size
        forest = read_trees([wide, deep])
        tracemalloc.start()
        rows = encoder.encode(forest)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert np.isfinite(rows.data).all()
        assert np.diff(rows.indptr).tolist() == [4, 10]
    assert 30_000 < peaks[1] < 2.5 * peaks[0]


@pytest.mark.large
def test_a_child_among_a_million_is_found():
    before = 2**20 + 39
    labels, arities = np.zeros(before + 3, np.int32), np.zeros(before + 3, np.int32)
    labels[before:], arities[before:] = [1, 2, 3], [0, 1, before + 1]
    wide = Forest(labels, arities, [0, before + 3], ["x", "b", "B", "R"])
    rows = make_encoder(1.0, None).encode(wide)
    assert np.abs(rows.data).tolist() == [1.0, 1.0, 1.0]


def test_a_node_without_children_has_an_empty_row():
    forest = Forest.from_trees([Tree("a"), Tree("a", ["b"])])
    assert np.diff(make_encoder().encode(forest).indptr).tolist() == [0, 1]
    assert make_encoder(normalize=True).encode(forest[:1]).nnz == 0
    assert make_encoder().encode(Forest.from_trees([])).shape == (0, WIDE)


def test_a_fragments_row_reads_its_coordinate():
    tree = "(S (NP (DT a) (NN tree)) (VP (VBZ grows)))"
    encoder = make_encoder(0.5, None)
    row = encoder.encode(read_trees([tree]))
    for fragment, value in list_fragments(tree, 0.5).items():
        assert dot_products(row, encoder.encode_fragment(fragment))[0, 0] == pytest.approx(value, abs=1e-6)
    assert make_encoder(0.5, 0).encode_fragment(Tree.parse(tree)).nnz == 0


def test_decay_0_leaves_single_productions():
    rows = make_encoder(0.0).encode(read_trees(["(A (B b))", "(A (B c))"]))
    assert dot_products(rows).tolist() == [[2.0, 1.0], [1.0, 2.0]]


def test_a_single_node_is_not_a_fragment():
    with pytest.raises(ParameterError, match="single node"):
        make_encoder().encode_fragment(Tree("A"))


def test_threads_may_share_an_encoder_whose_label_keys_overflow(monkeypatch):
    monkeypatch.setattr("treedot.vectors.sparse.encoder.KEPT_LABELS", 50)
    encoder = make_encoder(n_features=2**12)
    forests = [
        Forest.from_trees([Tree("S", [f"w{k}", f"w{k + 1}"]) for k in range(n, n + 30)]) for n in range(40)
    ]
    wanted = [encoder.encode(forest).data.tobytes() for forest in forests]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda forest: encoder.encode(forest).data.tobytes(), forests)) == wanted


def test_bad_settings_are_refused():
    with pytest.raises(ParameterError, match="power of two"):
        SparseSpec(n_features=1000)
    with pytest.raises(ParameterError, match="budget must be None or from 0"):
        SparseSpec(budget=-1)
    with pytest.raises(ParameterError, match="damping must be one of"):
        SparseSpec(damping="square")
    with pytest.raises(ParameterError, match="needs damping='linear'"):
        SparseSpec(rest="dense")
    with pytest.raises(ParameterError, match="budget of at most 32"):
        SparseSpec(rest="blocks", damping="linear", budget=None)
    with pytest.raises(ParameterError, match="multiple of 256"):
        SparseSpec(rest_size=100)
    with pytest.raises(SpecMismatchError, match="budget 4 and 9"):
        SparseSpec().require_same(SparseSpec(budget=9))
    assert SparseSpec.from_dict(SparseSpec(decay=0.3).to_dict()) == SparseSpec(decay=0.3)


def test_too_many_fragments_are_refused(monkeypatch):
    monkeypatch.setattr("treedot.vectors.chunks.MAX_FRAGMENTS", 2048)
    bush = "(A" + " (B (C x) (C y))" * 6 + ")"
    for _ in range(3):
        bush = f"(A {bush} {bush})"
    with pytest.raises(LimitError, match="use a budget below 32"):
        make_encoder(budget=32).encode(read_trees([bush]))
    with pytest.raises(LimitError, match="use a budget below 32"):
        make_encoder(budget=32, rest="blocks").encode(read_trees([bush]))
    with pytest.raises(LimitError, match="give a budget"):
        make_encoder(budget=None).encode(read_trees([bush]))


BARS = {
    "questions": [0.999, 0.999, 0.999, 0.999, 0.995],
    "entailment": [0.999, 0.999, 0.998, 0.99, 0.985],
}


def real_trees(kind, count):
    """Return trees as Table 2 draws them."""
    return chosen_trees(Corpora(corpus("rte5_dev.tsv.gz").parent), kind, count)


# The trees of entailment are three times as large as questions.
KINDS = [pytest.param(kind, marks=pytest.mark.slow) if kind == "entailment" else kind for kind in BARS]


@pytest.mark.corpus
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_rank_random_pairs_of_real_trees_at_every_decay(kind):
    forest = real_trees(kind, 300)
    for decay, bar in zip(DECAYS, BARS[kind], strict=True):
        exact = SubsetTreeKernel(decay).gram(forest)
        rows = (
            make_encoder(decay, 12, seed=s, rest="blocks", dtype="float64").encode(forest) for s in range(3)
        )
        assert np.mean([spearman(exact, dot_products(x)) for x in rows]) >= bar


@pytest.mark.corpus
@pytest.mark.parametrize("rest", ["dense", "blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_real_trees_are_unbiased(kind, rest):
    forest = real_trees(kind, 60)
    pairs = different_pairs(len(forest))
    for decay in (0.2, 0.4, 1.0):
        exact = SubsetTreeKernel(decay).gram(forest)
        unit = floor(exact, 2048)
        errors = []
        for seed in range(24):
            encoder = make_encoder(decay, seed=seed, rest=rest, rest_size=2048, dtype="float64")
            errors.append(((dot_products(encoder.encode(forest)) - exact) / unit)[pairs].mean())
        error = np.std(errors, ddof=1) / math.sqrt(len(errors))
        assert abs(np.mean(errors)) <= 3 * error
        assert error <= 0.05  # in units of a random projection's error: a bias of 0.15 would show
