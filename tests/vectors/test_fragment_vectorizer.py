"""The scikit-learn face of rows of fragments: columns, names, weights, and what is kept in files."""

import gc
import pickle
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from strategies import corpus, examples, random_forest, trees
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    FragmentVectorizer,
    SubsetTreeKernel,
    Tree,
    TreeIndex,
    dot_products,
    nearest,
    read_trees,
    save_vectors,
)
from treedot.errors import LimitError, ParameterError, SourceError
from treedot.kernels import BoundedTreeKernel, list_fragments
from treedot.kernels.fragments.cost import fragment_cost
from treedot.kernels.reference import bounded_fragment_values
from treedot.models import DualLinearSVC
from treedot.vectors import clear_encoders
from treedot.vectors.chunks import TOO_MANY_OPEN
from treedot.vectors.sparse.fitted_rows import FittedRows

TREES = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]


def named(vectorizer, row):
    names = vectorizer.get_feature_names_out()
    return {names[column]: value for column, value in zip(row.indices, row.data, strict=True)}


def exactly(**options):
    return FragmentVectorizer(n_features=None, damping="linear", normalize=False, dtype="float64", **options)


@settings(max_examples=examples(50))
@given(
    st.lists(trees(max_leaves=8), min_size=1, max_size=4).filter(lambda ts: any(t.children for t in ts)),
    st.sampled_from([0, 2, 4]),
    st.sampled_from([0.3, 1.0]),
)
def test_a_dictionary_has_a_named_column_for_every_bounded_fragment(some, budget, decay):
    vectorizer = exactly(decay=decay, budget=budget)
    rows = vectorizer.fit_transform(some)
    wanted = [bounded_fragment_values(tree, budget, decay) for tree in some]
    assert rows.shape[1] == len({fragment for values in wanted for fragment in values})
    for row, values in zip(rows, wanted, strict=True):
        assert named(vectorizer, row) == pytest.approx({str(f): v for f, v in values.items()}, rel=1e-12)


def test_the_dictionary_of_all_fragments_is_the_full_kernel():
    forest = random_forest(2, 20, 10)
    rows = exactly(decay=0.6, budget=None).fit_transform(forest)
    assert dot_products(rows) == pytest.approx(SubsetTreeKernel(0.6).gram(forest), rel=1e-9)


def test_unknown_fragments_count_only_towards_the_length():
    forest = random_forest(4, 60, 30)
    vectorizer = FragmentVectorizer(n_features=None, damping="linear", dtype="float64").fit(forest[:30])
    wanted = BoundedTreeKernel(0.4, normalize=True).gram(forest[30:], forest[:30])
    found = dot_products(vectorizer.transform(forest[30:]), vectorizer.transform(forest[:30]))
    assert found == pytest.approx(wanted, rel=1e-9)
    assert vectorizer.transform(["(new (new thing))"]).nnz == 0


def test_hashed_rows_follow_the_dictionary():
    forest = random_forest(5, 80, 40)
    exact = dot_products(FragmentVectorizer(n_features=None, dtype="float64").fit_transform(forest))
    for width, bar in ((2**30, 1e-4), (2**20, 2e-3)):
        errors = [
            dot_products(
                FragmentVectorizer(n_features=width, dtype="float64", random_state=s).transform(forest)
            )
            - exact
            for s in range(4)
        ]
        assert np.sqrt(np.mean(np.square(errors))) <= bar


@pytest.mark.parametrize("n_features", [None, 2**14])
def test_rare_columns_weigh_more_with_idf(n_features):
    forest = random_forest(6, 40, 20)
    plain = FragmentVectorizer(n_features=n_features, normalize=False, dtype="float64").fit(forest)
    weighed = clone(plain).set_params(idf=True).fit(forest)
    x, y = plain.transform(forest), weighed.transform(forest)
    holders = np.bincount(x.indices, minlength=x.shape[1])[x.indices]
    assert (x.indices == y.indices).all()
    assert y.data == pytest.approx(x.data * (np.log(41 / (1 + holders)) + 1), rel=1e-12)
    unit = clone(weighed).set_params(normalize=True).fit(forest).transform(forest)
    if n_features is None:
        assert np.diagonal(dot_products(unit)) == pytest.approx(1.0)
    given = clone(plain).set_params(idf=np.full(x.shape[1], 2.0)).fit(forest)
    assert given.transform(forest).data == pytest.approx(2 * x.data)


