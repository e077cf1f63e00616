"""Files that unpack to far more than their size are read only if that is asked for."""

import gzip
import lzma
import os
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from treedot import FragmentVectorizer, load_vectors, read_trees
from treedot._storage import compression
from treedot.cli import main
from treedot.errors import SourceError
from treedot.kernels import WordVectors
from treedot.vectors.files import read_matrix

LINE = b"(S (NP (DT a) (NN tree)) (VP grows))\n"
COUNT = 20_000


def compress(suffix, data):
    if suffix == ".zst":
        zstandard = pytest.importorskip("zstandard")
        return zstandard.ZstdCompressor().compress(data)
    return {".gz": gzip.compress, ".xz": lzma.compress}[suffix](data)


@pytest.fixture(autouse=True)
def _little(monkeypatch):
    """Let a tenth of a megabyte be much, so that the files of these tests are small."""
    monkeypatch.setattr(compression, "ALWAYS", 100_000)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_compressed_file_that_unpacks_to_too_much_is_refused_unless_asked_for(tmp_path, suffix, capsys):
    path = tmp_path / f"trees.mrg{suffix}"
    path.write_bytes(compress(suffix, LINE * COUNT))
    assert path.stat().st_size * compression.MAX_RATIO < len(LINE) * COUNT
    with pytest.raises(SourceError, match=r"200 times.*--unpack-large, or read_trees\(…, unpack"):
        read_trees(path)
    assert len(read_trees(path, unpack_large=True)) == COUNT
    assert main(["info", str(path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"treedot: {path} unpacks to more than 200 times its size")
    assert said.count("\n") == 1
    assert main(["info", str(path), "--unpack-large"]) == 0
    with pytest.raises(SourceError, match="200 times"):  # the option holds for one command
        read_trees(path)


def test_small_files_and_those_that_are_hardly_compressed_are_read(tmp_path):
    small, random = tmp_path / "a.mrg.gz", tmp_path / "b.mrg.gz"
    small.write_bytes(gzip.compress(LINE * 2000))
    assert len(read_trees(small)) == 2000
    numbers = np.random.default_rng(0).integers(10**9, size=20_000)
    random.write_bytes(gzip.compress(b"".join(b"(S %d)\n" % number for number in numbers)))
    assert len(read_trees(random)) == 20_000


def test_the_memory_that_a_refused_file_takes_is_small(tmp_path):
    path = tmp_path / "trees.tsv.gz"
    path.write_bytes(gzip.compress(b"x" * (1 << 26)))
    tracemalloc.start()
    with pytest.raises(SourceError, match="200 times"):
        read_trees(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 25
    assert path.stat().st_size * compression.MAX_RATIO < 1 << 24


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_tables_of_arrow_are_counted_while_they_are_read(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow")
    feather, parquet = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")
    path = str(tmp_path / f"trees{suffix}")
    table = pa.table({"tree": [f"(S {'x ' * 500})"] * 2000})
    if suffix == ".parquet":
        parquet.write_table(table, path, compression="zstd")
    else:
        feather.write_feather(table, path, compression="zstd", chunksize=500)
    with pytest.raises(SourceError, match=r"^\S+ unpacks to more than 200 times"):
        read_trees(path)
    assert len(read_trees(path, unpack_large=True)) == 2000


def test_an_archive_of_sparse_rows_is_judged_by_its_list_of_members(tmp_path):
    path = tmp_path / "rows.npz"
    rows = csr_matrix((np.ones(10**6, np.float32), np.zeros(10**6, np.int32), np.arange(10**6 + 1)))
    save_npz(path, rows[:1000])
    assert read_matrix(path).shape[0] == 1000
    save_npz(path, csr_matrix(([], [], np.zeros(10**6, np.int32)), (10**6 - 1, 5)))
    with pytest.raises(SourceError, match=r"200 times.*load_vectors\(…, unpack_large=True\)"):
        read_matrix(path)
    assert read_matrix(path, unpack_large=True).shape[0] == 10**6 - 1
    with pytest.raises(SourceError, match="does not say how its vectors were made"):
        load_vectors(path, unpack_large=True)


def test_files_of_word_vectors_have_the_same_limit(tmp_path):
    path = tmp_path / "words.txt.gz"
    path.write_bytes(gzip.compress(b"a 1 1\n" * 100_000))
    with pytest.raises(SourceError, match=r"WordVectors.read\(…, unpack_large=True\)"):
        WordVectors.read(path)
    assert len(WordVectors.read(path, unpack_large=True)) == 1


@pytest.mark.slow
def test_workers_obey_the_option_too(tmp_path, capsys, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.undo()  # other processes have the usual limit
    path = tmp_path / "trees.mrg.gz"
    path.write_bytes(gzip.compress(LINE + b"\n" * (1 << 26)))
    encode = [
        "batch",
        "encode",
        str(path),
        "-o",
        f"{tmp_path}/rows/",
        "--workers",
        "1",
        "--n-features",
        "1024",
    ]
    assert main(encode) == 1
    assert "--unpack-large" in capsys.readouterr().err
    assert main([*encode, "--unpack-large"]) == 0
    assert FragmentVectorizer(n_features=1024).transform([LINE.decode()]).nnz


def test_the_switch_for_large_files_is_set_back(monkeypatch):
    monkeypatch.setenv("TREEDOT_UNPACK_LARGE", "0")
    with compression.unpacking_large(True):
        assert os.environ["TREEDOT_UNPACK_LARGE"] == "1"
    assert os.environ["TREEDOT_UNPACK_LARGE"] == "0"
