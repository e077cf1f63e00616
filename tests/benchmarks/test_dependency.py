"""The table of questions as dependency trees, on next to nothing."""

import gzip

import numpy as np
import pytest

from benchmarks import dependency, smoothed_vectors
from treedot import read_trees


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with small files of questions, each of one of two classes."""
    folder = tmp_path_factory.mktemp("corpora")
    forms = ("tree", "grct", "lct", "loct")
    lines = ["\t".join(["coarse", "text", *forms])]
    for k in range(30):
        who = f"(SYNT##root(POS##WP(LEX##{'who' if k % 2 else 'when'}::w))(POS##V(LEX##w{k}::v)))"
        lines.append("\t".join(["HUM" if k % 2 else "NUM", f"who w{k} it", *[who] * len(forms)]))
    for name in ("qc_train", "qc_test", "qc_train_dep", "qc_test_dep"):
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


@pytest.mark.slow
def test_every_kernel_is_measured_once_and_kept(data, tmp_path, capsys):
    command = ["--data", str(data), "--cache", str(tmp_path), "--only", "LCT"]
    dependency.main(command)
    first = capsys.readouterr().out
    shown = [name for name in dependency.methods(data) if "LCT" in name]
    assert len(list(tmp_path.iterdir())) == len(shown) >= 2
    assert first.count("| 1.000 | 1.000 |") == len(shown)  # in cross-validation and in the test
    dependency.main(command)
    assert capsys.readouterr().out == first


def test_the_settings_of_kelp_are_measured_beside_what_it_expects(data, capsys):
    dependency.main(["--data", str(data), "--kelp"])
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[1:] for row in rows] == [
        ["1.000", f"{says} |"] for says in (".914", ".910", ".940")
    ]


def test_types_of_nodes_are_left_out_and_classes_kept(data):
    forest = dependency.read_questions(data, "grct", "test")
    assert str(forest[1]) == "(root (WP who::w) (V w1::v))"
    assert forest.columns == {"coarse": ["NUM", "HUM"] * 15}
    assert dependency.read_questions(data, "tree", "train") == read_trees(data / "qc_train.tsv.gz")


def test_words_that_stand_near_the_same_words_are_similar(tmp_path):
    texts = ["a big dog barks", "a big cat purrs", "a big dog runs", "a big cat runs", "the sun shines"] * 3
    (tmp_path / "qc_train.tsv.gz").write_bytes(gzip.compress("\n".join(["text", *texts]).encode()))
    vectors = dependency.word_vectors(tmp_path)
    dog, cat, sun = (vectors[word] / np.linalg.norm(vectors[word]) for word in ("dog", "cat", "sun"))
    assert dog @ cat > 0.2 > abs(dog @ sun)


def test_vectors_of_similar_words_are_measured(data, capsys, monkeypatch):
    monkeypatch.setattr(smoothed_vectors, "WEIGHTS", (0.4,))
    monkeypatch.setattr(smoothed_vectors, "ROUNDS", 1)
    command = ["--data", str(data), "--trees", "5", "--seeds", "1", "--dim", "256", "--accuracy"]
    smoothed_vectors.main(command)
    printed = capsys.readouterr().out
    assert printed.count("d = 256, WordVectors(2 words, 1 dimensions)") == 2  # GRCT, LCT
    assert printed.count("ms for every new label") == 2
    assert printed.count("accuracy with kernel='smoothed': 1.000") == 2
