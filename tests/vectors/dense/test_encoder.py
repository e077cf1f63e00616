import hashlib
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import all_trees, examples, random_forest, trees
from treedot import Forest, Tree, read_trees
from treedot._runtime.jit import COMPILED
from treedot.errors import ParameterError, RangeError, SpecMismatchError
from treedot.kernels import list_fragments
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.chunks import ALL_DONE, NOT_FINITE, TOO_LARGE
from treedot.vectors.dense import encoder as encoder_module
from treedot.vectors.dense import label_table, reference, rescaling
from treedot.vectors.dense.compositions import ALGEBRAS
from vectors.dense import golden

DECAY = st.sampled_from([0.0, 0.3, 0.4, 1.0])
FLOAT32_TOLERANCE = 3e-6  # of the largest element, for trees of up to a few hundred nodes
FLOAT64_TOLERANCE = 1e-13

ALGEBRA_NAMES = list(ALGEBRAS)
SMALL = {name: ALGEBRAS[name](512, 5) for name in ALGEBRA_NAMES}


def far(x, y):
    """Return the largest difference relative to the largest element."""
    return float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-300))


@pytest.mark.parametrize("name", ALGEBRA_NAMES)
@given(tree=trees(max_leaves=6), decay=DECAY)
def test_theorem_3_the_recursion_is_the_weighted_sum_of_all_fragments(name, tree, decay):
    algebra = SMALL[name]
    explicit = np.zeros(algebra.size)
    for fragment, weight in list_fragments(tree, decay).items():
        explicit += weight * reference.fragment_vector(fragment, algebra)
    recursive = reference.distributed_tree(tree, algebra, decay)
    assert np.abs(recursive - explicit).max() <= 1e-9 * max(np.abs(explicit).max(), 1e-30)


@pytest.mark.parametrize("name", ALGEBRA_NAMES)
@given(forest=st.lists(trees(max_leaves=20), min_size=1, max_size=4), decay=DECAY)
@settings(max_examples=examples(30))
def test_the_fast_encoder_is_the_reference(name, forest, decay):
    expected = np.array([reference.distributed_tree(tree, SMALL[name], decay) for tree in forest])
    for dtype, tolerance in (("float32", FLOAT32_TOLERANCE), ("float64", FLOAT64_TOLERANCE)):
        spec = DenseSpec(512, decay, name, seed=5, dtype=dtype, normalize=False)
        found = DenseEncoder(spec).encode(Forest.from_trees(forest))
        assert found.dtype == dtype
        assert np.abs(found - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-30)


@pytest.mark.large
@pytest.mark.parametrize("name", ALGEBRA_NAMES)
@pytest.mark.parametrize("size", [256, 512, 2048])
def test_the_fast_encoder_is_the_reference_on_larger_trees(name, size):
    forest = random_forest(1, 6, nodes=120)
    algebra = ALGEBRAS[name](size, 2)
    expected = np.array([reference.distributed_tree(tree, algebra, 0.4) for tree in forest])
    assert (
        far(DenseEncoder(DenseSpec(size, 0.4, name, 2, normalize=False)).encode(forest), expected)
        < FLOAT32_TOLERANCE
    )
    assert (
        far(
            DenseEncoder(DenseSpec(size, 0.4, name, 2, dtype="float64", normalize=False)).encode(forest),
            expected,
        )
        < FLOAT64_TOLERANCE
    )


@pytest.mark.slow
def test_odd_sizes_work_where_the_algebra_allows():
    forest = random_forest(4, 3)
    expected = np.array([reference.distributed_tree(t, ALGEBRAS["product"](101, 0), 0.4) for t in forest])
    assert (
        far(DenseEncoder(DenseSpec(101, composition="product", normalize=False)).encode(forest), expected)
        < FLOAT32_TOLERANCE
    )
    tiny = DenseEncoder(DenseSpec(32, composition="convolution", dtype="float64", normalize=False)).encode(
        forest
    )
    expected = np.array([reference.distributed_tree(t, ALGEBRAS["convolution"](32, 0), 0.4) for t in forest])
    assert far(tiny, expected) < FLOAT64_TOLERANCE
    assert DenseEncoder(DenseSpec(1, composition="product", normalize=False)).encode(forest).shape == (3, 1)


def golden_encoder(name, normalize):
    spec = DenseSpec(golden.SIZE, golden.DECAY, name, seed=golden.SEED, normalize=normalize)
    return DenseEncoder(spec)


