"""``TreeMetric`` against a short definition in NumPy, on generated and on real trees."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array
from sklearn.exceptions import NotFittedError

from components import component
from strategies import corpus, examples
from treedot import Forest, FragmentVectorizer, Tree, Vectors, read_trees
from treedot.errors import DeviceError, ParameterError, RangeError, SourceError
from treedot.models import TreeMetric
from treedot.models.training import scatter_on_gpu
from treedot.models.training.metric_choice import held_out_groups
from treedot.models.training.retrieval import map_at_r
from treedot.models.training.scatter import ScatterInMemory
from treedot.models.training.scatter_on_gpu import ScatterOnGpu
from treedot.vectors import Metric
from treedot.vectors.metric.folding import Folding
from treedot.vectors.metric.triangle import square, tiles_of

SEEDS = (1, 2, 3)


def units(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def within(rows, groups):
    """Return the covariance of rows around the means of their groups."""
    centred = rows.astype(float).copy()
    for group in set(groups):
        centred[groups == group] -= centred[groups == group].mean(axis=0)
    return centred.T @ centred / len(rows)


def defined(rows, groups, a, new):
    """Return the vectors of new rows: ``(S + a t I)^(-1/2) (x - m)``, of length 1."""
    rows, new = units(rows), units(new)
    S = within(rows, groups)
    t = np.trace(S) / len(S)
    values, vectors = np.linalg.eigh(S + a * (t or 1.0) * np.eye(len(S)))
    root = vectors / np.sqrt(values) @ vectors.T
    return units((new - rows.mean(axis=0)) @ root)


def average_precision(vectors, groups):
    """Return the mean average precision at R by its definition."""
    scores = []
    for i in range(len(groups)):
        others = [j for j in range(len(groups)) if j != i]
        others.sort(key=lambda j: (-(vectors[i] @ vectors[j]), j))
        right = [groups[j] == groups[i] for j in others]
        if r := sum(right):
            scores.append(sum(sum(right[: k + 1]) / (k + 1) for k in range(r) if right[k]) / r)
    return np.mean(scores) if scores else 0.0


def grouped(seed, n_groups=8, members=6):
    """Return trees in groups: each member has two of its group's topics, and many of twelve styles."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), members)
    topics = rng.integers(0, 40, (n_groups, 5))
    trees = [
        Tree(
            "R",
            [Tree(f"T{t}", ["x"]) for t in rng.choice(topics[g], 2)]
            + [Tree(f"S{s}", ["y"]) for s in rng.integers(0, 12, 10)],
        )
        for g in groups
    ]
    return Forest.from_trees(trees), groups


def sparse_rows(seed, shape=(60, 40), density=0.2):
    rng = np.random.default_rng(seed)
    rows = csr_matrix(random_array(shape, density=density, rng=rng, data_sampler=rng.standard_normal))
    return rows, rng.integers(0, 9, shape[0])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("a", [0.1, 1.0, 6.0])
def test_the_vectors_of_dense_rows_follow_the_definition(seed, a):
    rng = np.random.default_rng(seed)
    rows, groups, new = rng.standard_normal((50, 70)), rng.integers(0, 7, 50), rng.standard_normal((9, 70))
    found = TreeMetric(shrinkage=a).fit(rows, groups).transform(new)
    wanted = defined(rows, groups, a, new)
    assert found.dtype == np.float32
    assert found @ found.T == pytest.approx(wanted @ wanted.T, abs=2e-5)


