"""The files of SVM-LIGHT-TK and KeLP."""

import io

import pytest

from treedot import LinearModel, TreeClassifier, read_trees
from treedot.cli import main
from treedot.errors import SourceError
from treedot.readers import read_kelp, read_svmlight

SVMLIGHT = """\
# made for a test
1 |BT| (A (B b)(C c)) |BT| (D d) |ET| 1:0.5 7:2 |BV| 2:1 |EV| # first
-1 |BT| (A (B x)) |BT| (D e) |ET|
"""
KELP = (
    "NUM NUM:date |BT:grct| (SYNT##root(POS##WRB(LEX##how::w))) |ET| |BT:lct| (LEX##how::w(POS##WRB)) |ET| "
    "|BV:bow| how:1.0 a:b:2 |EV| |BS:id| a q |ES|\n"
    "DESC |BT:grct| (SYNT##root(POS##WP(LEX##what::w)))|ET||BT:lct| (LEX##what::w(POS##WP)) |ET| "
    "|BV:bow| |EV| |BS:id| b |ES|\n"
)


def read(text, kind, **settings):
    return read_trees(io.StringIO(text), kind, **settings)


def test_examples_of_svm_light_tk_have_their_parts_as_columns():
    forest = read(SVMLIGHT, "svmlight")
    assert [str(tree) for tree in forest] == ["(A (B b) (C c))", "(A (B x))"]
    assert forest.columns == {
        "class": ["1", "-1"],
        "tree2": ["(D d)", "(D e)"],
        "vector": ["1:0.5 7:2", None],
        "vector2": ["2:1", None],
        "comment": ["first", None],
    }
    assert [str(tree) for tree in read(SVMLIGHT, "svmlight", column="tree2")] == ["(D d)", "(D e)"]


def test_examples_of_kelp_have_their_parts_as_columns():
    forest = read(KELP, "kelp")
    assert str(forest[0]) == "(SYNT##root (POS##WRB LEX##how::w))"
    assert forest.columns["class"] == ["NUM NUM:date", "DESC"]
    assert forest.columns["bow"] == ["how:1.0 a:b:2", ""]
    assert forest.columns["id"] == ["a q", "b"]
    assert str(read(KELP, "kelp", column="lct")[1]) == "(LEX##what::w POS##WP)"
    assert read(KELP, "kelp", column="grct") == forest


def test_representations_without_names_have_numbers_as_in_kelp():
    forest = read("x |BV| a:1 |EV| |BT| (A b) |ET| |BT| (A c) |ET|\n", "kelp", column="1")
    assert str(forest[0]) == "(A b)"
    assert forest.columns == {"class": ["x"], "0": ["a:1"], "2": ["(A c)"]}
    assert str(read("x |BV| a:1 |EV| |BT| (A b) |ET| |BT| (A c) |ET|\n", "kelp")[0]) == "(A b)"


def test_both_examples_of_a_pair_have_their_columns():
    line = "y |<| q |BT:t| (A b) |ET| |BS:id| 1 |ES| |,| |BT:t| (A c) |ET| |>| |BV:sim| s:0.5 |EV|\n"
    columns = {"class": ["y"], "left.class": ["q"], "left.id": ["1"], "right.t": ["(A c)"], "sim": ["s:0.5"]}
    assert read(line, "kelp").columns == columns
    assert str(read(line, "kelp")[0]) == "(A b)"
    assert str(read(line, "kelp", column="right.t")[0]) == "(A c)"


def test_vectors_become_columns_of_numbers_where_that_is_asked_for(tmp_path):
    path = tmp_path / "train.dat"
    path.write_text(SVMLIGHT, encoding="utf-8")
    columns = read_svmlight(path, vectors="columns").columns
    assert columns["vector:1"] == [0.5, 0.0]
    assert columns["vector:7"] == [2.0, 0.0]
    assert columns["vector2:2"] == [1.0, 0.0]
    assert "vector" not in columns
    path.write_text(KELP, encoding="utf-8")
    columns = read_kelp(path, vectors="columns").columns
    assert columns["bow:how"] == [1.0, 0.0]
    assert columns["bow:a:b"] == [2.0, 0.0]
    assert columns["id"] == ["a q", "b"]


def test_only_vectors_become_columns_of_numbers(tmp_path):
    path = tmp_path / "train.dat"
    path.write_text("1 |BT| (A b) |ET| 1:2 |EV| # id:5\n", encoding="utf-8")
    assert read_svmlight(path, vectors="columns").columns == {
        "class": ["1"],
        "vector:1": [2],
        "comment": ["id:5"],
    }
    path.write_text("x |BT:t| (A b) |ET| |BS:time| 12:30 |ES| |BV:v| a:1 |EV|\n", encoding="utf-8")
    assert read_kelp(path, vectors="columns").columns == {"class": ["x"], "time": ["12:30"], "v:a": [1]}


@pytest.mark.parametrize("vector", ["1:2 junk", "1:nan", "a"])
def test_vectors_that_are_none_do_not_become_columns(tmp_path, vector):
    path = tmp_path / "train.dat"
    path.write_text(f"1 |BT| (A b) |ET|\n1 |BT| (A b) |ET| {vector} |EV|\n", encoding="utf-8")
    assert read_svmlight(path).columns["vector"] == [None, vector]
    with pytest.raises(SourceError, match="tree 2, column 'vector': a vector must have names and numbers"):
        read_svmlight(path, vectors="columns")