@pytest.mark.parametrize("name", ALGEBRA_NAMES)
def test_golden_vectors(name):
    expected = np.load(golden.FILE)[name]
    assert far(golden.by_definition(name), expected) < FLOAT64_TOLERANCE
    found = golden_encoder(name, normalize=False).encode(golden.TREES)
    assert far(found, expected) < 1e-6
    assert (found[2] == 0).all()  # a leaf alone has no fragments


# Mixed and shuffled products are rounded alike everywhere. The sines of the convolution's transforms may
# differ in the last bit of a float64: float32, to which they are rounded, has 29 bits fewer, so that this
# hardly ever shows.
DIGESTS = {"mixed": "6d47f60dc19b4fec", "product": "63ab9984947f01ac", "convolution": "ab6f0578f3fe2b09"}


@pytest.mark.parametrize("name", ALGEBRA_NAMES)
def test_vectors_are_frozen_to_the_byte(name):
    if name == "convolution" and not COMPILED:
        pytest.skip("without compiled code the last bits of the transforms differ")
    found = [golden_encoder(name, normalize).encode(golden.TREES) for normalize in (False, True)]
    assert hashlib.sha256(b"".join(rows.tobytes() for rows in found)).hexdigest()[:16] == DIGESTS[name]


@pytest.mark.large
@pytest.mark.parametrize("name", ALGEBRA_NAMES)
def test_vectors_do_not_depend_on_threads_chunks_order_or_neighbours(name, monkeypatch):
    forest = random_forest(6, 40)
    spec = DenseSpec(512, 0.4, name, normalize=False)
    once = DenseEncoder(spec).encode(forest)
    for threads in (2, 3, 7):
        assert DenseEncoder(spec).encode(forest, n_jobs=threads).tobytes() == once.tobytes()
    assert DenseEncoder(spec).encode(forest[::-1])[::-1].tobytes() == once.tobytes()
    assert b"".join(DenseEncoder(spec).encode(forest[[i]]).tobytes() for i in range(40)) == once.tobytes()
    monkeypatch.setattr(encoder_module, "PART_NODES", 50)
    monkeypatch.setattr(label_table, "TABLE_BYTES", 100_000)
    small = DenseEncoder(spec)
    assert small.encode(forest, n_jobs=2).tobytes() == once.tobytes()
    assert small.encode(forest, n_jobs=2).tobytes() == once.tobytes()


@pytest.mark.large
def test_one_encoder_serves_many_threads():
    sets = [read_trees([f"(S{s}_{i} (N{s}_{i} w))" for i in range(100)]) for s in range(8)]
    expected = [DenseEncoder(DenseSpec(256)).encode(forest) for forest in sets]
    for _ in range(3):
        shared = DenseEncoder(DenseSpec(256))
        with ThreadPoolExecutor(8) as pool:
            for found, right in zip(pool.map(shared.encode, sets), expected, strict=True):
                assert found.tobytes() == right.tobytes()


@pytest.mark.slow
def test_vectors_are_the_same_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests'); from strategies import random_forest; "
        "from treedot.vectors import DenseEncoder, DenseSpec; import hashlib; "
        "vectors = DenseEncoder(DenseSpec(256)).encode(random_forest(6, 9)); "
        "print(hashlib.sha256(vectors.tobytes()).hexdigest())"
    )
    env = {**os.environ, "PYTHONHASHSEED": "77"}
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    here = hashlib.sha256(DenseEncoder(DenseSpec(256)).encode(random_forest(6, 9)).tobytes()).hexdigest()
    assert other.stdout.strip() == here


@pytest.mark.slow
@pytest.mark.large
def test_small_trees_never_share_a_fragment_vector_in_the_default_algebra():
    algebra = ALGEBRAS["mixed"](2048, 0)
    vectors = np.array([reference.fragment_vector(tree, algebra) for tree in all_trees(6, "AB")], np.float32)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, 0)
    assert len(vectors) == 3238
    assert np.abs(cosines).max() < 0.2


@pytest.mark.parametrize("name", ["product", "convolution"])
def test_the_papers_right_fold_confuses_a_chain_with_siblings(name):
    algebra = SMALL[name]
    chain, siblings = (reference.fragment_vector(Tree.parse(t), algebra) for t in ("(A (B C))", "(A B C)"))
    assert np.array_equal(chain, siblings)
    mixed = ALGEBRAS["mixed"](8192, 0)
    chain, siblings = (reference.fragment_vector(Tree.parse(t), mixed) for t in ("(A (B C))", "(A B C)"))
    assert abs(chain @ siblings) < 0.2


def swapped(width, i, j):
    children = [f"c{k}" for k in range(width)]
    children[i], children[j] = children[j], children[i]
    return Tree("n", children)


