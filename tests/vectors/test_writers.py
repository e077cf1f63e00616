"""Files of sparse rows: streamed, and the same bytes that scipy would write from memory."""

import io
import json
from zipfile import ZipFile

import numpy as np
import pytest
from scipy.sparse import csr_matrix, load_npz, random_array, save_npz, vstack

from treedot.vectors import SparseSpec
from treedot.vectors.writers import matrix_rows, vector_file


def batches(dtype):
    random = np.random.default_rng(0)
    return [csr_matrix(random_array((n, 2**12), density=0.01, rng=random, dtype=dtype)) for n in (5, 0, 7, 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [0, 4])
def test_streamed_rows_are_the_file_that_scipy_writes(tmp_path, monkeypatch, dtype, count):
    monkeypatch.setattr("treedot._storage.growing_array.CHUNK", 50)
    parts = [csr_matrix((0, 2**12), dtype=dtype), *batches(dtype)[:count]]
    spec = SparseSpec(2**12, dtype=dtype)
    with vector_file(tmp_path / "rows.npz", spec) as file:
        for part in parts:
            file.write(part, {})
    save_npz(tmp_path / "wanted.npz", vstack(parts, format="csr"), compressed=False)
    with ZipFile(tmp_path / "rows.npz") as rows, ZipFile(tmp_path / "wanted.npz") as wanted:
        *members, description = rows.infolist()
        assert [member.filename for member in members] == wanted.namelist()
        end = description.header_offset
        assert end == wanted.start_dir
        assert json.loads(rows.read(description)) == {**spec.to_dict(), "fingerprint": spec.fingerprint}
    assert (tmp_path / "rows.npz").read_bytes()[:end] == (tmp_path / "wanted.npz").read_bytes()[:end]
    found = load_npz(tmp_path / "rows.npz")
    assert found.dtype == dtype
    assert (found != vstack(parts)).nnz == 0


def test_rows_can_be_written_to_a_stream(tmp_path):
    stream = io.BytesIO()
    with matrix_rows(stream, SparseSpec(2**12)) as rows:
        for part in batches("float32"):
            rows.write(part, {})
    assert load_npz(io.BytesIO(stream.getvalue())).shape == (13, 2**12)


def test_nothing_is_left_where_writing_fails(tmp_path):
    def write():
        with vector_file(tmp_path / "rows.npz", SparseSpec(2**12)) as file:
            file.write(batches("float32")[0], {})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    assert not list(tmp_path.iterdir())