def test_a_fragment_that_no_tree_held_has_the_largest_idf():
    vectorizer = FragmentVectorizer(n_features=2**20, idf=True, normalize=False).fit(["(A b)"] * 3)
    seen, unseen = (abs(vectorizer.transform([text]).data[0]) for text in ("(A b)", "(C d)"))
    assert (seen, unseen) == pytest.approx((np.log(4 / 4) + 1, np.log(4 / 1) + 1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_features": None},
        {"idf": True},
        {"n_features": None, "idf": True},
        {"n_features": 64, "idf": np.arange(64.0)},
        {"damping": "sqrt", "n_jobs": 2},
        {"rest": "dense", "rest_size": 256},
        {"n_features": None, "rest": "blocks"},
    ],
)
def test_vectorizers_are_cloned_pickled_saved_and_loaded(options, tmp_path):
    forest = random_forest(8, 30, 20)
    vectorizer = clone(FragmentVectorizer(**options)).fit(forest)
    rows = vectorizer.transform(forest)
    vectorizer.save(tmp_path / "rows.safetensors")
    loaded = FragmentVectorizer.load(tmp_path / "rows.safetensors")
    for other in (loaded, pickle.loads(pickle.dumps(vectorizer))):
        np.testing.assert_equal(other.get_params(), vectorizer.get_params())
        assert other.fingerprint == vectorizer.fingerprint
        again = other.transform(forest)
        assert (again.indices.tobytes(), again.data.tobytes()) == (
            rows.indices.tobytes(),
            rows.data.tobytes(),
        )
    if options.get("n_features", 0) is None and "rest" not in options:
        assert loaded.get_feature_names_out().tolist() == vectorizer.get_feature_names_out().tolist()


@pytest.mark.parametrize("n_features", [64, None])
def test_weights_that_are_changed_in_place_change_rows_and_fingerprint_together(n_features):
    vectorizer = FragmentVectorizer(n_features=n_features, normalize=False).fit(TREES)
    weights = np.ones(vectorizer.transform(TREES).shape[1])
    vectorizer.set_params(idf=weights)
    before, name = vectorizer.transform(TREES), vectorizer.fingerprint
    weights[:] = 3
    assert vectorizer.transform(TREES).data == pytest.approx(3 * before.data)
    assert vectorizer.fingerprint != name
    weights[:] = 1
    assert (vectorizer.transform(TREES) != before).nnz == 0
    assert vectorizer.fingerprint == name


@pytest.mark.parametrize("n_features", [64, None])
def test_what_was_learned_cannot_be_changed_once_it_is_in_use(n_features):
    def counts(model):
        return model.documents_.counts if n_features else model.dictionary_.documents

    vectorizer = FragmentVectorizer(n_features=n_features, idf=True).fit(TREES)
    for model in (vectorizer, pickle.loads(pickle.dumps(vectorizer))):
        rows = model.transform(TREES)
        with pytest.raises(ValueError, match="read-only"):
            counts(model)[:] = 1
        assert (model.transform(TREES) != rows).nnz == 0
    changed = pickle.loads(pickle.dumps(vectorizer))
    counts(changed)[:] = 1
    assert (changed.transform(TREES) != rows).nnz > 0


def test_columns_that_are_counted_have_names():
    documents = FragmentVectorizer(n_features=2**20, idf=True).fit(["(A b)", "(A b)", "(A c)"]).documents_
    assert documents._fields == ("columns", "counts", "n_trees")
    assert (sorted(documents.counts), documents.n_trees) == ([1, 2], 3)


