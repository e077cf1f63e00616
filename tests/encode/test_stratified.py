"""Stratified rows against their definition, fragment by fragment, and against the exact kernel."""

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import corpus, random_forest, trees
from treedot import Forest, Tree, read_trees, sparse_gram
from treedot.encode import StratifiedEncoder, StratifiedSpec
from treedot.encode.strata import stratum
from treedot.errors import LimitError, ParameterError, RangeError, SpecMismatchError
from treedot.experiments.fidelity import different_pairs, error_over_floor, floor, spearman
from treedot.kernels import SubsetTreeKernel, count_fragments, fragments

WIDE = 2**30

# One small alphabet for inner nodes and leaves: a label may be both, and productions repeat.
small_trees = trees(labels=st.sampled_from("ab"), max_leaves=5)


def encoder(decay=0.4, budget=10, seed=0, n_features=WIDE, **more):
    return StratifiedEncoder(StratifiedSpec(n_features, decay, budget, seed, **more))


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
    found = {}
    for column, value in zip(row.indices.tolist(), row.data.tolist(), strict=True):
        found[column] = found.get(column, 0.0) + value
    return found


def by_definition(tree, machine):
    """Return the sum of all fragments' rows, each times its coordinate."""
    total = {}
    for fragment, weight in fragments(tree, machine.spec.decay).items():
        for column, value in as_dict(machine.fragment(fragment)).items():
            total[column] = total.get(column, 0.0) + weight * value
    return total


@settings(max_examples=25)
@given(
    small_trees.filter(lambda tree: count_fragments(tree) <= 60),
    st.sampled_from([1, 2, 3, 5, 8]),
    st.sampled_from([0.3, 1.0]),
    st.integers(0, 3),
)
def test_a_row_is_the_sum_of_its_fragments_rows(tree, budget, decay, seed):
    machine = encoder(decay, budget, seed, dtype="float64")
    found, wanted = as_dict(machine.encode([tree])), by_definition(tree, machine)
    # Weights of numbers lie on a grid of 2^-22, and a fragment may occur as often as the tree has nodes.
    tolerance = 2.0**-23 * len(list(tree.postorder())) + 1e-9 * max(map(abs, wanted.values()), default=1.0)
    for column in found.keys() | wanted.keys():
        assert abs(found.get(column, 0.0) - wanted.get(column, 0.0)) <= tolerance


@given(small_trees, small_trees, st.sampled_from([0.2, 0.6, 1.0]))
def test_small_trees_get_their_exact_kernel(a, b, decay):
    rows = encoder(decay, 32).encode([a, b])
    wanted = SubsetTreeKernel(decay).gram([a, b])
    assert sparse_gram(rows) == pytest.approx(wanted, rel=1e-5, abs=1e-5)


@settings(max_examples=25)
@given(small_trees.filter(lambda tree: count_fragments(tree) <= 60))
def test_the_prefix_of_a_prefix_is_itself(tree):
    for fragment in fragments(tree):
        key, block = stratum(fragment, 4, 0)
        again, _ = stratum(fragment, 100, 0)
        if block is None:
            assert key == again
        else:
            assert np.abs(block) == pytest.approx(1.0, abs=1e-9)
            assert key != again


def test_a_tag_above_its_word_is_read_after_larger_parts():
    first = Tree.parse("(S (A x) (B (C y) D))")
    cut = Tree.parse("(S A (B C D))")  # with a budget of 2 the reading ends behind B, whichever follows
    assert stratum(first, 2, 0).key == stratum(cut, 2, 0).key
    assert stratum(cut, 2, 0).block is None
    assert stratum(Tree.parse("(S (A x) B)"), 2, 0).key != stratum(cut, 2, 0).key


@pytest.mark.parametrize("decay", [0.2, 0.4, 0.6, 0.8, 1.0])
def test_products_are_unbiased(decay):
    forest = alike(5, 16)
    exact = SubsetTreeKernel(decay).gram(forest)
    own = np.sqrt(np.diagonal(exact))
    pairs = different_pairs(len(forest))
    errors = []
    for seed in range(40):
        rows = encoder(decay, budget=4, seed=seed, dtype="float64").encode(forest)
        errors.append(((sparse_gram(rows) - exact) / np.outer(own, own))[pairs].mean())
    assert abs(np.mean(errors)) <= 3 * np.std(errors, ddof=1) / math.sqrt(len(errors))
    assert np.std(errors) > 1e-6


