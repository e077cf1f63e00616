import gzip
import io
import json
import pickle

import numpy as np
import pytest

from treedot import DistributedTreeVectorizer, FragmentVectorizer, TreeIndex, read_trees, save_vectors
from treedot._storage.safetensors import write_arrays
from treedot.cli import main
from treedot.errors import SourceError

TREES = ["(a b)", "(a (b c))"]


def complaint(path, format=None):
    with pytest.raises(SourceError) as found:
        read_trees(path, format, on_bad=lambda error: None)
    assert str(found.value).isprintable()
    assert str(path) in str(found.value)
    return str(found.value)


def test_files_that_treedot_wrote_are_told_apart(tmp_path):
    sparse, dense = FragmentVectorizer(), DistributedTreeVectorizer(n_components=256)
    save_vectors(tmp_path / "v.npz", sparse.transform(TREES), sparse)
    save_vectors(tmp_path / "v.npy", dense.transform(TREES), dense)
    assert main(["gram", "(a b)", "-o", str(tmp_path / "K.npy")]) == 0
    TreeIndex.build(TREES, tmp_path / "index")
    sparse.save(tmp_path / "vectorizer")
    write_arrays(tmp_path / "arrays", {}, {"x": np.zeros(3)})
    for name, reader in (
        ("v.npz", "load_vectors"),
        ("v.npy", "load_vectors"),
        ("K.npy", "contains a matrix"),
        ("index", "TreeIndex.open"),
        ("vectorizer", "FragmentVectorizer.load"),
        ("arrays", "safetensors"),
    ):
        for format in (None, "tsv", "jsonl"):
            assert reader in complaint(tmp_path / name, format)


def test_parquet_files_of_vectors_are_told_from_tables(tmp_path):
    pytest.importorskip("pyarrow")
    dense = DistributedTreeVectorizer(n_components=256)
    save_vectors(tmp_path / "v.parquet", dense.transform(TREES), dense)
    assert "load_vectors" in complaint(tmp_path / "v.parquet")
    (tmp_path / "v.parquet").rename(tmp_path / "v")
    assert "use format='parquet'" in complaint(tmp_path / "v")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("model.joblib", pickle.dumps({"a": 1}), "joblib.load"),
        ("sheet.xlsx", b"PK\x03\x04\x14\0\x06\0", "save its sheet as .csv"),
        ("trees.zip", b"PK\x03\x04\x14\0\x06\0", "zip archive"),
        ("trees.mrg", gzip.compress(b"(a b)", mtime=0), "ends in .gz"),
        ("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary file"),
        ("program", b"\x7fELF\x02\x01\x01\0\0\0", "binary file"),
    ],
)
def test_other_files_are_named_and_not_shown(tmp_path, capsys, name, content, says):
    (tmp_path / name).write_bytes(content)
    assert says in complaint(tmp_path / name)
    assert main(["info", str(tmp_path / name)]) == 1
    shown = capsys.readouterr().err
    assert says in shown
    assert shown.removesuffix("\n").isprintable()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("class\ttree\nx\t(a b)\n", "tsv"),
        ("class,tree\nx,(a b)\n", "csv"),
        (json.dumps({"tree": "(a b)", "class": "x"}) + "\n", "jsonl"),
    ],
)
def test_tables_with_another_suffix_are_told_by_their_first_line(tmp_path, content, kind):
    path = tmp_path / "trees.txt"
    path.write_text(content)
    with pytest.raises(SourceError, match=f"a tree starts with .* use format='{kind}'"):
        read_trees(path)
    assert read_trees(path, kind).columns == {"class": ["x"]}
    path.write_text("(a b)\nx\t(a b)\n")
    with pytest.raises(SourceError, match=r"2:1 .* a tree starts with '\('$"):
        read_trees(path)


def test_a_label_with_nuls_does_not_make_brackets_a_file_of_arrays(tmp_path, capsys):
    path = tmp_path / "t.mrg"
    for text, nodes in ((b"(a \0b cd{ e)", 4), (b"(a \0\0\0\0\0{ d)", 3), (b"\n (a\0\0\0\0{ d)", 2)):
        path.write_bytes(text)
        assert read_trees(path).n_nodes == nodes
        assert main(["info", str(path)]) == 0
        assert "file               trees" in capsys.readouterr().out


def test_labels_may_hold_what_binary_files_do(tmp_path):
    (tmp_path / "t.mrg").write_bytes(b"\n(PK\x03\x04 \0\0 \x93NUMPY)\n".replace(b"\x93", "\x93".encode()))
    assert read_trees(tmp_path / "t.mrg")[0].label == "PK\x03\x04"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("1 |BT| (A b) |ET|", "if this is a file of SVM-LIGHT-TK, use format='svmlight'"),
        ("x |BT:t| (A b) |ET|", "if this is a file of KeLP, use format='kelp'"),
        ("# sent_id = 1", "if this is CoNLL-U, use format='conllu'"),
        ("1\tgo" + "\t_" * 8, "if this is CoNLL-U, use format='conllu'"),
        ("1\tgo", "if this is a table, use format='tsv'"),
    ],
)
def test_lines_of_other_formats_are_told_from_brackets(line, hint):
    with pytest.raises(SourceError) as caught:
        read_trees(io.StringIO(line + "\n"), "brackets")
    assert hint in str(caught.value)
