"""Vectors that are stored say how they were made, and only those that belong together are compared."""

import io
import json
import re
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_matrix, load_npz, save_npz

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    TreeIndex,
    dot_products,
    load_vectors,
    nearest,
    save_vectors,
)
from treedot.cli import main
from treedot.errors import ParameterError, SourceError, SpecMismatchError
from treedot.vectors import DenseSpec, SparseSpec, Vectors
from treedot.vectors.files import MAX_DESCRIPTION, read_description
from treedot.vectors.spec import spec_from_dict
from treedot.vectors.writers import MEMBER, TRAILER, trailer, write_matrix

DENSE = DistributedTreeVectorizer(n_components=256)
SPARSE = FragmentVectorizer(n_features=2**12)
SMOOTHED = DistributedTreeVectorizer(n_components=256, kernel="smoothed", similarity={"a": [1, 2]})
FILES = [("v.npy", DENSE), ("v.parquet", DENSE), ("v.npy", SMOOTHED), ("v.npz", SPARSE)]


def plain(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


@pytest.mark.parametrize(("name", "vectorizer"), FILES)
@pytest.mark.parametrize("count", [0, 1, 5])
def test_vectors_come_back_as_they_were_saved(tmp_path, name, vectorizer, count):
    if name == "v.parquet":
        pytest.importorskip("pyarrow")
    matrix = vectorizer.transform(random_forest(0, count))
    for made_by in (vectorizer, vectorizer.spec):
        save_vectors(tmp_path / name, matrix, made_by)
        found = load_vectors(tmp_path / name)
        assert type(found.matrix).__name__ in ("memmap", "ndarray", "csr_matrix")
        assert found.matrix.dtype == matrix.dtype
        assert found.matrix.shape == matrix.shape
        assert (plain(found.matrix) == plain(matrix)).all()
        assert found.spec == vectorizer.spec
        assert found.fingerprint == vectorizer.spec.fingerprint
        assert found.columns == {}
        assert len(found) == count
        assert repr(found).startswith(f"<Vectors: {count} × {matrix.shape[1]}, ")


@pytest.mark.parametrize("rest", ["dense", "blocks"])
def test_rows_with_a_rest_come_back_too(tmp_path, rest):
    vectorizer = FragmentVectorizer(n_features=2**12, rest=rest, rest_size=256)
    matrix = vectorizer.transform(random_forest(0, 4))
    save_vectors(tmp_path / "v.npz", matrix, vectorizer)
    assert (load_vectors(tmp_path / "v.npz").matrix != matrix).nnz == 0


def test_plain_numpy_and_scipy_read_the_matrices(tmp_path):
    forest = random_forest(0, 3)
    save_vectors(tmp_path / "v.npy", DENSE.transform(forest), DENSE)
    save_vectors(tmp_path / "v.npz", SPARSE.transform(forest), SPARSE)
    for mode in (None, "r", "c"):
        assert (np.load(tmp_path / "v.npy", mmap_mode=mode) == DENSE.transform(forest)).all()
    assert (np.load(io.BytesIO((tmp_path / "v.npy").read_bytes())) == DENSE.transform(forest)).all()
    assert (load_npz(tmp_path / "v.npz") != SPARSE.transform(forest)).nnz == 0


@pytest.mark.parametrize(("name", "vectorizer"), [FILES[0], FILES[2]])
def test_the_description_in_a_file_is_that_of_the_spec(tmp_path, name, vectorizer):
    save_vectors(tmp_path / name, vectorizer.transform(["(A b)"]), vectorizer)
    fields = read_description(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert spec_from_dict(fields) == type(vectorizer.spec).from_dict(fields) == vectorizer.spec


def test_columns_are_kept_in_parquet_and_refused_elsewhere(tmp_path):
    pytest.importorskip("pyarrow")
    columns = {"class": ["a", None, "c"], "number": [1, 2, 3]}
    vectors = DENSE.transform(random_forest(0, 3))
    save_vectors(tmp_path / "v.parquet", vectors, DENSE, columns=columns)
    assert load_vectors(tmp_path / "v.parquet").columns == columns
    with pytest.raises(ParameterError, match=r"cannot write columns to .*: use \.parquet"):
        save_vectors(tmp_path / "v.npy", vectors, DENSE, columns=columns)
    with pytest.raises(ParameterError, match="column 'class' has 2 values for 3 vectors"):
        save_vectors(tmp_path / "w.parquet", vectors, DENSE, columns={"class": [1, 2]})
    assert [path.name for path in tmp_path.iterdir()] == ["v.parquet"]


@pytest.mark.parametrize("options", [{"n_features": None}, {"n_features": 64, "idf": True}])
def test_rows_of_what_was_learned_belong_to_their_own_fit(tmp_path, options):
    a, b = (FragmentVectorizer(**options).fit([text]) for text in ("(A b)", "(A c)"))
    for name, vectorizer in (("a.npz", a), ("again.npz", a), ("b.npz", b)):
        save_vectors(tmp_path / name, vectorizer.transform(["(A b)", "(A c)"]), vectorizer)
    first, again, other = (load_vectors(tmp_path / name) for name in ("a.npz", "again.npz", "b.npz"))
    assert first.fingerprint == a.fingerprint != a.spec.fingerprint
    assert dot_products(first, again).shape == (2, 2)
    with pytest.raises(SpecMismatchError, match="learned from different trees"):
        dot_products(first, other)


def test_learned_columns_are_not_saved_by_their_spec_alone(tmp_path):
    vectorizer = FragmentVectorizer(n_features=None).fit(["(A b)"])
    with pytest.raises(ParameterError, match="pass the vectorizer"):
        save_vectors(tmp_path / "v.npz", vectorizer.transform(["(A b)"]), vectorizer.spec)


@pytest.mark.parametrize(
    ("matrix", "spec"),
    [
        (np.zeros((2, 256), np.float32), DenseSpec(512)),
        (np.zeros((2, 256)), DenseSpec(256)),
        (np.zeros(256, np.float32), DenseSpec(256)),
        (csr_matrix((2, 256), dtype=np.float32), DenseSpec(256)),
        (np.zeros((2, 256), np.float32), SparseSpec(256)),
        (csr_matrix((2, 256), dtype=np.float32), SparseSpec(512)),
        (csr_matrix((2, 256), dtype=np.float32), SparseSpec(256, damping="linear", rest="dense")),
    ],
)
def test_a_spec_that_contradicts_the_matrix_is_refused(tmp_path, matrix, spec):
    with pytest.raises(SpecMismatchError, match="the spec is for"):
        Vectors(matrix, spec)
    with pytest.raises(SpecMismatchError):
        save_vectors(tmp_path / "v.npy", matrix, spec)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_components": 512}, SpecMismatchError, "fingerprint"),
        ({"n_components": 512, "fingerprint": DenseSpec(512).fingerprint}, SpecMismatchError, "not 256"),
        ({"dtype": "float64", "fingerprint": None}, SpecMismatchError, "float64"),
        ({"decay": 7, "fingerprint": None}, SpecMismatchError, "decay"),
        ({"kind": "sparse"}, SpecMismatchError, "does not describe a treedot spec"),
        ({"kind": "odd"}, SpecMismatchError, "kind is 'odd'"),
    ],
)
def test_a_description_that_was_changed_is_refused(tmp_path, capsys, change, error, message):
    path = tmp_path / "v.npy"
    save_vectors(path, DENSE.transform(["(A b)"]), DENSE)
    data = path.read_bytes().split(TRAILER)[0]
    path.write_bytes(data + trailer({**read_description(path), **change}))
    with pytest.raises(error, match=message):
        load_vectors(path)
    assert main(["info", str(path)]) == 1
    assert message in capsys.readouterr().err