@pytest.mark.slow
@pytest.mark.large
def test_far_apart_children_of_a_wide_node_do_not_swap_unseen():
    places = [
        (0, 9_999),
        (0, 8_192),
        (5, 5 + 4_096),
        (17, 17 + 512),
        (3, 3 + 2_048),
        (100, 101),
        (1, 1 + 6_144),
    ]
    forest = Forest.from_trees([swapped(10_000, 0, 0), *(swapped(10_000, i, j) for i, j in places)])
    vectors = DenseEncoder(DenseSpec(8192, normalize=True)).encode(forest)
    assert np.abs(vectors[1:] @ vectors[0]).max() < 0.2
    families = Tree("n", [Tree("m", [f"c{k}"]) for k in range(10_000)])
    other = list(families.children)
    other[7], other[7 + 8_192] = other[7 + 8_192], other[7]
    tree_a, tree_b = Forest.from_trees([families, Tree("n", other)])
    top = [Tree("r", [tree_a]), Tree("r", [tree_b])]
    spec = DenseSpec(8192, decay=0.0, normalize=False)
    a, b = DenseEncoder(spec).encode(Forest.from_trees(top))
    assert abs(float(a @ a) - 10_002) < 600  # each of the 10,002 productions once, and nothing more
    assert abs(float(a @ b) - 10_002) < 600


@pytest.mark.slow
@pytest.mark.large
@pytest.mark.parametrize("name", ALGEBRA_NAMES)
def test_large_shapes_are_encoded_alike_in_any_order(name):
    deep = "(n " * 100_000 + "x" + ")" * 100_000
    wide = "(n" + " x" * 200_000 + ")"
    families = "(n" + " (m x)" * 100_000 + ")"
    forest = read_trees([deep, wide, families])
    first = DenseEncoder(DenseSpec(512, composition=name, normalize=True)).encode(forest)
    assert np.isfinite(first).all()
    assert np.allclose((first.astype(float) ** 2).sum(axis=1), 1, atol=1e-5)
    again = DenseEncoder(DenseSpec(512, composition=name, normalize=True)).encode(forest[::-1], n_jobs=2)[
        ::-1
    ]
    assert first.tobytes() == again.tobytes()
    many = read_trees(["(a (b c))"] * 20_000)
    vectors = DenseEncoder(DenseSpec(512, composition=name, normalize=False)).encode(many, n_jobs=2)
    assert (vectors == vectors[0]).all()


@pytest.mark.parametrize("name", ALGEBRA_NAMES)
def test_rows_in_use_follow_open_ancestors_not_children(name):
    from treedot.vectors.dense.schedule import make_schedule

    families = read_trees(["(n" + " (m x)" * 1000 + ")", "(n " * 1000 + "x" + ")" * 1000])
    schedule = make_schedule(
        families.arity, families.offsets.copy(), families.label, not ALGEBRAS[name].folds_left
    )
    assert schedule.height.max() <= 2


@pytest.mark.large
@pytest.mark.parametrize("name", ALGEBRA_NAMES)
def test_giant_trees_have_finite_normalised_vectors_and_refuse_raw_ones(name):
    rng = np.random.default_rng(0)
    nodes = [Tree("B", ["x"]) for _ in range(700)]
    while len(nodes) > 1:
        k = int(rng.integers(len(nodes) - 1))
        nodes[k : k + 2] = [Tree("B", nodes[k : k + 2])]
    forest = Forest.from_trees([nodes[0], Tree.parse("(B x)")])
    assert forest.sizes[0] > 2000
    vectors = DenseEncoder(DenseSpec(512, 1.0, name, normalize=True)).encode(forest)
    assert np.isfinite(vectors).all()
    assert np.allclose((vectors.astype(float) ** 2).sum(axis=1), 1, atol=1e-5)
    if name != "product":  # whose typical norm sinks so much that this one fits
        with pytest.raises(RangeError, match=r"tree 1 \(2099 nodes\).*normalize=True, dtype='float64' or"):
            DenseEncoder(DenseSpec(512, 1.0, name, normalize=False)).encode(forest)


def test_the_longer_type_is_named_only_where_it_is_not_taken_yet():
    forest = read_trees(["(A (B b) " * 3000 + "(B b)" + ")" * 3000])
    with pytest.raises(RangeError, match=r"too large for float64 .*: use normalize=True or a smaller decay$"):
        DenseEncoder(DenseSpec(512, 1.0, dtype="float64", normalize=False)).encode(forest)


