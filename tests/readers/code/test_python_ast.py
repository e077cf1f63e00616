import ast
import gzip
import io
from pathlib import Path

import pytest

from treedot import iter_trees, read_trees
from treedot.errors import ParameterError, SourceError
from treedot.readers.code import CodeSettings, parse_code
from treedot.readers.code.processes import TooSlowError

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


if LIMIT:
    def last(): return lambda: 1
'''


@pytest.fixture(autouse=True)
def _without_tree_sitter(monkeypatch):
    monkeypatch.setattr("treedot.readers.code.treesitter.is_installed", lambda language: False)


def test_functions_and_methods_of_a_file_are_trees(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(SOURCE)
    forest = read_trees(path)
    assert forest.columns == {
        "file": [str(path)] * 4,
        "start": [8, 12, 13, 20],
        "end": [10, 16, 14, 20],
        "name": ["C.f", "C.g", "C.g.inner", "last"],
        "language": ["python"] * 4,
        "errors": [0] * 4,
    }
    text = str(forest[0])
    assert "(BinOp (identifier x) Add (integer 1))" in text
    assert "(arguments (arg (identifier self)) (arg (identifier x)) None)" in text
    assert "Doc" not in text
    assert forest[1].label == "AsyncFunctionDef"
    assert forest[2] in forest[1].children
    assert "LIMIT" not in forest.labels
    assert read_trees(path, "python") == read_trees(str(path)) == forest


def test_names_and_literals_are_kept_blurred_or_dropped():
    source = "def f(x):\n    return x.y + 1, 'a', b'a', None\n"
    trees = {}
    for policy in ("keep", "blur", "drop"):
        settings = CodeSettings(identifiers=policy, literals=policy, blurred=True)
        forest = parse_code(source, "python", settings=settings)
        trees[policy] = str(forest[0])
        assert len(forest.columns["blurred"][0]) == (7 if policy == "blur" else 0)
    assert trees == {
        "keep": "(FunctionDef (identifier f) (arguments (arg (identifier x))) (Return (Tuple (BinOp "
        "(Attribute (identifier x) (identifier y)) Add (integer 1)) (string a) (string ba) None)))",
        "blur": "(FunctionDef identifier (arguments (arg identifier)) (Return (Tuple (BinOp (Attribute "
        "identifier identifier) Add integer) string string None)))",
        "drop": "(FunctionDef (arguments arg) (Return (Tuple (BinOp Attribute Add) None)))",
    }


def test_both_parsers_find_the_same_units(monkeypatch):
    source = Path(ast.__file__).read_bytes()
    for unit in ("function", "class", "file"):
        settings = CodeSettings(unit=unit)
        by_ast = parse_code(source, "python", settings=settings)
        with monkeypatch.context() as patch:
            patch.setattr("treedot.readers.code.treesitter.is_installed", lambda language: True)
            by_tree_sitter = parse_code(source, "python", settings=settings)
        assert by_ast.columns == by_tree_sitter.columns
        assert by_ast.labels != by_tree_sitter.labels


def test_python_comes_from_everywhere_that_trees_come_from(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "b.py.gz").write_bytes(gzip.compress(SOURCE.encode()))
    (tmp_path / "empty.py").write_text("LIMIT = 3\n")
    both = read_trees([tmp_path / "a.py", tmp_path / "empty.py", tmp_path / "b.py.gz"])
    assert len(both) == 8
    assert both.columns["file"][4] == str(tmp_path / "b.py.gz")
    assert len(read_trees(tmp_path / "empty.py")) == 0
    latin = "# coding: latin-1\ndef f(): return 'ä'"
    assert "ä" in read_trees(io.StringIO(latin), "python").labels
    assert "ä" in read_trees(io.BytesIO(latin.encode("latin-1")), "python").labels
    assert (
        "ä"
        in read_trees(io.BytesIO(latin.encode("utf-8-sig").replace(b"latin-1", b"utf-8")), "python").labels
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
    (tmp_path / "bytes.py").write_bytes(b"x = '\xff'")
    with pytest.raises(SourceError, match=r"bad\.py:2:5: this is not Python 3"):
        read_trees(tmp_path / "bad.py")
    for name in ("null", "bytes"):
        with pytest.raises(SourceError, match=rf"{name}\.py"):
            read_trees(tmp_path / f"{name}.py")
    errors: list[SourceError] = []
    paths = [tmp_path / f"{name}.py" for name in ("bad", "null", "bytes", "good")]
    assert len(read_trees(paths, on_bad=errors.append)) == 4
    assert len(errors) == 3
    with pytest.raises(ParameterError, match="no column 'tree'"):
        read_trees(tmp_path / "good.py", column="tree")


def test_odd_constants_have_labels(tmp_path):
    digits = "f" * 5000
    (tmp_path / "m.py").write_text(f"def f():\n    return '\\udc80', 0x{digits}, b'x', ..., '', 1.5j\n")
    labels = read_trees(tmp_path / "m.py").labels
    assert {"\\udc80", f"0x{digits}", "bx", "Ellipsis", "", "1.5j"} <= set(labels)


def test_deep_source_is_read_or_refused(tmp_path):
    (tmp_path / "m.py").write_text("def f(x):\n    return " + " + ".join(["x"] * 20_000) + "\n")
    errors: list[SourceError] = []
    forest = read_trees(tmp_path / "m.py", on_bad=errors.append)
    assert len(forest) + len(errors) == 1


def test_parsing_ends_with_its_time():
    with pytest.raises(
        TooSlowError, match=r"m\.py: takes longer than 0\.01 s to parse: .*read_code\(max_seconds=…\)"
    ):
        parse_code("a," * 100_000, "python", file="m.py", settings=CodeSettings(max_seconds=0.01))