def test_files_without_vectors_raise(tmp_path):
    np.save(tmp_path / "plain.npy", np.zeros((2, 3)))
    with pytest.raises(SourceError, match=r"plain\.npy does not say .* numpy\.load"):
        load_vectors(tmp_path / "plain.npy")
    with pytest.raises(SourceError, match="no such file or folder"):
        load_vectors(tmp_path / "absent.npy")
    with pytest.raises(ParameterError, match=r"\.npy, \.npz, \.parquet or \.arrow"):
        load_vectors(tmp_path / "trees.mrg")
    save_vectors(tmp_path / "v.npz", SPARSE.transform(["(A b)"]), SPARSE)
    (tmp_path / "v.npz").write_bytes(b"junk")
    with pytest.raises(SourceError, match="cannot read"):
        load_vectors(tmp_path / "v.npz")
    with pytest.raises(ParameterError, match="spec must be a vectorizer"):
        save_vectors(tmp_path / "w.npz", SPARSE.transform(["(A b)"]), {"decay": 0.4})


DESCRIPTIONS = [
    (b"{x", "not JSON"),
    (b"\xff\xfe{}", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b"[1]", "not a JSON object"),
    (b'{"fingerprint": 1}', "its kind is None"),
    (b'{"kind": "dense"}', "does not describe such a matrix"),
    (b'{"kernel": 1, "vectors": "x"}', "wrong"),
    (b'{"kind": "dense", "fingerprint": [], "n_components": {}}', "wrong"),
    (b'{"kind": "sparse", "fingerprint": null, "n_features": 1e999}', "wrong"),
    (b" " * (MAX_DESCRIPTION + 1), "the wrong length|longer than"),
]