@settings(deadline=None, max_examples=examples(20))
@given(st.integers(0, 10**6), st.integers(1, 150), st.floats(0.02, 1.0), st.integers(1, 12))
def test_the_vectors_of_sparse_rows_follow_the_definition(seed, width, density, n_groups):
    rng = np.random.default_rng(seed)
    rows = random_array((40, width), density=density, rng=rng, data_sampler=rng.standard_normal).tocsr()
    groups = rng.integers(0, n_groups, 40)
    found = TreeMetric(shrinkage=0.5, n_columns=256).fit(csr_matrix(rows), groups).transform(csr_matrix(rows))
    wanted = defined(rows.toarray(), groups, 0.5, rows.toarray())
    assert found @ found.T == pytest.approx(wanted @ wanted.T, abs=5e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_vectors_of_trees_follow_the_definition_on_hashed_rows(seed):
    forest, groups = grouped(seed)
    model = TreeMetric(n_columns=128, shrinkage=1.0).fit(forest, groups)
    rows = FragmentVectorizer(n_features=2**30, idf=True).fit(forest).transform(forest)
    hashed = np.zeros((len(forest), 128))
    folding = Folding(2**30, 128)
    for i in range(len(forest)):
        columns, signs = folding.places(rows[i].indices)
        np.add.at(hashed[i], columns, signs * rows[i].data)
    wanted = defined(hashed, groups, 1.0, hashed)
    found = model.transform(forest)
    assert found @ found.T == pytest.approx(wanted @ wanted.T, abs=2e-5)


def test_hashed_columns_and_signs_are_frozen():
    columns, signs = Folding(2**30, 2**13).places(np.array([0, 1, 2, 12345, 2**30 - 1]))
    assert columns.tolist() == [7236, 3535, 216, 5575, 2330]
    assert signs.tolist() == [-1, 1, -1, -1, -1]


def test_hashed_columns_are_spread_evenly_with_even_signs():
    columns, signs = Folding(2**30, 64).places(np.arange(64_000))
    counts = np.bincount(columns, minlength=64)
    assert (np.abs(counts - 1000) < 6 * np.sqrt(1000)).all()
    assert abs(signs.sum()) < 6 * np.sqrt(64_000)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("density", [0.03, 0.5])
def test_the_scatter_is_exact_and_adds_up_over_groups(seed, density, monkeypatch):
    monkeypatch.setattr("treedot.models.training.scatter.BATCH", 16)
    rows, groups = sparse_rows(seed, (70, 50), density)
    groups = np.unique(groups, return_inverse=True)[1]
    wanted = within(rows.toarray(), groups) * 70
    some = groups < 4
    parts = ScatterInMemory(50)
    parts.add(rows[some], groups[some])
    parts.add(rows[~some], groups[~some] - 4)
    for n_jobs in (1, 2):
        whole = ScatterInMemory(50, n_jobs)
        whole.add(rows, groups)
        assert np.triu(whole._total) == pytest.approx(np.triu(wanted), abs=1e-12)
        assert np.triu(parts._total) == pytest.approx(np.triu(wanted), abs=1e-12)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
def test_tiles_hold_the_upper_triangle(size):
    matrix = np.random.default_rng(size).standard_normal((size, size)).astype(np.float32)
    assert (square(tiles_of(matrix), size) == np.triu(matrix)).all()


@pytest.mark.parametrize("size", [50, 64, 130])
def test_a_gpu_gives_the_same_metric(size, monkeypatch):
    torch = component("torch")
    monkeypatch.setattr(scatter_on_gpu, "open_device", lambda name: torch.device("cpu"))
    rows, groups = sparse_rows(size, (80, size))
    dense = rows.toarray()
    for given_rows in (rows, dense):
        here = TreeMetric(n_columns=256, shrinkage=(0.5, 2.0)).fit(given_rows, groups)
        there = TreeMetric(n_columns=256, shrinkage=(0.5, 2.0), device="cuda").fit(given_rows, groups)
        assert there.shrinkage_ == here.shrinkage_
        assert there.scores_ == pytest.approx(here.scores_)
        assert there.metric_.tiles == pytest.approx(here.metric_.tiles, rel=1e-4, abs=1e-5)
    singular = ScatterOnGpu(3, "cuda")
    singular.add(np.full((2, 3), np.nan), np.array([0, 0]))
    with pytest.raises(RangeError, match="larger shrinkage"):
        singular.factor(1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_average_precision_follows_its_definition(seed, monkeypatch):
    monkeypatch.setattr("treedot.models.training.retrieval.TILE", 7)
    rng = np.random.default_rng(seed)
    vectors, groups = rng.integers(-2, 3, (40, 3)).astype(float), rng.integers(0, 8, 40)
    groups[:2] = 100, 101  # without other members
    assert map_at_r(vectors, groups) == pytest.approx(average_precision(vectors, groups))
    assert map_at_r(vectors[:2], groups[:2]) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_members_of_unseen_groups_are_found_in_spite_of_what_varies_within_groups(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(60), 8)
    varying = rng.standard_normal((480, 5)) @ rng.standard_normal((5, 40))
    rows = rng.standard_normal((60, 40))[groups] + 2 * varying + 0.3 * rng.standard_normal((480, 40))
    known = groups < 40
    model = TreeMetric().fit(rows[known], groups[known])
    plain = map_at_r(units(rows[~known] - rows[known].mean(axis=0)), groups[~known])
    assert plain < 0.5
    assert map_at_r(model.transform(rows[~known]), groups[~known]) > 0.9


def test_settings_are_chosen_on_groups_that_the_covariance_has_not_seen():
    forest, groups = grouped(7, n_groups=12)
    model = TreeMetric(n_columns=(64, 256), shrinkage=(0.5, 2.0), random_state=3).fit(forest, groups)
    held = held_out_groups(groups, 0.25, 3)
    assert 0 < held.sum() < held.size
    assert not set(groups[held]) & set(groups[~held])
    rows = FragmentVectorizer(n_features=2**30, idf=True).fit(forest).transform(forest)
    for (n_columns, a), score in model.scores_.items():
        folded = Folding(2**30, n_columns).sparse(rows).toarray()
        wanted = map_at_r(defined(folded[~held], groups[~held], a, folded[held]), groups[held])
        assert score == pytest.approx(wanted, abs=1e-9)
    assert (model.n_columns_, model.shrinkage_) == max(model.scores_, key=model.scores_.get)
    fixed = TreeMetric(n_columns=model.n_columns_, shrinkage=model.shrinkage_).fit(forest, groups)
    assert (fixed.metric_.tiles == model.metric_.tiles).all()
    assert fixed.scores_ == {}


def test_progress_counts_the_steps():
    forest, groups = grouped(1)
    steps = []
    TreeMetric(n_columns=64, shrinkage=(1.0, 2.0)).fit(
        forest, groups, progress=lambda *step: steps.append(step)
    )
    assert steps == [(1, 3), (2, 3), (3, 3)]


def test_groups_of_equal_trees_leave_the_centred_rows():
    rows = np.eye(4)[[0, 0, 1, 1, 2, 2]]
    found = TreeMetric(shrinkage=1.0).fit(rows, list("aabbcc")).transform(rows)
    assert found == pytest.approx(units(rows - rows.mean(axis=0)), abs=1e-6)


def test_rows_of_zeros_and_no_rows_are_mapped():
    rows, groups = sparse_rows(5)
    model = TreeMetric(shrinkage=1.0).fit(rows, groups)
    assert np.isfinite(model.transform(csr_matrix((2, 40)))).all()
    assert model.transform(rows[:0]).shape == (0, 40)


def test_a_stored_metric_gives_the_same_vectors(tmp_path):
    forest, groups = grouped(2)
    model = TreeMetric(n_columns=64, shrinkage=(0.5, 1.0)).fit(forest, groups)
    model.save(tmp_path / "m")
    wanted = model.transform(forest)
    loaded = Metric.load(tmp_path / "m")
    assert (loaded.transform(forest) == wanted).all()
    assert loaded.fingerprint == model.metric_.fingerprint
    again = TreeMetric.load(tmp_path / "m")
    assert (again.transform(forest) == wanted).all()
    assert (again.n_columns_, again.shrinkage_, again.scores_) == (64, model.shrinkage_, model.scores_)
    with pytest.raises(SourceError, match="use overwrite=True"):
        model.save(tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    again.save(tmp_path / "m", overwrite=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config.update(format="treedot model"), "does not describe a treedot metric"),
        (lambda config: config.update(version=2), "version 2"),
        (lambda config: config.update(n_columns=65), "was changed after"),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path, change, message):
    TreeMetric(shrinkage=1.0).fit(*sparse_rows(1)).save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    change(config)
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(SourceError, match=message):
        Metric.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("settings", "arrays", "message"),
    [
        ({"n_columns": 3}, {}, "maps 40 columns to 3"),
        ({"n_columns": True}, {}, "maps 40 columns to True"),
        ({"width": None}, {}, "maps None columns"),
        ({"facts": []}, {}, "facts"),
        ({"rows": {"kind": "x"}}, {}, "rows cannot be rebuilt"),
        ({}, {"mean": np.zeros(3)}, "'mean' is not an array of 40"),
        ({}, {"tiles": np.zeros(4096)}, "'tiles' is not an array of 4096 finite float32"),
        ({}, {"tiles": np.full(4096, np.nan, np.float32)}, "'tiles' is not an array of 4096 finite"),
    ],
)
def test_stored_settings_that_contradict_each_other_are_refused(settings, arrays, message):
    metric = TreeMetric(shrinkage=1.0).fit(*sparse_rows(1)).metric_
    with pytest.raises(SourceError, match=message):
        Metric.from_stored(metric.settings | settings, metric.arrays | arrays)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_columns": 100}, "n_columns must be a power of two up to 32768, not 100"),
        ({"n_columns": 2**16}, "n_columns must be a power of two"),
        ({"n_columns": ()}, "at least one value"),
        ({"shrinkage": 0}, "shrinkage must be a number above 0"),
        ({"held_out": 1.0}, "held_out must be a share below 1"),
        ({"random_state": -1}, "random_state must be at least 0"),
        ({"vectorizer": "x"}, "vectorizer must be a FragmentVectorizer"),
        ({"device": "tpu"}, "device must be 'cpu', 'cuda'"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    forest, groups = grouped(1, 4, 2)
    with pytest.raises(RuntimeError if "device" in options else ValueError, match=message):
        TreeMetric(**{"n_columns": 64, "shrinkage": 1.0} | options).fit(forest, groups)


def test_a_device_without_pytorch_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it was not installed
    with pytest.raises(DeviceError, match="needs PyTorch, which is not installed"):
        TreeMetric(n_columns=64, shrinkage=1.0, device="cuda").fit(*grouped(1, 4, 2))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0] * 5, "one group for each of the 6 trees, not 5"),
        ([0, 0, None, 1, 1, 1], "tree 3 has no group"),
        ([0, 0, float("nan"), 1, 1, 1], "tree 3 has no group"),
        (range(6), "no group has two members"),
        ([0, 0, 0, 1, 1, 1], "at least 4 groups of two trees or more, not 2"),
    ],
)
def test_groups_that_teach_nothing_are_refused(y, message):
    with pytest.raises(ParameterError, match=message):
        TreeMetric().fit(np.eye(6), y)