@pytest.mark.slow
def test_encoders_are_kept_until_they_are_dropped():
    vectorizer = FragmentVectorizer(n_features=128)
    assert vectorizer._encoder() is vectorizer._encoder()
    kept = weakref.ref(vectorizer._encoder())
    clear_encoders()
    gc.collect()
    assert kept() is None
    assert vectorizer.transform(TREES).shape == (4, 128)


@pytest.mark.parametrize(
    "wrong", [{"idf": "x"}, {"idf": True, "rest": "dense"}, {"idf": [1.0]}, {"decay": 7}]
)
def test_a_vectorizer_with_wrong_parameters_can_be_shown(wrong):
    vectorizer = FragmentVectorizer(**wrong)
    assert "FragmentVectorizer" in repr(vectorizer)
    assert "FragmentVectorizer" in vectorizer._repr_html_()
    with pytest.raises(ParameterError):
        vectorizer.fit(TREES)


def test_another_of_treedots_files_is_refused_with_what_opens_it(tmp_path):
    vectorizer = FragmentVectorizer(n_features=64)
    save_vectors(tmp_path / "rows.npz", vectorizer.transform(TREES), vectorizer)
    TreeIndex.build(TREES, tmp_path / "trees.index")
    for name, message in (
        ("rows.npz", "holds sparse vectors: open it with load_vectors, not FragmentVectorizer.load"),
        ("trees.index", "holds an index of trees: open it with TreeIndex.open"),
    ):
        with pytest.raises(SourceError, match=message):
            FragmentVectorizer.load(tmp_path / name)


def test_fingerprints_tell_apart_what_was_learned():
    a, b = (FragmentVectorizer(n_features=None).fit([text]) for text in ("(A b)", "(A c)"))
    assert len({a.fingerprint, b.fingerprint, FragmentVectorizer().fingerprint}) == 3
    assert a.fingerprint == FragmentVectorizer(n_features=None).fit(["(A b)"]).fingerprint


def test_a_foreign_or_damaged_file_is_refused(tmp_path):
    path = tmp_path / "rows.safetensors"
    FragmentVectorizer(n_features=None).fit(TREES).save(path)
    whole = path.read_bytes()
    path.write_bytes(b"something else")
    with pytest.raises(SourceError):
        FragmentVectorizer.load(path)
    rng = np.random.default_rng(0)
    data = int.from_bytes(whole[:8], "little") + 8
    for place in rng.integers(data, len(whole), 200):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(changed))
        with pytest.raises(SourceError):
            FragmentVectorizer.load(path)


@pytest.mark.parametrize("n_features", [None, 2**10])
@pytest.mark.parametrize("changes", [{"documents": -7}, {"documents": 10**9}, {"n_trees": -9}])
def test_counts_of_trees_that_cannot_be_are_refused(n_features, changes):
    rows = FragmentVectorizer(n_features=n_features, idf=True).fit(TREES)._rows()
    arrays = {
        name: np.full_like(array, changes.get(name)) if name in changes else array
        for name, array in rows.arrays.items()
    }
    with pytest.raises(SourceError, match="number of trees"):
        FittedRows.from_stored(rows.settings, arrays)


def test_a_dictionary_that_is_made_of_itself_is_refused():
    rows = FragmentVectorizer(n_features=None).fit(TREES)._rows()
    arrays = rows.arrays
    circle = int(np.flatnonzero(arrays["place"] > 0)[0])
    arrays["base"] = arrays["base"].copy()
    arrays["base"][circle] = circle
    with pytest.raises(SourceError, match="made of itself"):
        FittedRows.from_stored(rows.settings, arrays)


def test_fragments_by_column_are_those_of_the_trees():
    for n_features in (2**20, None):
        vectorizer = FragmentVectorizer(n_features=n_features).fit(TREES)
        found = vectorizer.column_fragments(TREES)
        assert set(found) == set(vectorizer.transform(TREES).indices.tolist())
        wanted = {f for text in TREES for f in list_fragments(text) if fragment_cost(f) <= 4}
        assert {fragment for column in found.values() for fragment in column} == wanted
        for column, held in found.items():
            assert all(
                vectorizer.transform_fragment(fragment).indices.tolist() == [column] for fragment in held
            )