def test_scaling_loses_nothing():
    """A tree that needs exponents in float32 but not in float64 has the same vector in both."""
    forest = random_forest(9, 3, nodes=250)
    short, long = (
        DenseEncoder(DenseSpec(256, 1.0, dtype=d, normalize=True)).encode(forest)
        for d in ("float32", "float64")
    )
    assert far(short, long) < 1e-4
    raw = DenseEncoder(DenseSpec(256, 1.0, dtype="float64", normalize=False)).encode(forest)
    expected = np.array([reference.distributed_tree(t, ALGEBRAS["mixed"](256, 0), 1.0) for t in forest])
    assert max(far(a, b) for a, b in zip(raw, expected, strict=True)) < 1e-11


def test_powers_of_two_meet_the_numbers_before_each_other():
    out = np.empty(256)
    assert rescaling.write(np.full(256, 2.0**-15), 1030, False, out) == ALL_DONE
    assert out[0] == 2.0**1011
    assert rescaling.write(np.full(256, 1.0), 1030, False, out) == TOO_LARGE


def lists_of_alike_items(*lists):
    """Return a tree of lists, given by a name and a length each, whose items differ only by list."""
    return Tree(
        "S", [Tree(f"L{name}", [Tree(f"i{name}", [Tree(f"a{name}", [f"b{name}"])])] * n) for name, n in lists]
    )


@pytest.mark.parametrize(
    ("composition", "size", "lists"),
    [
        ("convolution", 512, [(869, 164), (922, 220)]),
        ("convolution", 1024, [(807, 157), (405, 86), (699, 131)]),
        ("product", 512, [(843, 147), (310, 202)]),
        ("product", 1024, [(762, 248), (458, 147)]),
    ],
)
def test_lists_whose_product_is_denormal_have_finite_vectors(composition, size, lists):
    """Each list is large in other coordinates, or frequencies, so that the product of two nearly vanishes."""
    forest = Forest.from_trees([lists_of_alike_items(*lists)])
    vectors = DenseEncoder(DenseSpec(size, 1.0, composition)).encode(forest)
    assert np.isfinite(vectors).all()
    assert far((vectors.astype(float) ** 2).sum(), 1.0) < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("power", [-1074, -1022, -149, -140, -128, -127, -126, -30, 0, 30, 120])
