"""An index with a metric finds what the dot products of all vectors find."""

import numpy as np
import pytest

from strategies import random_forest
from treedot import FragmentVectorizer, TreeIndex
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.errors import ParameterError, SourceError
from treedot.models import TreeMetric
from treedot.search.index import learned_search

FOREST, QUERIES = random_forest(0, 60, 15), random_forest(1, 9, 15)
SEEDS = (1, 2, 3)


def metric_of(seed, n_columns=128, **settings):
    groups = np.random.default_rng(seed).integers(0, 8, len(FOREST))
    return TreeMetric(n_columns=n_columns, shrinkage=1.0, **settings).fit(FOREST, groups).metric_


def wanted(metric, queries, k):
    """Return the best rows and values by the dot products of the vectors."""
    products = queries.astype(float) @ metric.transform(FOREST).T.astype(float)
    rows = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return rows, np.take_along_axis(products, rows, axis=1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("settings", [{}, {"vectorizer": FragmentVectorizer(n_features=None, idf=True)}])
def test_a_search_finds_what_all_vectors_find(tmp_path, monkeypatch, seed, settings):
    monkeypatch.setattr(learned_search, "STEP", 50)
    metric = metric_of(seed, **settings)
    index = TreeIndex.build(FOREST, tmp_path / "x", metric=metric)
    for n_jobs in (1, 2):
        rows, values = index.search(QUERIES, k=60, n_jobs=n_jobs)
        _, expected = wanted(metric, metric.transform(QUERIES), 60)
        assert values == pytest.approx(expected, abs=2e-6)
        found = metric.transform(QUERIES) @ metric.transform(FOREST).T
        assert np.take_along_axis(found, rows, axis=1) == pytest.approx(values, abs=2e-6)
    assert index.search(FOREST, k=1)[1] == pytest.approx(1, abs=2e-6)


@pytest.mark.parametrize("expand", [1, 5, 100])
def test_a_query_is_expanded_by_its_own_nearest(tmp_path, expand):
    metric = metric_of(1)
    index = TreeIndex.build(FOREST, tmp_path / "x", metric=metric)
    near, _ = wanted(metric, metric.transform(QUERIES), expand)
    queries = metric.transform(QUERIES) + metric.transform(FOREST)[near].sum(axis=1)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    assert index.search(QUERIES, k=7, expand=expand)[1] == pytest.approx(
        wanted(metric, queries, 7)[1], abs=2e-6
    )


def test_the_rows_can_be_searched_without_the_metric(tmp_path):
    metric = metric_of(1)
    index = TreeIndex.build(FOREST, tmp_path / "x", metric=metric)
    plain = TreeIndex.build(FOREST, tmp_path / "y", index.vectorizer)
    assert plain.metric is None
    for found, expected in zip(index.search(QUERIES, learned=False), plain.search(QUERIES), strict=True):
        assert (found == expected).all()
    with pytest.raises(ParameterError, match="expand needs an index that holds a metric"):
        plain.search(QUERIES, expand=3)


def test_an_index_keeps_its_metric_when_it_changes(tmp_path):
    metric = metric_of(1)
    index = TreeIndex.build(FOREST[:40], tmp_path / "x", metric=metric)
    index.add(FOREST[40:])
    index.remove([0, 50])
    kept = np.setdiff1d(np.arange(60), [0, 50])
    TreeIndex.build(FOREST[kept], tmp_path / "y", metric=metric)
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()
    assert TreeIndex.open(tmp_path / "x").metric.fingerprint == metric.fingerprint


def test_a_metric_that_does_not_fit_is_refused(tmp_path):
    rows = TreeMetric(shrinkage=1.0).fit(np.eye(4), [0, 0, 1, 1]).metric_
    with pytest.raises(ParameterError, match="learned from trees"):
        TreeIndex.build(FOREST, tmp_path / "x", metric=rows)
    with pytest.raises(ParameterError, match="leave out vectorizer"):
        TreeIndex.build(FOREST, tmp_path / "x", FragmentVectorizer(), metric=metric_of(1))
    with pytest.raises(ParameterError, match="metric must be a Metric, not TreeMetric"):
        TreeIndex.build(FOREST, tmp_path / "x", metric=TreeMetric())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda description, arrays: description["metric"].update(width=7), "does not fit the rows"),
        (lambda description, arrays: description.update(metric=[]), "does not fit the rows"),
        (lambda description, arrays: description.update(version=1), "version 1"),
        (lambda description, arrays: arrays.pop("metric.row_length"), "'row_length' is damaged"),
        (lambda description, arrays: arrays["metric.vector_length"].__setitem__(3, 0), "'vector_length'"),
        (lambda description, arrays: arrays.pop("metric.tiles"), "'tiles' is not an array"),
        (lambda description, arrays: arrays["lists.row"].__setitem__(3, 60), "out of order"),
        (lambda description, arrays: arrays["lists.row"].__setitem__(3, -1), "out of order"),
        (lambda description, arrays: arrays["lists.value"].__setitem__(3, np.nan), "not finite"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path, change, message):
    TreeIndex.build(FOREST, tmp_path / "x", metric=metric_of(1))
    description, arrays = read_arrays(tmp_path / "x")
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(description, arrays)
    write_arrays(tmp_path / "y", description, arrays)
    with pytest.raises(SourceError, match=message):
        TreeIndex.open(tmp_path / "y").search(QUERIES)