def test_files_are_read_batch_by_batch_with_the_same_result(tmp_path, monkeypatch):
    forest = random_forest(9, 300, 20)
    path = tmp_path / "trees.mrg"
    path.write_text("\n".join(map(str, forest)))
    monkeypatch.setattr("treedot.vectors.fragment_vectorizer.BATCH", 64)
    for options in ({"n_features": None}, {"idf": True}):
        whole, streamed = (FragmentVectorizer(**options).fit(source) for source in (forest, path))
        assert whole.fingerprint == streamed.fingerprint


def test_arithmetic_of_wide_rows_takes_no_memory_for_columns():
    rows = FragmentVectorizer(n_features=2**30).transform(random_forest(2, 50))
    tracemalloc.start()
    assert rows.multiply(rows).sum() == pytest.approx(50, rel=1e-5)
    assert (rows + rows - rows - rows).nnz == 0
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_names_of_columns():
    vectorizer = FragmentVectorizer(n_features=64, rest="dense", rest_size=256)
    names = vectorizer.get_feature_names_out()
    assert (names[0], names[63], names[64], len(names)) == ("fragments0", "fragments63", "rest0", 320)
    assert vectorizer.transform(TREES).shape == (4, 320)
    with pytest.raises(ParameterError, match="too many to name"):
        FragmentVectorizer(n_features=2**30).get_feature_names_out()


def test_bad_parameters_are_refused_by_fit():
    for wrong in (
        {"n_features": 100},
        {"budget": -1},
        {"decay": 2},
        {"dtype": "int8"},
        {"random_state": "x"},
        {"damping": "cube"},
        {"rest": "foam"},
        {"rest": "dense", "damping": "sqrt"},
        {"rest": "dense", "idf": True},
        {"rest": "dense", "idf": np.ones(2**20)},
        {"idf": [1.0, 2.0]},
        {"idf": "yes"},
        {"idf": None},
        {"n_features": 32, "idf": [np.nan] * 32},
        {"n_features": 32, "idf": [1e200] * 32},
    ):
        for use in (FragmentVectorizer(**wrong).fit, FragmentVectorizer(**wrong).transform):
            with pytest.raises(ParameterError):
                use(TREES)
    with pytest.raises(ParameterError, match="idf has 1 weights"):
        FragmentVectorizer(n_features=None, idf=[2.0]).fit(TREES).transform(TREES)
    with pytest.raises(SourceError, match="every tree is a single node"):
        FragmentVectorizer(n_features=None).fit([Tree("a")])
    for learns in ({"n_features": None}, {"idf": True}):
        with pytest.raises(SourceError, match="there are no trees"):
            FragmentVectorizer(**learns).fit([])


def test_given_weights_are_those_of_the_columns_at_hand():
    vectorizer = FragmentVectorizer(n_features=None, idf=np.ones(4), budget=0).fit(TREES[:2])
    assert vectorizer.transform(TREES).shape == (4, 4)
    vectorizer.set_params(idf=np.ones(3)).fit(
        ["(A b c)", "(B (A b c))", "(C d)"]
    )  # other trees, other columns
    assert vectorizer.transform(TREES).shape == (4, 3)
    hashed = vectorizer.set_params(n_features=64, idf=np.ones(64))
    assert hashed.transform(TREES).shape == (4, 64)


def test_numpys_booleans_are_booleans():
    for flag in (True, False):
        plain, other = (
            FragmentVectorizer(n_features=64, idf=kind(flag)).fit(TREES) for kind in (bool, np.bool_)
        )
        assert (plain.transform(TREES) != other.transform(TREES)).nnz == 0