@pytest.mark.parametrize(("text", "message"), DESCRIPTIONS, ids=range(len(DESCRIPTIONS)))
@pytest.mark.parametrize(("name", "vectorizer"), [FILES[0], FILES[2]])
def test_hostile_descriptions_are_refused_in_one_line(tmp_path, capsys, name, vectorizer, text, message):
    path = tmp_path / name
    save_vectors(path, vectorizer.transform(["(A b)"]), vectorizer)
    if name == "v.npy":
        data = path.read_bytes().split(TRAILER)[0]
        path.write_bytes(data + TRAILER + len(text).to_bytes(8, "little") + text)
    else:
        with zipfile.ZipFile(path) as archive:
            parts = {member: archive.read(member) for member in archive.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in {**parts, MEMBER: text}.items():
                archive.writestr(member, content)
    with pytest.raises((SourceError, SpecMismatchError)):
        load_vectors(path)
    assert main(["info", str(path)]) == 1
    said = capsys.readouterr().err
    assert re.search(message, said)
    assert said.count("\n") == 1


@pytest.mark.parametrize(("name", "vectorizer"), [FILES[0], FILES[2]])
def test_a_file_cut_short_anywhere_is_never_taken_for_a_described_one(tmp_path, capsys, name, vectorizer):
    path = tmp_path / name
    save_vectors(path, vectorizer.transform(["(A b)"]), vectorizer)
    whole = path.read_bytes()
    end = whole.index(TRAILER) if name == "v.npy" else 0
    for length in {*range(end - 3, len(whole), 7), *range(end - 2, end + 20), len(whole) - 1} - {end}:
        path.write_bytes(whole[: max(0, length)])
        with pytest.raises(SourceError):
            load_vectors(path)
        assert main(["info", str(path)]) == 1
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("member", ["shape.npy", "data.npy", "indices.npy", "format.npy"])
@pytest.mark.parametrize("content", [b"", b"junk", b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16, None])
def test_archives_with_damaged_members_end_in_one_line(tmp_path, capsys, member, content):
    path = tmp_path / "v.npz"
    save_vectors(path, SPARSE.transform(["(A b)"]), SPARSE)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts = {name: content if name == member else part for name, part in parts.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            if part is not None:
                archive.writestr(name, part)
    with pytest.raises(SourceError, match="cannot read"):
        load_vectors(path)
    code = main(["info", str(path)])
    assert code == (1 if member in ("shape.npy", "data.npy") else 0)  # the parts that info reads
    assert capsys.readouterr().err.count("\n") == code


def test_info_does_not_load_the_rows(tmp_path, capsys, monkeypatch):
    matrix = SPARSE.transform(random_forest(0, 5))
    save_vectors(tmp_path / "v.npz", matrix, SPARSE)
    monkeypatch.setattr("scipy.sparse.load_npz", lambda *_: pytest.fail("it was loaded"))
    assert main(["info", str(tmp_path / "v.npz"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["shape"] == [5, 4096]
    assert facts["type"] == "float32"
    assert facts["non-zeros per row"] == {"mean": matrix.nnz / 5}


def test_a_description_does_not_overrule_what_the_file_is(tmp_path, capsys):
    with (tmp_path / "K.npy").open("wb") as file:
        write_matrix(file, np.eye(2), {"kernel": "subset", "shape": "9 × 9", "file": "gold"})
    assert main(["info", str(tmp_path / "K.npy"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["file"], facts["shape"]) == ("a matrix of kernels", [2, 2])


def test_another_of_treedots_files_is_refused_with_what_opens_it(tmp_path):
    SPARSE.save(tmp_path / "model")
    TreeIndex.build(["(A b)"], tmp_path / "trees.index")
    with (tmp_path / "K.npy").open("wb") as file:
        write_matrix(file, np.eye(2), {"kernel": "subset"})
    for name, message in (
        ("model", r"model holds a vectorizer: open it with FragmentVectorizer\.load, not load_vectors"),
        ("trees.index", r"holds an index of trees: open it with TreeIndex\.open"),
        ("K.npy", r"K\.npy holds a matrix of kernels: open it with numpy\.load"),
    ):
        with pytest.raises(SourceError, match=message):
            load_vectors(tmp_path / name)


def test_rows_with_columns_out_of_range_raise(tmp_path):
    matrix = SPARSE.transform(["(A b)"])
    matrix.indices[0] = 2**20
    save_vectors(tmp_path / "v.npz", matrix, SPARSE)
    with pytest.raises(SourceError, match="cannot read"):
        load_vectors(tmp_path / "v.npz")


@pytest.mark.parametrize("ends", [[0, 7, 0], [0, -(2**31), 0]])
def test_decreasing_row_pointers_raise(tmp_path, ends):
    rows = csr_matrix((2, 2**12), dtype=np.float32)
    rows.indptr = np.array(ends, np.int32)
    path = tmp_path / "v.npz"
    save_vectors(path, rows, SPARSE)
    with pytest.raises(SourceError, match=r"v\.npz: its row pointers decrease"):
        load_vectors(path)


def test_matrices_that_are_not_made_of_rows_are_refused_before_they_are_converted(tmp_path):
    path = tmp_path / "v.npz"
    save_npz(path, SPARSE.transform(["(A b)"]).tocsc())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(MEMBER, json.dumps({**SPARSE.spec.to_dict(), "fingerprint": SPARSE.fingerprint}))
    with pytest.raises(SourceError, match="its format is 'csc'"):
        load_vectors(path)


def test_a_table_without_vectors_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"tree": ["(A b)"]}), tmp_path / "trees.parquet")
    with pytest.raises(SourceError, match="does not say how its vectors were made"):
        load_vectors(tmp_path / "trees.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("compare", [dot_products, nearest])
@pytest.mark.parametrize("vectorizer", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_only_vectors_with_equal_settings_are_compared(compare, vectorizer):
    forest = random_forest(0, 6)
    matrix = vectorizer.transform(forest)
    vectors = Vectors(matrix, vectorizer.spec)
    for x, y in ((vectors, None), (vectors, vectors), (vectors, matrix), (matrix, vectors)):
        wanted = compare(matrix, None if y is None else matrix)
        assert np.array_equal(np.array(compare(x, y)), np.array(wanted))
    for other in ({"decay": 0.2}, {"random_state": 1}, {"normalize": False}):
        changed = type(vectorizer)(**{**vectorizer.get_params(), **other})
        with pytest.raises(SpecMismatchError, match="cannot compare vectors with different settings"):
            compare(vectors, Vectors(changed.transform(forest), changed.spec))
    with pytest.raises(SpecMismatchError, match="cannot compare dense with sparse vectors"):
        compare(Vectors(DENSE.transform(forest), DENSE.spec), Vectors(SPARSE.transform(forest), SPARSE.spec))


@pytest.mark.parametrize("compare", [dot_products, nearest])
def test_trees_instead_of_vectors_raise(compare):
    forest = random_forest(0, 3)
    for trees in (forest, list(forest), [str(tree) for tree in forest], np.array(["(A b)", "(A c)"], object)):
        with pytest.raises(ParameterError, match="these are trees: turn them into rows first"):
            compare(trees)
