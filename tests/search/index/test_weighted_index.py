"""An index with ``idf=True`` finds what rows weighted by a fitted vectorizer find, after every change."""

import numpy as np
import pytest

from strategies import random_forest
from treedot import FragmentVectorizer, TreeIndex, nearest
from treedot._storage.safetensors import read_arrays
from treedot.errors import ParameterError
from treedot.search.index import tree_index as module


def expected(queries, forest, k, **settings):
    vectorizer = FragmentVectorizer(n_features=2**30, idf=True, **settings).fit(forest)
    return nearest(vectorizer.transform(queries), vectorizer.transform(forest), k)


def check(index, forest, **settings):
    queries = random_forest(9, 12, 15)
    _, values = index.search(queries, 5)
    np.testing.assert_allclose(values, expected(queries, forest, 5, **settings)[1], atol=2e-6)
    _, values = index.search(forest, 1)
    np.testing.assert_allclose(values, 1, atol=2e-6)


@pytest.mark.parametrize("records", [50, 1 << 23])
def test_every_change_counts_the_fragments_again(tmp_path, monkeypatch, records):
    monkeypatch.setattr("treedot.search.index.inverted_index_writer.RECORDS", records)
    monkeypatch.setattr(module, "BATCH", 16)
    forest, more = random_forest(0, 70, 15), random_forest(1, 40, 15)
    index = TreeIndex.build(forest, tmp_path / "x", idf=True)
    assert index.idf
    check(index, forest)
    index.add(more)
    check(index, forest + more)
    index.remove(np.arange(0, 110, 3))
    kept = np.arange(110)[np.arange(110) % 3 > 0]
    opened = TreeIndex.open(tmp_path / "x")
    assert opened.idf
    check(opened, (forest + more)[kept])


def test_settings_of_the_vectorizer_stay(tmp_path):
    forest = random_forest(0, 30, 15)
    settings = {"damping": "log1p", "budget": 2, "dtype": "float64"}
    vectorizer = FragmentVectorizer(n_features=2**30, **settings)
    check(TreeIndex.build(forest, tmp_path / "x", vectorizer, idf=True), forest, **settings)


def test_threads_do_not_change_the_file_or_the_results(tmp_path):
    forest, queries = random_forest(0, 60, 15), random_forest(1, 9, 15)
    one = TreeIndex.build(forest, tmp_path / "one", idf=True, n_jobs=1)
    two = TreeIndex.build(forest, tmp_path / "two", idf=True, n_jobs=3)
    assert one.path.read_bytes() == two.path.read_bytes()
    for a, b in zip(one.search(queries, n_jobs=1), two.search(queries, n_jobs=4), strict=True):
        assert (a == b).all()


def test_trees_without_fragments_and_unknown_fragments_are_harmless(tmp_path):
    index = TreeIndex.build(["(a)", "(A b)", "(A c)"], tmp_path / "x", idf=True)
    _, values = index.search(["(a)", "(X y)", "(A b)"], 1)
    np.testing.assert_allclose(values[:, 0], [0, 0, 1], atol=1e-6)


@pytest.mark.parametrize("settings", [{"normalize": False}, {"idf": np.ones(2**20)}, {"rest": "dense"}])
def test_rows_that_cannot_be_weighted_are_refused(tmp_path, settings):
    with pytest.raises(ParameterError, match="idf=True weighs normalised rows"):
        TreeIndex.build(["(A b)"], tmp_path / "x", FragmentVectorizer(**settings), idf=True)


def test_only_a_weighted_index_has_the_new_version(tmp_path):
    for idf, version in ((False, 1), (True, 3)):
        TreeIndex.build(["(A b)"], tmp_path / str(idf), idf=idf)
        assert read_arrays(tmp_path / str(idf))[0]["version"] == version