def test_what_was_learned_is_not_used_with_other_settings():
    for settings_ in ({"n_features": None}, {"n_features": 64, "idf": True}):
        vectorizer = FragmentVectorizer(**settings_).fit(TREES)
        vectorizer.transform(TREES)
        with pytest.raises(ParameterError, match="fit again"):
            vectorizer.set_params(random_state=5).transform(TREES)
        assert vectorizer.set_params(random_state=0, decay=0.2).transform(TREES).nnz > 0


def repetitive(depth, arity):
    return "(y z)" if depth == 0 else f"(x{depth % 3} {' '.join([repetitive(depth - 1, arity)] * arity)})"


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "arity", "decay"), [(11, 2, 0.8), (6, 3, 1.0), (13, 2, 0.4), (8, 4, 1.0)])
def test_large_trees_neither_overflow_nor_fade(depth, arity, decay):
    large = read_trees([repetitive(depth, arity)])
    rows = FragmentVectorizer(decay=decay, rest="dense", rest_size=1024).transform(large)
    assert dot_products(rows)[0, 0] == pytest.approx(1.0, abs=1e-5)
    for composition in ("mixed", "product", "convolution"):
        vectors = DistributedTreeVectorizer(
            n_components=1024, decay=decay, composition=composition, normalize=True
        ).transform(large)
        assert (vectors.astype(float) ** 2).sum() == pytest.approx(1.0, abs=1e-5)


def test_a_tree_that_the_exact_kernel_refuses_has_no_rest_and_is_named():
    chain = "(A " * 20_000 + "b" + ")" * 20_000
    with pytest.raises(LimitError, match=r"length of tree 2 \(20001 nodes\).* use rest=None"):
        FragmentVectorizer(rest="dense", rest_size=256).transform(["(A b)", chain])


def test_too_many_open_nodes_are_refused(monkeypatch):
    deep = "(X (A a) " * 40 + "b" + ")" * 40
    monkeypatch.setattr("treedot.vectors.sparse.dense_rest.encode", lambda *_: (0, TOO_MANY_OPEN))
    with pytest.raises(LimitError, match=r"tree 1 \(121 nodes\) is too deep and wide for a dense rest"):
        FragmentVectorizer(rest="dense").transform([deep])


def test_a_linear_models_weight_of_a_fragment_is_a_product_with_its_row():
    vectorizer = FragmentVectorizer(decay=1.0, budget=None, damping="linear", normalize=False)
    model = LinearSVC(C=10).fit(vectorizer.transform(TREES), [0, 0, 1, 1])
    weight = {
        str(f): float((vectorizer.transform_fragment(f) @ model.coef_[0])[0])
        for f in list_fragments(TREES[0])
    }
    assert weight["(S A B)"] < 0 < float((vectorizer.transform_fragment("(T A C)") @ model.coef_[0])[0])
    score = sum(weight[str(f)] * value for f, value in list_fragments(TREES[0]).items()) + model.intercept_[0]
    assert score == pytest.approx(model.decision_function(vectorizer.transform(TREES[:1]))[0], abs=1e-5)


@pytest.mark.parametrize("n_features", [None, 2**30])
def test_a_dual_svms_weight_of_a_fragment_is_a_product_with_its_row(n_features):
    vectorizer = FragmentVectorizer(
        n_features=n_features, damping="linear", normalize=False, dtype="float64"
    ).fit(TREES)
    model = DualLinearSVC().fit(vectorizer.transform(TREES), [0, 0, 1, 1])
    weight = {
        f: dot_products(vectorizer.transform_fragment(f), model.coef_)[0, 0] for f in list_fragments(TREES[0])
    }
    values = bounded_fragment_values(Tree.parse(TREES[0]), 4, 0.4)
    score = sum(weight[f] * value for f, value in values.items()) + model.intercept_[0]
    assert score == pytest.approx(model.decision_function(vectorizer.transform(TREES[:1]))[0], abs=1e-9)


