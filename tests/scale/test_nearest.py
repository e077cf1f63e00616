"""The nearest of all trees of many files are those that ``nearest`` finds among all of them at once."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    IncompleteError,
    ParameterError,
    SourceError,
    SpecMismatchError,
    nearest,
    scale,
)
from treedot.scale import Reading
from treedot.search.running_nearest import RunningNearest
from treedot.trees.arrow import pa

SPARSE = FragmentVectorizer(n_features=2**12)
DENSE = DistributedTreeVectorizer(n_components=256)
WITH_REST = FragmentVectorizer(n_features=2**12, rest="dense", rest_size=256)
TREES = [str(tree) for tree in random_forest(0, 120)] * 2  # every tree twice, so that there are ties
QUERIES = [*TREES[7:10], "(unheard (of x))"]


@pytest.fixture
def tables(tmp_path):
    """Return a folder with two tables that are cut into several shards."""
    (tmp_path / "in").mkdir()
    for number, rows in enumerate((range(90), range(90, 240))):
        lines = "".join(f"{TREES[i]}\tid {i}\n" for i in rows)
        (tmp_path / "in" / f"{number}.tsv").write_text("tree\tid\n" + lines)
    return tmp_path / "in"


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.mark.parametrize("vectorizer", [SPARSE, DENSE, WITH_REST], ids=["sparse", "dense", "with a rest"])
def test_the_nearest_of_all_files_are_found(tables, tmp_path, pool, vectorizer):
    how = {"k": 5, "vectorizer": vectorizer, "shard_size": 2000}
    found = scale.nearest(QUERIES, tables, tmp_path / "out", pool, **how)
    rows, values = nearest(vectorizer.transform(QUERIES), vectorizer.transform(TREES), k=5)
    assert found["query"].to_pylist() == np.repeat(np.arange(4), 5).tolist()
    assert found["rank"].to_pylist() == [1, 2, 3, 4, 5] * 4
    assert np.allclose(found["similarity"], values.ravel(), atol=1e-6)
    if vectorizer is SPARSE:  # of dense vectors, equal trees may differ in the last bit
        assert found["row"].to_pylist() == rows.ravel().tolist()
        assert (found["similarity"].to_numpy() == values.ravel()).all()
    row = found["row"].to_pylist()
    assert found["tree"].to_pylist() == [TREES[i] for i in row]
    assert found["id"].to_pylist() == [f"id {i}" for i in row]
    assert [os.path.basename(path) for path in found["file"].to_pylist()] == [
        "0.tsv" if i < 90 else "1.tsv" for i in row
    ]
    assert pa.ipc.open_file(str(tmp_path / "out" / "nearest.arrow")).read_all().equals(found)
    assert scale.status(tmp_path / "out").missing == []
    (tmp_path / "out" / "nearest.arrow").unlink()
    assert scale.status(tmp_path / "out").missing == ["nearest.arrow"]


@pytest.mark.parametrize("vectorizer", [SPARSE, DENSE, WITH_REST], ids=["sparse", "dense", "with a rest"])
def test_vectors_that_are_there_are_searched_as_they_are(tables, tmp_path, pool, vectorizer):
    scale.encode(tables, tmp_path / "rows", vectorizer, pool, shard_size=2000)
    expected = scale.nearest(
        QUERIES, tables, tmp_path / "a", pool, k=3, vectorizer=vectorizer, shard_size=2000
    )
    found = scale.nearest(QUERIES, tmp_path / "rows", tmp_path / "b", pool, k=3)
    for name in ("query", "rank", "similarity", "row", "id"):
        assert found[name].equals(expected[name])
    assert "tree" not in found.column_names
    assert scale.nearest(QUERIES, iter([tmp_path / "rows"]), tmp_path / "d", pool, k=3).equals(found)
    with pytest.raises(ParameterError, match="rows is a folder of parts: give it alone"):
        scale.nearest(QUERIES, [tables, tmp_path / "rows"], tmp_path / "c", pool)
    with pytest.raises(ParameterError, match="holds vectors: leave out the vectorizer"):
        scale.nearest(QUERIES, tmp_path / "rows", tmp_path / "c", pool, vectorizer=vectorizer)
    with pytest.raises(ParameterError, match="how trees are read"):
        scale.nearest(QUERIES, tmp_path / "rows", tmp_path / "c", pool, reading=Reading(skip_bad=True))
    with pytest.raises(SourceError, match="does not hold vectors"):
        scale.nearest(QUERIES, tmp_path / "b", tmp_path / "c", pool)
    assert not (tmp_path / "c").exists()


def test_shares_find_the_same_and_the_last_one_merges(tables, tmp_path, pool):
    expected = scale.nearest(QUERIES, tables, tmp_path / "a", pool, shard_size=2000)
    for share in ((2, 3), (3, 3)):
        assert scale.nearest(QUERIES, tables, tmp_path / "b", pool, share=share, shard_size=2000) is None
    found = scale.nearest(QUERIES, tables, tmp_path / "b", pool, share=(1, 3), shard_size=2000)
    assert found.equals(expected)
    for folder in "ab":
        names = sorted(os.listdir(tmp_path / folder))
        assert names == sorted(os.listdir(tmp_path / "a"))
        assert names[:3] == ["_queries.arrow", "_treedot.json", "_vectorizer"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_fewer_trees_than_k_are_all_found(tmp_path, pool):
    (tmp_path / "few.mrg").write_text("(A b) (A c)")
    (tmp_path / "none.mrg").write_text("")
    found = scale.nearest(["(A b)", "(A d)"], tmp_path / "*.mrg", tmp_path / "out", pool, k=5)
    assert found["query"].to_pylist() == [0, 0, 1, 1]
    assert found["row"].to_pylist() == [0, 1, 0, 1]
    assert found["rank"].to_pylist() == [1, 2, 1, 2]


def test_columns_that_begin_late_come_along(tmp_path, pool):
    (tmp_path / "a.jsonl").write_text('{"tree": "(A b)"}\n{"tree": "(A c)", "n": 3}\n')
    (tmp_path / "b.jsonl").write_text('{"tree": "(A b)", "n": 0.5, "who": null}\n')
    found = scale.nearest(["(A b)"], tmp_path / "*.jsonl", tmp_path / "out", pool, shard_size=1)
    assert found["n"].to_pylist() == [None, 0.5, 3.0]


def test_what_makes_no_sense_is_refused(tables, tmp_path, pool):
    out = tmp_path / "out"
    with pytest.raises(ParameterError, match="k must be at least 1"):
        scale.nearest(QUERIES, tables, out, pool, k=0)
    with pytest.raises(ParameterError, match="no query"):
        scale.nearest([], tables, out, pool)
    with pytest.raises(ParameterError, match="share"):
        scale.nearest(QUERIES, tables, out, pool, share=(2, 1))
    assert not out.exists()
    scale.nearest(QUERIES, tables, out, pool)
    for other, said in (
        ({"k": 3}, r"\(k 10, and not 3\)"),
        ({"vectorizer": SPARSE}, r"\(vectors \w+, and not \w"),
    ):
        with pytest.raises(SpecMismatchError, match=said):
            scale.nearest(QUERIES, tables, out, pool, **other)
    with pytest.raises(SpecMismatchError):
        scale.nearest(QUERIES[:2], tables, out, pool)
    (tables / "0.tsv").write_text("tree\tquery\n(A b)\t1\n")
    with pytest.raises(IncompleteError, match=r"rename the column\(s\) \['query'\]"):
        scale.nearest(QUERIES, tables / "0.tsv", tmp_path / "other", pool)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 7), count=st.integers(1, 30), at_a_time=st.integers(1, 9))
def test_rows_that_come_some_at_a_time_give_the_same_neighbours(seed, k, count, at_a_time):
    trees = [str(tree) for tree in random_forest(seed, count)]
    for vectorizer in (SPARSE, DENSE):
        rows, queries = vectorizer.transform(trees), vectorizer.transform(trees[:3])
        best = RunningNearest(queries, k)
        for start in range(0, count, at_a_time):
            chosen = best.add(rows[start : start + at_a_time])
            assert (np.diff(chosen) > 0).all()
            assert set(chosen + start) == {row for row in best.ranked()[0].ravel().tolist() if row >= start}
        found, values = best.ranked()
        expected, similarities = nearest(queries, rows, k=k)
        assert np.allclose(values[:, : expected.shape[1]], similarities, atol=1e-6)
        assert (found[:, expected.shape[1] :] == -1).all()
        if vectorizer is SPARSE:
            assert (found[:, : expected.shape[1]] == expected).all()


@pytest.mark.parametrize("name", ["query", "rank", "similarity", "row"])
def test_a_column_with_a_name_of_the_result_is_to_be_renamed(tmp_path, pool, name):
    (tmp_path / "t.tsv").write_text(f"tree\t{name}\n(S (A a))\t7\n")
    with pytest.raises(IncompleteError, match=rf"rename the column\(s\) \['{name}'\]"):
        scale.nearest(["(A a)"], tmp_path / "t.tsv", tmp_path / "out", pool)


@pytest.mark.parametrize("paths", [3, ["trees.mrg", 3], None])
def test_what_is_no_path_is_refused(tmp_path, pool, paths):
    with pytest.raises(ParameterError, match="paths must be a path, or an iterable of paths"):
        scale.nearest(["(A a)"], paths, tmp_path / "out", pool)


def test_every_neighbour_has_a_file_where_some_say_their_own(tmp_path, pool):
    (tmp_path / "a.tsv").write_text("tree\tfile\n(S (A a) b)\tof a.c\n")
    (tmp_path / "b.tsv").write_text("tree\tid\n(S (A a) c)\t1\n")
    found = scale.nearest(["(A a)"], tmp_path / "*.tsv", tmp_path / "out", pool)
    assert found["file"].to_pylist() == ["of a.c", str(tmp_path / "b.tsv")]
