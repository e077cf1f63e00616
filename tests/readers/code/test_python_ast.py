import ast
import gzip
import io
from pathlib import Path

import pytest

from treedot import iter_trees, read_trees
from treedot.errors import ParameterError, SourceError

SOURCE = '''
LIMIT = 3


class C:
    """A class."""

    def f(self, x=None):
        """Doc."""
        return x + 1

    async def g(self):
        def inner(y):
            return {"k": y, **y}

        return inner


def last(): return lambda: 1
'''


def test_functions_and_methods_of_a_file_are_trees(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(SOURCE)
    forest = read_trees(path)
    assert forest.columns == {
        "file": [str(path)] * 4,
        "line": [8, 12, 13, 19],
        "name": ["C.f", "C.g", "C.g.inner", "last"],
    }
    text = str(forest[0])
    assert "(BinOp (Name x) Add (Constant 1))" in text
    assert "(Constant None)" in text
    assert "Doc" not in text
    assert forest[1].label == "AsyncFunctionDef"
    assert forest[2] in forest[1].children
    assert "LIMIT" not in forest.labels
    assert read_trees(path, "python") == read_trees(str(path)) == forest


def test_python_comes_from_everywhere_that_trees_come_from(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "b.py.gz").write_bytes(gzip.compress(SOURCE.encode()))
    (tmp_path / "empty.py").write_text("LIMIT = 3\n")
    both = read_trees([tmp_path / "a.py", tmp_path / "empty.py", tmp_path / "b.py.gz"])
    assert len(both) == 8
    assert both.columns["file"][4] == str(tmp_path / "b.py.gz")
    assert len(read_trees(tmp_path / "empty.py")) == 0
    assert len(read_trees(io.StringIO("# coding: latin-1\ndef f(): return 'ä'"), "python")) == 1
    assert (
        "ä"
        in read_trees(io.BytesIO("# coding: latin-1\ndef f(): return 'ä'".encode("latin-1")), "python").labels
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SOURCE.encode())))
    assert read_trees("-", "python").columns["file"] == ["<stdin>"] * 4
    batches = list(iter_trees(tmp_path / "a.py", batch_size=3))
    assert [len(batch) for batch in batches] == [3, 1]
    assert batches[1].columns["name"] == ["last"]
    assert len(read_trees(Path(ast.__file__))) > 50


def test_source_that_is_not_python_is_refused_with_its_line(tmp_path):
    (tmp_path / "good.py").write_text(SOURCE)
    (tmp_path / "bad.py").write_text("x = 1\ndef (\n")
    (tmp_path / "null.py").write_bytes(b"x = 1\0")
    with pytest.raises(SourceError, match=r"bad\.py:2:5: this is not Python 3"):
        read_trees(tmp_path / "bad.py")
    with pytest.raises(SourceError, match=r"null\.py"):
        read_trees(tmp_path / "null.py")
    errors: list[SourceError] = []
    paths = [tmp_path / "bad.py", tmp_path / "null.py", tmp_path / "good.py"]
    assert len(read_trees(paths, on_bad=errors.append)) == 4
    assert len(errors) == 2
    with pytest.raises(ParameterError, match="no column 'tree'"):
        read_trees(tmp_path / "good.py", column="tree")


def test_odd_constants_have_labels(tmp_path):
    digits = "f" * 5000
    (tmp_path / "m.py").write_text(f"def f():\n    return '\\udc80', 0x{digits}, b'x', ..., '', 1.5j\n")
    labels = read_trees(tmp_path / "m.py").labels
    assert {"\\udc80", f"0x{digits}", "b'x'", "Ellipsis", "", "1.5j"} <= set(labels)


def test_deep_source_is_read_or_refused(tmp_path):
    (tmp_path / "m.py").write_text("def f(x):\n    return " + " + ".join(["x"] * 20_000) + "\n")
    errors: list[SourceError] = []
    forest = read_trees(tmp_path / "m.py", on_bad=errors.append)
    assert len(forest) + len(errors) == 1
