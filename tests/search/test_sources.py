import pytest

from treedot import TreeIndex
from treedot.cli import main
from treedot.search.sources import MAX_LINES, is_as_indexed, lines_difference, lines_of

MODULE = "X = 1\r\n\r\ndef double(a):\r\n    return a + a\r\n\r\n\r\ndef half(a):\r\n    return a / 2\r\n"


@pytest.fixture
def units(tmp_path):
    (tmp_path / "a.py").write_bytes(MODULE.encode())
    assert main(["index", str(tmp_path / "a.py"), "-o", str(tmp_path / "code.index")]) == 0
    return TreeIndex.open(tmp_path / "code.index").forest([0, 1])


def test_the_lines_of_a_unit_are_those_of_its_file(units):
    assert lines_of(units) == ["def double(a):", "    return a + a"]
    assert lines_of(units, 1) == ["def half(a):", "    return a / 2"]


def test_a_unit_is_as_indexed_until_its_file_changes(units, tmp_path):
    assert is_as_indexed(units[[0]])
    (tmp_path / "a.py").write_text(MODULE + "\n")
    assert not is_as_indexed(units[[0]])
    (tmp_path / "a.py").unlink()
    assert not is_as_indexed(units[[0]])
    assert lines_of(units) == []


def test_a_tree_without_a_file_has_no_lines(units):
    units.columns.clear()
    assert lines_of(units) == []
    assert not is_as_indexed(units)


def test_long_texts_are_not_aligned():
    lines = ["x = 1"] * MAX_LINES
    assert lines_difference(lines, ["y = 1"] * MAX_LINES, "python").renamed == (("x", "y"),)
    assert lines_difference(lines, [*lines, "x = 1"], "python") is None
