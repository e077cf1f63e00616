"""Posting lists against scipy's own turning of rows into columns."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array, vstack

from treedot.search.index import inverted_index_writer


def rows(count, columns, seed, skewed):
    random = np.random.default_rng(seed)
    found = csr_matrix(random_array((count, 400), density=0.1, rng=random, dtype=np.float32))
    place = np.sort(random.choice(columns, 400, replace=False))
    if skewed:  # most columns stand in one place
        place[50:] = columns - 350 + np.arange(350)
    return csr_matrix((found.data, place[found.indices], found.indptr), shape=(count, columns))


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("columns", [400, 2**30, 2**40])
@pytest.mark.parametrize("records", [1, 300, 10**6])
def test_lists_are_the_columns_of_the_matrix(tmp_path, monkeypatch, skewed, columns, records):
    monkeypatch.setattr(inverted_index_writer, "RECORDS", records)
    monkeypatch.setattr(inverted_index_writer, "BUCKETS", 7)
    parts = [rows(count, columns, count, skewed) for count in (30, 0, 1, 45)]
    with inverted_index_writer.InvertedIndexWriter(tmp_path / "x") as collected:
        for part in parts:
            collected.add(part)
        found = {name: file.read(0, len(file)) for name, file in collected.finish(n_jobs=2).items()}
    whole = vstack(parts, format="coo")
    order = np.lexsort((whole.row, whole.col))
    column, start = np.unique(whole.col[order], return_index=True)
    assert (found["column"] == column).all()
    assert (found["start"] == [*start, whole.nnz]).all()
    assert (found["row"] == whole.row[order]).all()
    assert (found["value"] == whole.data[order]).all()
    assert found["column"].dtype == (np.int64 if columns > 2**31 else np.int32)


def test_rows_without_anything_make_no_lists(tmp_path):
    with inverted_index_writer.InvertedIndexWriter(tmp_path / "x") as collected:
        collected.add(csr_matrix((3, 100), dtype=np.float32))
        assert {name: len(file) for name, file in collected.finish().items()} == {
            "column": 0,
            "start": 1,
            "row": 0,
            "value": 0,
        }