def test_collisions_add_noise_but_no_bias():
    forest = alike(6, 12)
    exact = SubsetTreeKernel(0.4).gram(forest)
    pairs = different_pairs(len(forest))
    errors = []
    for seed in range(200):
        rows = encoder(0.4, seed=seed, n_features=256).encode(forest)
        errors.append((sparse_gram(rows) - exact)[pairs].mean())
    assert abs(np.mean(errors)) <= 3 * np.std(errors, ddof=1) / math.sqrt(len(errors))
    assert np.std(errors) > 0.01


def test_rows_do_not_depend_on_threads_batches_or_neighbours():
    forest = random_forest(1, 1200, 25)
    machine = encoder(n_features=2**20)
    whole = machine.encode(forest, n_jobs=1)
    many = machine.encode(forest, n_jobs=4)
    assert (whole.data.tobytes(), whole.indices.tobytes()) == (many.data.tobytes(), many.indices.tobytes())
    for i in (0, 511, 512, 1199):
        alone = machine.encode(forest[[i]])
        assert (whole[i].data.tobytes(), whole[i].indices.tobytes()) == (
            alone.data.tobytes(),
            alone.indices.tobytes(),
        )


def test_rows_are_frozen():
    rows = encoder(budget=4, n_features=2**20, seed=7).encode(
        ["(S (NP (DT the) (NN tree)) (VP (VBZ grows) (ADVP (RB slowly))))", "(a (a (a b) a) (b (a (b a))))"]
    )
    exact = np.round(rows.data.astype(float), 5) + 0.0
    digest = hashlib.sha256(rows.indptr.tobytes() + rows.indices.tobytes() + exact.tobytes()).hexdigest()
    assert digest[:16] == "1eb9704eba52ad92"


def test_normalised_rows_have_norm_1_whatever_the_size_of_the_tree():
    giants = ["(A" + " (B x)" * 60_000 + ")", "(A " * 2000 + "b" + ")" * 2000, "(A (B c))"]
    rows = encoder(0.99, seed=1, normalize=True).encode(giants)
    assert np.diagonal(sparse_gram(rows)) == pytest.approx(1.0, rel=1e-5)
    with pytest.raises(RangeError, match=r"tree 1 \(120001 nodes\) is too large for float32"):
        encoder(0.99, seed=1).encode(giants)


def test_wide_and_deep_trees_take_linear_time_and_room():
    wide = "(A" + " (B (C x) y)" * 30_000 + ")"
    deep = "(A " * 30_000 + "b" + ")" * 30_000
    rows = encoder(0.1, normalize=True).encode([wide, deep])
    assert np.isfinite(rows.data).all()
    assert rows[1].nnz < 40  # every level is the same
    assert rows[0].nnz < 3 * 5 * 30_000


def test_a_node_without_children_has_an_empty_row():
    assert np.diff(encoder().encode([Tree("a"), Tree("a", ["b"])]).indptr).tolist() == [0, 1]
    assert encoder(normalize=True).encode([Tree("a")]).nnz == 0
    assert encoder().encode(Forest.from_trees([])).shape == (0, WIDE)


def test_a_fragments_row_reads_its_coordinate():
    tree = "(S (NP (DT a) (NN tree)) (VP (VBZ grows)))"
    machine = encoder(0.5, budget=32)
    row = machine.encode([tree])
    for fragment, value in fragments(tree, 0.5).items():
        assert sparse_gram(row, machine.fragment(fragment))[0, 0] == pytest.approx(value, abs=1e-6)


def test_a_child_among_a_million_is_found():
    wide = Tree("R", ["x"] * (2**20 + 39) + [Tree("B", ["b"])])
    assert np.abs(encoder(1.0).encode([wide]).data).tolist() == [1.0, 1.0, 1.0]


