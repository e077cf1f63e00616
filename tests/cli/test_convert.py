import json
from pathlib import Path

import pytest

from treedot import read_trees
from treedot.cli import main

TREES = "(a (b c) d)\n(a e)\n(x\\x20y z)\n"


def converted(*arguments):
    assert main(["convert", *map(str, arguments)]) == 0
    return read_trees(arguments[arguments.index("-o") + 1])


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".mrg", ".brackets", ".txt"])
def test_every_format_is_converted_to_every_other(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    source = tmp_path / "source.mrg"
    source.write_text(TREES)
    trees = read_trees(source)
    made = tmp_path / f"made{suffix}"
    assert converted(source, "-o", made) == trees
    assert converted(made, "-o", tmp_path / "back.mrg") == trees
    assert (tmp_path / "back.mrg").read_text() == TREES


def test_columns_and_units_are_kept(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.json").write_text(json.dumps([{"a": 1}, {"b": [2]}]))
    (tmp_path / "b.xml").write_text("<a><b/>\n<c/></a>")
    forest = converted(
        tmp_path / "a.json", tmp_path / "b.xml", "--unit", "record", "-o", tmp_path / "o.parquet"
    )
    assert [str(tree) for tree in forest] == [
        "(object (a: number))",
        "(object (b: (array number)))",
        "(b)",
        "(c)",
    ]
    assert forest.columns["language"] == ["json", "json", "xml", "xml"]
    assert forest.columns["start"] == [1, 1, 1, 2]


QUESTIONS = Path(__file__).parents[2] / "docs" / "examples" / "questions.tsv"


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_a_table_with_a_column_named_label_is_converted(tmp_path, suffix, capsys):
    pytest.importorskip("pyarrow")
    made = tmp_path / f"questions{suffix}"
    questions = read_trees(QUESTIONS)
    found = converted(QUESTIONS, "-o", made)
    assert found == questions
    assert found.columns == questions.columns
    assert "label" in found.columns
    capsys.readouterr()
    facts = []
    for path in (QUESTIONS, made):
        assert main(["info", str(path), "--json"]) == 0
        facts.append(json.loads(capsys.readouterr().out))
    assert facts[0] == facts[1]
    again = converted(made, "-o", tmp_path / "again.parquet")
    assert again.columns == questions.columns


def test_a_column_with_a_name_of_the_file_format_is_refused(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.tsv").write_text("__treedot_label__\ttree\nx\t(A b)\n")
    assert main(["convert", str(tmp_path / "t.tsv"), "-o", str(tmp_path / "t.parquet")]) == 1
    assert "rename '__treedot_label__'" in capsys.readouterr().err
    assert not (tmp_path / "t.parquet").exists()


def test_folders_are_walked_for_files_with_known_suffixes(tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.xml").write_text("<b/>")
    (folder / "a.json").write_text("1")
    (folder / "c.json").write_text("2")
    (folder / "notes.doc").write_text("no trees")
    (folder / ".treedotignore").write_text("c.json\n")
    assert [str(tree) for tree in converted(folder, "-o", tmp_path / "o.mrg")] == ["(number)", "(b)"]
    assert "left out of folders: 1 ignored" in capsys.readouterr().err
    made = converted(folder, "--format", "xml", "-o", tmp_path / "o.mrg")
    assert [str(tree) for tree in made] == ["(b)"]


def test_trees_that_cannot_be_read_stop_it_or_are_left_out(tmp_path, capsys):
    source, output = tmp_path / "a.json", tmp_path / "o.mrg"
    source.write_text('{"a": 1}\n{"b" 2}\n{"c": 3}\n')
    assert main(["convert", str(source), "-o", str(output)]) == 1
    assert not output.exists()
    assert f"{source}:2:2: expected" in capsys.readouterr().err
    assert len(converted(source, "--skip-bad", "-o", output)) == 2
    assert "left out 1 bad tree" in capsys.readouterr().err


def test_outputs_that_cannot_be_are_refused_before_the_work(tmp_path, capsys):
    source = tmp_path / "a.mrg"
    source.write_text(TREES)
    for output, says in (
        (source, "is the file"),
        (tmp_path / "a.doc", "format"),
        (tmp_path / "no" / "a.mrg", "folder"),
    ):
        assert main(["convert", str(source), "-o", str(output)]) == 1
        assert says in capsys.readouterr().err
    assert source.read_text() == TREES


def test_a_source_without_trees_is_an_error(tmp_path, capsys):
    (tmp_path / "empty.xml").write_text("<a/>")
    arguments = ["convert", str(tmp_path / "empty.xml"), "--unit", "record", "-o", str(tmp_path / "o.mrg")]
    assert main(arguments) == 1
    assert "no trees found to convert" in capsys.readouterr().err
    assert not (tmp_path / "o.mrg").exists()