@pytest.mark.parametrize("kind", ["kelp", "svmlight", "jsonl"])
def test_the_first_of_all_examples_may_be_a_bad_one(kind):
    good = b'{"tree": "(A b)"}\n' if kind == "jsonl" else b"1 |BT| (A b) |ET|\n"
    errors = []
    found = read_trees(io.BytesIO(b"\xff\n" + good), kind, on_bad=errors.append)
    assert len(found) == 1
    assert ":1:1: the byte 0xff is not UTF-8" in str(errors[0])


def test_a_later_tree_of_kelp_may_have_the_name_of_the_default_column():
    forest = read("x |BT:lct| (A b) |ET| |BT:tree| (C d) |ET|\n", "kelp")
    assert str(forest[0]) == "(A b)"
    assert forest.columns == {"class": ["x"], "tree": ["(C d)"]}


def test_a_class_of_kelp_may_begin_with_a_hash():
    forest = read("# |BT:t| (A b) |ET|\n#x |BT:t| (A c) |ET|\n", "kelp")
    assert forest.columns["class"] == ["#", "#x"]


def test_a_representation_of_kelp_may_be_named_as_the_column_of_classes_is():
    line = "x |BT:t| (A b) |ET| |BT:class| (C d) |ET|\n"
    assert read(line, "kelp").columns == {"class": ["x"], "class2": ["(C d)"]}
    chosen = read(line, "kelp", column="class")
    assert str(chosen[0]) == "(C d)"
    assert chosen.columns == {"class": ["x"], "t": ["(A b)"]}
    pair = "y |<| q |BT:class| (A b) |ET| |,| |BT:class| (A c) |ET| |>|\n"
    assert read(pair, "kelp", column="right.class").columns == {
        "class": ["y"], "left.class": ["q"], "left.class2": ["(A b)"]
    }  # fmt: skip
    with pytest.raises(SourceError, match="there is no tree 'class'; choose the column from 'class', 't'"):
        read("x |BT:t| (A b) |ET|\n", "kelp", column="class")


def test_the_types_of_nodes_can_be_dropped(tmp_path):
    path = tmp_path / "train.klp"
    path.write_text(KELP, encoding="utf-8")
    assert str(read_kelp(path, types="drop")[0]) == "(root (WRB how::w))"
    assert read_kelp(path, types="drop").columns["lct"][0] == "(how::w(WRB))"
    assert read_kelp(path) == read_trees(path)


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("svmlight", "1 1:0.5", ":1: no tree found: expected one after |BT|"),
        ("svmlight", "1 |BT| (A b)", ":1: the trees have no end, |ET|"),
        ("svmlight", "1 |BT| (A b |ET|", "never closed"),
        ("kelp", "x", ":1: no tree found: expected one after |BT|"),
        (
            "kelp",
            "x |BT| (A b)",
            ":1: expected a representation, such as |BT:name| … |ET|, found '|BT| (A b)'",
        ),
        ("kelp", "x |BV:a| b:1 |EV| |BT:a| (A b) |ET|", ":1: two representations with the name 'a'"),
        ("kelp", "x |<| |BT| (A b) |ET| |,| |BT| (A c) |ET|", ":1: expected a pair of examples, |<|"),
        ("kelp", "x |<| |<| |BT| (A b) |ET| |,| |>| |,| |>|", ":1: expected a representation"),
        ("kelp", "x |BV:a| 1:1 |EV|", ":1: there is no tree 'a tree'; choose the column from 'class', 'a'"),
    ],
)
def test_examples_that_cannot_be_read_are_refused_with_their_line(kind, line, message):
    with pytest.raises(SourceError) as caught:
        read(line + "\n", kind, column="a tree" if "two" in message or "a tree" in message else None)
    assert message in str(caught.value)


def test_bad_examples_are_left_out():
    errors = []
    forest = read(SVMLIGHT + "1 2:3\n1 |BT| (A |ET|\n1 |BT| (A b) |ET|\n", "svmlight", on_bad=errors.append)
    assert len(forest) == 3
    assert len(read(KELP + "x |BT:t| (A b) |ET|\n", "kelp", column="lct", on_bad=errors.append)) == 2
    assert ":3: there is no tree 'lct'" in str(errors.pop())
    assert [str(error).split(":")[1].split(",")[0] for error in errors] == ["4", "5"]


def test_a_model_is_trained_on_a_file_of_kelp(tmp_path):
    path = tmp_path / "train.klp"
    lines = [f"{c} |BT:t| (S({c.upper()}({w}))) |ET| |BS:id| {w} |ES|" for c in "ab" for w in "vwxyz"]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert main(["train", str(path), "--class", "class", "-o", str(tmp_path / "model")]) == 0
    model = LinearModel.load(tmp_path / "model")
    assert model.predict(["(S (A q))", "(S (B q))"]).tolist() == ["a", "b"]
    forest = read_kelp(path)
    assert TreeClassifier().fit(forest, forest.columns["class"]).score(forest, forest.columns["class"]) == 1


def test_a_file_of_kelp_is_converted_with_its_columns(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.klp").write_text(KELP, encoding="utf-8")
    assert main(["convert", str(tmp_path / "a.klp"), "-o", str(tmp_path / "a.parquet")]) == 0
    assert read_trees(tmp_path / "a.parquet") == read_trees(tmp_path / "a.klp")
    assert read_trees(tmp_path / "a.parquet").columns["id"] == ["a q", "b"]
