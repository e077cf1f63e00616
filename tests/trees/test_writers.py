import pytest

from treedot import Forest, ParameterError, SourceError, read_trees
from treedot.trees import writers
from treedot.trees.writers import forest_file

PARTS = [
    read_trees(["(a (b c) d)", "(a e)"]),
    read_trees(["(b c)"]),
    read_trees(["(x (a y))", "(d)", "(a (b c) d)"]),
]


def with_columns(part, **columns):
    return Forest(part.label, part.arity, part.offsets, part.labels, columns)


@pytest.mark.parametrize("suffix", [".mrg", ".brackets", ".parquet", ".arrow", ".feather"])
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
    for columns, says in (({"new": ["x"]}, "'new'"), ({"line": ["x"]}, "cannot handle")):
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


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"\.parquet"), forest_file(tmp_path / "trees.doc"):
        pass