def test_rows_that_do_not_fit_are_refused():
    rows, groups = sparse_rows(1)
    model = TreeMetric(shrinkage=1.0).fit(rows, groups)
    with pytest.raises(ParameterError, match="3 columns, but the metric has learned 40"):
        model.transform(np.ones((2, 3)))
    with pytest.raises(ParameterError, match="learned from rows, not from trees"):
        model.transform(["(A b)"])
    with pytest.raises(ParameterError, match="expected rows of shape"):
        model.transform(np.ones(40))
    with pytest.raises(ParameterError, match="not finite"):
        model.transform(np.full((1, 40), np.inf))
    with pytest.raises(NotFittedError):
        TreeMetric().transform(rows)
    wide = TreeMetric(n_columns=32, shrinkage=1.0).fit(
        csr_matrix(np.random.default_rng(0).random((9, 40))), [0] * 9
    )
    with pytest.raises(ParameterError, match="cannot be hashed"):
        wide.transform(np.ones((2, 40)))


def test_vectors_with_settings_are_rows():
    vectorizer = FragmentVectorizer(n_features=2**10)
    forest, groups = grouped(1)
    rows = vectorizer.transform(forest)
    model = TreeMetric(n_columns=64, shrinkage=1.0).fit(Vectors(rows, vectorizer.spec), groups)
    wanted = TreeMetric(n_columns=64, shrinkage=1.0).fit(rows, groups)
    assert (model.transform(rows) == wanted.transform(rows)).all()


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_vectors_of_clones_in_bigclonebench_follow_the_definition(seed):
    trees = read_trees(corpus("bcb_functions.tsv.gz"))
    names = np.array(trees.columns["clone_class"])
    large = [name for name in sorted(set(names)) if 20 <= np.count_nonzero(names == name) < 60]
    order = np.random.default_rng(seed).permutation(large)[:12]
    known, new = (np.flatnonzero(np.isin(names, part)) for part in (order[:8], order[8:]))
    model = TreeMetric(n_columns=256, shrinkage=1.0).fit(trees[known], names[known])
    rows, hashed = (
        model.metric_.folding.sparse(model.metric_.rows_of(trees[part])).toarray() for part in (known, new)
    )
    found, wanted = model.transform(trees[new]), defined(rows, names[known], 1.0, hashed)
    assert found @ found.T == pytest.approx(wanted @ wanted.T, abs=1e-4)
