import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import ANY_LABEL, trees
from treedot import Forest, read_trees
from treedot.errors import ParameterError, SourceError
from treedot.trees import writers
from treedot.trees.writers import forest_file

PARTS = [
    read_trees(["(a (b c) d)", "(a e)"]),
    read_trees(["(b c)"]),
    read_trees(["(x (a y))", "(d)", "(a (b c) d)"]),
]


def with_columns(part, **columns):
    return Forest(part.label, part.arity, part.offsets, part.labels, columns)


@pytest.mark.parametrize("suffix", [".mrg", ".nwk", ".klp", ".svmlight", ".parquet", ".feather"])
@pytest.mark.parametrize("trees_at_a_time", [1, 3, 4096])
def test_batches_are_read_back_as_one_forest(tmp_path, monkeypatch, suffix, trees_at_a_time):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(writers, "TREES_AT_A_TIME", trees_at_a_time)
    path = tmp_path / f"trees{suffix}"
    with forest_file(path) as writer:
        for part in PARTS:
            writer.write(part)
        assert not path.exists()
    assert read_trees(path) == Forest.concat(PARTS)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_columns_are_kept_and_missing_ones_are_none(tmp_path, monkeypatch, suffix):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(writers, "TREES_AT_A_TIME", 1)
    path = tmp_path / f"trees{suffix}"
    with forest_file(path) as writer:
        writer.write(with_columns(PARTS[0], line=[3, 4], note=[None, None]))
        writer.write(with_columns(PARTS[1], note=["x"]))
    assert read_trees(path).columns == {"line": [3, 4, None], "note": [None, None, "x"]}


def write(path, *parts):
    with forest_file(path) as writer:
        for part in parts:
            writer.write(part)


def test_columns_that_do_not_fit_the_first_trees_are_refused_and_no_file_appears(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(writers, "TREES_AT_A_TIME", 1)
    first = with_columns(PARTS[0], line=[3, 4])
    for columns, says in (({"new": ["x"]}, "'new'"), ({"line": ["x"]}, "pyarrow cannot read or write")):
        with pytest.raises(SourceError, match=says):
            write(tmp_path / "trees.parquet", first, with_columns(PARTS[1], **columns))
    assert not list(tmp_path.iterdir())


def write_and_fail(path):
    with forest_file(path) as writer:
        writer.write(PARTS[0])
        raise ZeroDivisionError


def test_no_file_appears_where_the_trees_end_in_an_error(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(writers, "TREES_AT_A_TIME", 1)
    for name in ("trees.mrg", "trees.arrow", "trees.parquet"):
        with pytest.raises(ZeroDivisionError):
            write_and_fail(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".nwk", ".klp", ".svmlight"])
@given(some=st.lists(trees(ANY_LABEL.map(lambda text: text.replace("\0", ""))), min_size=1, max_size=3))
def test_any_trees_are_read_back_from_the_texts_of_other_programs(tmp_path_factory, suffix, some):
    path = tmp_path_factory.mktemp("texts") / f"trees{suffix}"
    write(path, Forest.from_trees(some))
    assert read_trees(path) == Forest.from_trees(some)


def test_examples_keep_what_the_other_programs_can_take(tmp_path):
    columns = {
        "class": ["1", -1], "b": ["(x (y z))", "(y)"], "vector": ["1:0.5 2:3", "2:1"], "n": ["a | b", None],
        "at": ["12:30", "1:05"],
    }  # fmt: skip
    write(tmp_path / "a.klp", with_columns(PARTS[0], **columns, tree=["(A b)", "no (tree"]))
    assert (tmp_path / "a.klp").read_text(encoding="utf-8") == (
        "1 |BT:main| (a (b (c))(d)) |ET| |BT:b| (x (y (z))) |ET| |BV:vector| 1:0.5 2:3 |EV| "
        "|BS:n| a b |ES| |BS:at| 12:30 |ES| |BT:tree| (A (b)) |ET|\n"
        "-1 |BT:main| (a (e)) |ET| |BT:b| (y) |ET| |BV:vector| 2:1 |EV| |BS:at| 1:05 |ES| "
        "|BS:tree| no (tree |ES|\n"
    )
    write(tmp_path / "a.svmlight", with_columns(PARTS[0], **columns))
    assert (tmp_path / "a.svmlight").read_text(encoding="utf-8") == (
        "1 |BT| (a (b (c))(d)) |BT| (x (y (z))) |ET| 1:0.5 2:3 |EV|\n-1 |BT| (a (e)) |BT| (y) |ET| 2:1 |EV|\n"
    )
    again = read_trees(tmp_path / "a.svmlight")
    assert again == PARTS[0]
    assert again.columns["class"] == ["1", "-1"]
    assert again.columns["vector"] == columns["vector"]


@pytest.mark.parametrize("name", ["a.klp", "a.svmlight"])
def test_vectors_of_files_of_examples_stay_vectors_and_texts_stay_texts(tmp_path, name):
    line = "1 |BT:t| (A (b)) |ET| |BV:bow| 7:2.5 |EV| |BV:none|  |EV| |BS:time| 12:30 |ES|\n"
    (tmp_path / "from.klp").write_text(line, encoding="utf-8")
    write(tmp_path / name, read_trees(tmp_path / "from.klp"))
    if name == "a.klp":
        assert (tmp_path / name).read_text(encoding="utf-8") == line.replace(":t|", ":tree|")
    else:
        assert read_trees(tmp_path / name).columns == {"class": ["1"], "vector": ["7:2.5"]}
        write(tmp_path / "b.svmlight", read_trees(tmp_path / name))
        assert (tmp_path / "b.svmlight").read_bytes() == (tmp_path / name).read_bytes()


def test_columns_named_as_the_tree_is_written_are_read_back(tmp_path):
    columns = {"tree": ["(A b|c)"], "main": ["x"], "class": ["#"]}
    write(tmp_path / "a.klp", with_columns(PARTS[1], **columns))
    again = read_trees(tmp_path / "a.klp")
    assert again == PARTS[1]
    assert again.columns == {"class": ["#"], "tree": [r"(A (b\x7cc))"], "main": ["x"]}


def test_vectors_of_svm_light_tk_have_ascending_numbers(tmp_path):
    columns = {"vector": ["how:1 a:2"], "vector2": ["10:1 2:3"], "vector3": ["0:1"], "class": [" 1\n"]}
    write(tmp_path / "a.svmlight", with_columns(PARTS[1], **columns))
    text = (tmp_path / "a.svmlight").read_text(encoding="utf-8")
    assert text == "1 |BT| (b (c)) |ET| 2:3 10:1 |EV|\n"


@pytest.mark.parametrize("label", ["NUM", "nan", float("inf")])
def test_classes_of_svm_light_tk_are_numbers(tmp_path, label):
    with pytest.raises(ParameterError, match=f"takes numbers as classes, such as 1 and -1, not '{label}'"):
        write(tmp_path / "a.svmlight", with_columns(PARTS[1], **{"class": [label]}))
    assert not list(tmp_path.iterdir())


def test_a_deep_tree_is_written_in_every_text(tmp_path):
    deep = read_trees(["(a " * 20_000 + "b" + ")" * 20_000])
    for name in ("a.nwk", "a.klp", "a.svmlight"):
        write(tmp_path / name, deep)
        assert read_trees(tmp_path / name) == deep


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"\.parquet"), forest_file(tmp_path / "trees.doc"):
        pass