def test_rows_and_svm_make_a_pipeline():
    model = make_pipeline(FragmentVectorizer(), DualLinearSVC())
    assert model.fit(TREES, ["S", "S", "T", "T"]).predict(["(T (A e) (C e))"]).tolist() == ["T"]
    assert np.diagonal(dot_products(model[0].transform(TREES))) == pytest.approx(1.0, abs=1e-5)


def lists_of_items(*runs):
    """Return trees like JSON: lists of items that are alike but for their words."""
    item = " (item (op add) (path p{0}) (value v{0}))".format
    return [f"($ {''.join(map(item, range(first, last)))})" for first, last in runs]


def test_lists_that_share_little_are_not_taken_for_duplicates():
    pair = lists_of_items((0, 3), (100, 140))
    for seed in range(8):
        for rest in (None, "dense"):
            vectorizer = FragmentVectorizer(
                n_features=2**30, decay=0.2, damping="linear", rest=rest, random_state=seed
            )
            kernel = SubsetTreeKernel if rest else BoundedTreeKernel
            exact = kernel(0.2, normalize=True)(*pair)
            assert dot_products(vectorizer.transform(pair))[0, 1] == pytest.approx(
                exact, abs=0.02 if rest else 1e-6
            )


@pytest.mark.slow
@pytest.mark.parametrize("decay", [0.2, 0.4])
def test_a_dense_rest_holds_for_pairs_that_share_little_and_for_near_duplicates(decay):
    forest = Forest.concat(
        [
            read_trees(lists_of_items(*((k, k + 1 + k % 25) for k in range(0, 400, 10)))),
            random_forest(1, 40, 80),
        ]
    )
    labels = [*forest.labels, "another"]
    rng = np.random.default_rng(0)
    label = forest.label.copy()
    leaves = np.flatnonzero(forest.arity == 0)
    label[rng.choice(leaves, leaves.size // 25, replace=False)] = len(labels) - 1
    both = forest + Forest(label, forest.arity, forest.offsets, labels)
    exact = SubsetTreeKernel(decay, normalize=True).gram(both)
    n = len(forest)
    for seed in range(3):
        rows = FragmentVectorizer(n_features=2**30, decay=decay, rest="dense", random_state=seed).transform(
            both
        )
        assert np.diagonal(dot_products(rows)) == pytest.approx(1.0, abs=1e-4)
        error = dot_products(rows) - exact
        near = error[np.arange(n), np.arange(n, 2 * n)]
        assert np.sqrt(np.mean(error[:n, :n] ** 2)) < 0.02
        assert np.sqrt(np.mean(near**2)) < 0.05
        estimate = exact + error
        assert not ((estimate > 0.8) & (exact < 0.3)).any()
        assert not ((estimate < 0.5) & (exact > 0.8)).any()


def test_the_nearest_rows_with_a_dense_rest_are_those_of_their_products():
    rows = FragmentVectorizer(n_features=2**20, rest="dense", rest_size=512).transform(
        random_forest(3, 120, 40)
    )
    wanted = dot_products(rows)
    assert wanted == pytest.approx((rows @ rows.T).toarray(), abs=1e-5)
    np.fill_diagonal(wanted, -1)
    found, values = nearest(rows, k=3)
    assert values == pytest.approx(-np.sort(-wanted, axis=1)[:, :3], abs=1e-5)
    assert nearest(rows[:5], rows, k=1)[0].ravel().tolist() == [0, 1, 2, 3, 4]
    assert found.shape == (120, 3)


@pytest.mark.slow
@pytest.mark.corpus
def test_default_rows_classify_questions_as_the_exact_kernel_does():
    train, test = (read_trees(corpus(f"qc_{part}.tsv.gz")) for part in ("train", "test"))
    scores = []
    for seed in range(2):
        model = make_pipeline(FragmentVectorizer(random_state=seed), DualLinearSVC(n_jobs=-1))
        model.fit(train, train.columns["coarse"])
        scores.append(model.score(test, test.columns["coarse"]))
    assert np.mean(scores) >= 0.9