def test_rows_are_scaled_without_loss_whatever_their_magnitude(dtype, power):
    row = (np.arange(40) - 8).astype(dtype) * np.dtype(dtype).type(2.0) ** power
    before = row.astype(np.longdouble)
    top, exponent = rescaling.rescale(row, 7)
    if not before.any():
        assert (top, exponent) == (0.0, rescaling.NO_VALUE)
    else:
        assert np.array_equal(row.astype(np.longdouble) * np.longdouble(2) ** (exponent - 7), before)
        assert top == np.abs(row).max()
        assert 2.0**-21 <= top <= 2.0**20


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("place", [0, 17, 39])
@pytest.mark.parametrize("wrong", [np.nan, -np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_never_treated_as_zero(dtype, place, wrong):
    row, out = np.zeros(40, dtype), np.empty(40, dtype)
    row[place] = wrong
    row[20] = 3
    assert not np.isfinite(rescaling.largest(row))
    top, exponent = rescaling.rescale(row, 5)
    assert not np.isfinite(top)
    assert exponent == 5
    with np.errstate(invalid="ignore"):
        for normalize in (True, False):
            assert rescaling.write(row, 5, normalize, out) == NOT_FINITE


@pytest.mark.parametrize("normalize", [True, False])
def test_zeros_are_written_as_zeros_whatever_their_exponent(normalize):
    out = np.full(256, 9.0)
    for exponent in (0, 5000, rescaling.NO_VALUE):
        assert rescaling.write(np.zeros(256), exponent, normalize, out) == ALL_DONE
        assert not out.any()


@pytest.mark.parametrize("name", ALGEBRA_NAMES)
@pytest.mark.parametrize("normalize", [True, False])
def test_a_vector_that_is_not_finite_is_an_error_that_names_the_tree(name, normalize):
    encoder = DenseEncoder(DenseSpec(512, composition=name, normalize=normalize))
    object.__setattr__(encoder.spec, "decay", np.nan)  # no spec has it: it spoils trees of two levels
    forest = read_trees(["(a b)", "(a (e b) (c d))"])
    with pytest.raises(RangeError, match=r"vector of tree 2 \(5 nodes\) is not finite in float32 .*float64"):
        encoder.encode(forest)


@pytest.mark.slow
def test_a_row_of_zeros_has_no_exponent():
    """With one dimension and λ = 1, label + s cancels exactly for half of the labels."""
    spec = DenseSpec(1, 1.0, "product", normalize=True)
    labels = {text: ALGEBRAS["product"](1, 0).label_vectors([text])[0, 0] for text in "abcdefgh"}
    zero = next(text for text, label in labels.items() if label < 0)  # n + n ⊠ n = n + 1 = 0
    one = next(text for text, label in labels.items() if label > 0)
    big = Tree(one, [Tree(one, [one])] * 400)
    tree = Tree(one, [Tree(zero, [zero]), big, big, big, big])
    assert DenseEncoder(spec).encode(Forest.from_trees([tree]))[0, 0] == 1
    with pytest.raises(RangeError):
        DenseEncoder(DenseSpec(1, 1.0, "product", normalize=False)).encode(Forest.from_trees([tree]))


def test_out_is_filled_and_checked(tmp_path):
    forest = random_forest(0, 5)
    encoder = DenseEncoder(DenseSpec(256))
    expected = encoder.encode(forest)
    target = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (5, 256))
    assert encoder.encode(forest, out=target) is target
    assert (target == expected).all()
    for wrong in (
        np.empty((5, 257), np.float32),
        np.empty((5, 256), np.float64),
        np.empty((256, 5), np.float32).T,
        [1],
    ):
        with pytest.raises(ParameterError, match="out must be"):
            encoder.encode(forest, out=wrong)
    assert encoder.encode(forest[:0]).shape == (0, 256)


def test_progress_counts_every_tree():
    seen = []
    DenseEncoder(DenseSpec(256)).encode(random_forest(0, 1100, nodes=4), progress=seen.append)
    assert sum(seen) == 1100


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"decay": 1.5}, "from 0 to 1"),
        ({"decay": -0.1}, "from 0 to 1"),
        ({"decay": float("nan")}, "from 0 to 1"),
        ({"decay": "much"}, "from 0 to 1"),
        ({"decay": "0.4"}, "a number from 0 to 1, not '0.4'"),
        ({"n_components": 0}, "multiple of 256"),
        ({"n_components": 100}, "multiple of 256"),
        ({"n_components": 256.0}, "integer"),
        ({"n_components": 100, "composition": "convolution"}, "power of two"),
        ({"n_components": 0, "composition": "product"}, "at least 1"),
        ({"composition": "sum"}, "unknown composition"),
        ({"seed": None}, "integer"),
        ({"dtype": "int8"}, "dtype"),
        ({"dtype": "nonsense"}, "dtype"),
        ({"normalize": "no"}, "True or False"),
        ({"version": 99}, "format 1, not 99"),
    ],
)
def test_impossible_specs_are_refused(settings, complaint):
    with pytest.raises((ParameterError, SpecMismatchError), match=complaint):
        DenseSpec(**settings)


def test_specs_of_equal_settings_have_equal_fingerprints_and_others_do_not_mix():
    assert (
        DenseSpec(decay=np.float64(0.4), n_components=np.int64(8192)).fingerprint == DenseSpec().fingerprint
    )
    assert len({DenseSpec(seed=k).fingerprint for k in range(100)}) == 100
    DenseSpec().require_same(DenseSpec())
    with pytest.raises(SpecMismatchError, match=r"decay 0\.4 and 0\.2"):
        DenseSpec().require_same(DenseSpec(decay=0.2))
    with pytest.raises(SpecMismatchError, match="does not describe a treedot spec"):
        DenseSpec.from_dict({"colour": "red"})


@pytest.mark.parametrize("n_jobs", [0, "two", 1.5])
def test_impossible_thread_counts_are_refused(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs"):
        DenseEncoder(DenseSpec(256)).encode(random_forest(0, 2), n_jobs=n_jobs)


@pytest.mark.slow
@pytest.mark.large
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_encoder_works_in_a_forked_process_while_other_threads_encode():
    encoder = DenseEncoder(DenseSpec(1024))
    fresh = count()
    few = read_trees(["(S (NP a) (VP b))"])
    expected = encoder.encode(few)
    done = threading.Event()

    def encode():
        while not done.is_set():  # new labels every time, so that the table is at work
            encoder.encode(read_trees([f"(S (NP a{next(fresh)}) (VP b))" for _ in range(500)]))

    def child():
        os._exit(not np.array_equal(encoder.encode(few), expected))

    thread = threading.Thread(target=encode)
    thread.start()
    try:
        for _ in range(20):
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
            process.join(30)
            ended = process.exitcode
            process.kill()
            assert ended == 0
    finally:
        done.set()
        thread.join()