def test_decay_0_leaves_single_productions():
    rows = encoder(0.0).encode(["(A (B b))", "(A (B c))"])
    assert sparse_gram(rows).tolist() == [[2.0, 1.0], [1.0, 2.0]]


def test_a_single_node_is_no_fragment():
    with pytest.raises(ParameterError, match="single node"):
        encoder().fragment(Tree("A"))


def test_threads_may_share_an_encoder_whose_label_keys_overflow(monkeypatch):
    monkeypatch.setattr("treedot.encode.rows.KEPT_LABELS", 50)
    machine = encoder(n_features=2**12)
    forests = [
        Forest.from_trees([Tree("S", [f"w{k}", f"w{k + 1}"]) for k in range(n, n + 30)]) for n in range(40)
    ]
    wanted = [machine.encode(forest).data.tobytes() for forest in forests]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda forest: machine.encode(forest).data.tobytes(), forests)) == wanted


def test_bad_settings_are_refused():
    with pytest.raises(ParameterError, match="power of two"):
        StratifiedSpec(n_features=1000)
    with pytest.raises(ParameterError, match="budget must be from 1 to 32"):
        StratifiedSpec(budget=0)
    with pytest.raises(SpecMismatchError, match="budget 10 and 9"):
        StratifiedSpec().require_same(StratifiedSpec(budget=9))
    assert StratifiedSpec.from_dict(StratifiedSpec(decay=0.3).to_dict()) == StratifiedSpec(decay=0.3)


def test_too_many_prefixes_are_refused(monkeypatch):
    monkeypatch.setattr("treedot.encode.rows.MAX_PREFIXES", 2048)
    bush = "(A" + " (B (C x) (C y))" * 6 + ")"
    for _ in range(3):
        bush = f"(A {bush} {bush})"
    with pytest.raises(LimitError, match="use a budget below 32"):
        encoder(budget=32).encode([bush])


REAL = {
    "questions": (["qc_train"], ["tree"], [0.996, 0.996, 0.995, 0.99, 0.985]),
    "pairs": (
        ["rte1_dev", "rte5_test"],
        ["text_tree", "hypothesis_tree"],
        [0.998, 0.998, 0.985, 0.965, 0.95],
    ),
}
DECAYS = (0.2, 0.4, 0.6, 0.8, 1.0)


def real_trees(kind):
    names, columns, bars = REAL[kind]
    forest = Forest.concat(
        [read_trees(corpus(f"{name}.tsv.gz"), column=column) for name in names for column in columns]
    )
    return forest[np.random.default_rng(0).permutation(len(forest))[:150]], bars


@pytest.mark.corpus
@pytest.mark.parametrize("kind", REAL)
def test_real_trees_follow_the_exact_kernel_at_every_decay(kind):
    forest, bars = real_trees(kind)
    for decay, bar in zip(DECAYS, bars, strict=True):
        exact = SubsetTreeKernel(decay).gram(forest)
        ranks = []
        for seed in range(2):
            rows = encoder(decay, seed=seed, dtype="float64").encode(forest)
            assert 4 * rows.nnz / len(forest) < 32_000
            ranks.append(spearman(exact, sparse_gram(rows)))
            if decay == 0.4:
                assert error_over_floor(exact, sparse_gram(rows), rows.nnz / len(forest)) < 1 / 3
        assert np.mean(ranks) >= bar


@pytest.mark.corpus
@pytest.mark.parametrize("kind", REAL)
def test_products_of_real_trees_are_unbiased(kind):
    forest, _ = real_trees(kind)
    pairs = different_pairs(len(forest))
    for decay in DECAYS:
        exact = SubsetTreeKernel(decay).gram(forest)
        unit = floor(exact, 8192)
        errors = []
        for seed in range(24):
            rows = encoder(decay, seed=seed, dtype="float64").encode(forest)
            errors.append(((sparse_gram(rows) - exact) / unit)[pairs].mean())
        assert abs(np.mean(errors)) <= 3 * np.std(errors, ddof=1) / math.sqrt(len(errors))
