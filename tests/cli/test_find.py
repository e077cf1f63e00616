"""The commands that find: index, search, similar and cluster."""

import csv
import io
import json

import pytest

from strategies import random_forest
from treedot import TreeIndex
from treedot.cli import main
from treedot.readers import read_code
from treedot.readers.code import grammars

ADD = """
def add(numbers):
    total = 0
    for number in numbers:
        if number > 0:
            total += number
    return total
"""
RENAMED = ADD.replace("add", "plus").replace("numbers", "xs").replace("total", "s").replace("number", "x")
OTHER = """
class Shape:
    def area(self):
        while self.width:
            self.width.pop()
        return [side ** 2 for side in self.sides()]
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a folder of source files, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    for name, text in (("a", ADD), ("b", RENAMED), ("c", OTHER)):
        (tmp_path / "src" / f"{name}.py").write_text(text)
    return tmp_path


def told(capsys):
    return capsys.readouterr().out


def test_a_renamed_copy_is_found_with_its_place(code, capsys):
    assert main(["index", "src", "-o", "x.index"]) == 0
    assert told(capsys) == "3 units in x.index\n"
    assert main(["search", "x.index", "src/a.py", "-k", "2"]) == 0
    query, header, first, second = told(capsys).splitlines()
    assert query == "src/a.py:2-7 add"
    assert header.split() == ["cosine", "similarity"]
    assert first.split() == ["1.000", "1.000", "src/a.py:2-7", "add"]
    cosine, *rest = second.split()
    assert 0 < float(cosine) < 1  # names count
    assert rest == ["1.000", "src/b.py:2-7", "plus"]  # here they do not


@pytest.mark.parametrize("query", ["src/b.py", "src/b.py:4", "src/b.py:plus", RENAMED, "-"])
def test_a_query_is_a_file_a_unit_of_it_a_text_or_standard_input(code, capsys, monkeypatch, query):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(RENAMED.encode())))
    main(["index", "src", "-o", "x.index"])
    told(capsys)
    assert main(["search", "x.index", query, "--format", "json", "-k", "1"]) == 0
    (answer,) = json.loads(told(capsys))
    assert answer["found"][0]["file"] == "src/b.py"
    assert answer["found"][0]["name"] == "plus"
    assert answer["found"][0]["cosine"] == pytest.approx(1, abs=1e-4)
    assert answer["found"][0]["similarity"] == 1


def test_statements_that_are_no_function_can_be_looked_for(code, capsys):
    main(["index", "src", "-o", "x.index"])
    told(capsys)
    query = "for a in b:\n    if a > 1:\n        c += a"
    assert main(["search", "x.index", query, "--format", "json", "--threshold", "0"]) == 0
    (answer,) = json.loads(told(capsys))
    assert {one["name"] for one in answer["found"][:2]} == {"add", "plus"}
    assert [one["name"] for one in answer["found"][2:]] == ["Shape.area"]


def test_what_is_unlike_everything_finds_nothing(code, capsys):
    main(["index", "src", "-o", "x.index"])
    told(capsys)
    query = "with open(a) as f:\n    return [g(x, y=1) for x in f if not x]"
    assert main(["search", "x.index", query]) == 0
    assert "no unit of the index is similar (--threshold 0 lists the nearest)" in told(capsys)
    assert main(["search", "x.index", query, "--threshold", "0"]) == 0
    assert "Shape.area" in told(capsys)
    assert main(["search", "x.index", query, "--threshold", "2"]) == 1
    assert "threshold must be a number from 0 to 1" in capsys.readouterr().err


def test_an_index_of_blurred_names_without_weights_is_searched_as_it_is(code, capsys):
    reading = {"identifiers": "blur", "literals": "blur"}
    trees = read_code("src", **reading)
    TreeIndex.build(trees, code / "old.index", reading=reading)
    assert main(["search", "old.index", "src/a.py", "-k", "2"]) == 0
    _, _, first, second = told(capsys).splitlines()
    assert first.split() == ["1.000", "1.000", "src/a.py:2-7", "add"]
    assert second.split() == ["1.000", "1.000", "src/b.py:2-7", "plus"]


def test_an_update_reads_what_changed_and_removes_what_is_gone(code, capsys, monkeypatch):
    main(["index", "src", "-o", "x.index"])
    (code / "src" / "a.py").unlink()
    (code / "src" / "b.py").write_text(RENAMED + "\n\ndef more(a):\n    return a\n")
    (code / "src" / "d.py").write_text("def new():\n    return 1\n")
    read = []
    monkeypatch.setattr(
        "treedot.readers.code.reader.read_units",
        lambda file, **rest: read.append(file.path) or original(file, **rest),
    )
    told(capsys)
    assert main(["index", "src", "-o", "x.index", "--update"]) == 0
    assert told(capsys) == "4 units in x.index (before: 3); 1 unchanged files\n"
    assert read == ["src/b.py", "src/d.py"]
    index = TreeIndex.open(code / "x.index")
    assert index.column("name") == ["Shape.area", "plus", "more", "new"]
    assert main(["index", "src/d.py", "-o", "x.index", "--update"]) == 0
    assert TreeIndex.open(code / "x.index").column("file") == index.column("file")


@pytest.mark.parametrize("again", ["./src", "../{}/src", "{}/src", "linked/src"])
def test_an_update_knows_a_file_however_its_path_is_written(code, again):
    (code / "linked").symlink_to(code)
    main(["index", "src", "-o", "x.index"])
    (code / "src" / "b.py").write_text(RENAMED + "\n\ndef more(a):\n    return a\n")
    (code / "src" / "c.py").unlink()
    path = again.format(code.name if again.startswith("..") else code)
    assert main(["index", path, "-o", "x.index", "--update"]) == 0
    index = TreeIndex.open(code / "x.index")
    assert index.column("name") == ["add", "plus", "more"]
    assert index.column("file") == ["src/a.py", "src/b.py", "src/b.py"]


def test_an_update_joins_the_two_names_of_one_file(code):
    trees = random_forest(0, 2)
    trees.columns["file"] = ["src/a.py", str(code / "src" / "a.py")]
    TreeIndex.build(trees, code / "x.index")
    assert main(["index", "src", "-o", "x.index", "--update"]) == 0
    assert sorted(TreeIndex.open(code / "x.index").column("name")) == ["Shape.area", "add", "plus"]


def original(file, **how):
    from treedot.readers.code.source_files import read_units

    return read_units(file, **how)


def test_standard_input_may_be_any_bytes_or_closed(code, capsys, monkeypatch):
    main(["index", "src", "-o", "x.index"])
    content = b"\xef\xbb\xbf" + RENAMED.encode() + b"# \xff\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    assert main(["search", "x.index", "-"]) == 0
    monkeypatch.setattr("sys.stdin", None)
    assert main(["search", "x.index", "-"]) == 1
    assert "standard input: it is closed" in capsys.readouterr().err


def test_names_of_files_do_not_disturb_the_terminal(code, capsys):
    (code / "src" / "\x1b[2J.py").write_text(ADD)
    main(["index", "src", "-o", "x.index"])
    assert main(["search", "x.index", "src/a.py"]) == 0
    said = told(capsys)
    assert "\x1b" not in said
    assert "src/\\x1b[2J.py:2-7 add" in said


@pytest.mark.parametrize("again", ["./t.mrg", "t.mrg"])
def test_a_file_of_trees_is_the_same_however_it_is_named(tmp_path, monkeypatch, again):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.mrg").write_text("(A b)\n(C d)\n")
    assert main(["index", "./t.mrg", "-o", "x.index"]) == 0
    assert main(["index", again, "-o", "x.index", "--update"]) == 0
    assert len(TreeIndex.open("x.index")) == 2


def test_an_index_with_odd_names_of_files_can_be_updated(code):
    trees = random_forest(0, 3)
    trees.columns["file"] = [["a", "list"], {"an": "object"}, "a\0name"]
    TreeIndex.build(trees, code / "x.index")
    assert main(["index", "src", "-o", "x.index", "--update"]) == 0
    assert len(TreeIndex.open(code / "x.index")) == 6


def test_files_of_trees_can_be_indexed_and_updated(tmp_path, capsys):
    path, index = tmp_path / "t.mrg", str(tmp_path / "x")
    path.write_text("".join(f"{tree}\n" for tree in random_forest(0, 8)))
    assert main(["index", str(path), "-o", index]) == 0
    assert main(["search", index, str(random_forest(0, 8)[3]), "-k", "1"]) == 0
    assert str(random_forest(0, 8)[3])[:40] in told(capsys)
    path.write_text("(A b)\n")
    assert main(["index", str(path), "-o", index, "--update"]) == 0
    assert len(TreeIndex.open(index)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "src", "-o", "x.index"], "x.index exists: --update updates it"),
        (["index", "src", "-o", "x.index", "--update", "--unit", "class"], "remove --unit"),
        (["index", "none", "-o", "y.index"], "cannot open none"),
        (
            ["index", "src", "-o", "y.index", "--min-nodes", "1000"],
            "no trees found to index: in folders, only source code is read, or",
        ),
        (["search", "src/a.py", "src/a.py"], "src/a.py"),
        (["search", "x.index", "none.py"], "no such file"),
        (["search", "x.index", "none.py:3"], "cannot open none.py: no such file or folder"),
        (["search", "x.index", "src/a.py:900"], "no unit contains line 900"),
        (
            ["search", "x.index", "def f("],
            "the query has 1 syntax error as python code, near line 1, column 1: for another language,",
        ),
        (["search", "x.index", "for (;;) {", "--language", "c"], "as c code, near line 1, column 11"),
        (["similar", "src/c.py:none", "src/a.py"], "no unit is called none; its units are 'Shape.area'"),
        (["similar", "src/c.py:Shape.aera", "src/a.py"], "(did you mean Shape.area?)"),
        (["similar", "src/c.py:aera", "src/a.py"], "(did you mean Shape.area?)"),
        (["similar", "src/d.py:add", "src/a.py"], "give one of 'A.add', 'B.add'"),
        (["search", "x.index", "src/a.py:" + "9" * 5000], "no unit contains line 999"),
        (["search", "x.index", "src/a.py", "-k", "0"], "-k must be at least 1"),
        (["search", "x.index", ""], "is empty: give source code"),
        (["similar", "src/a.py", "src/none.py"], "no such file"),
        (["cluster", "src", "-o", "none/c.csv"], "does not exist"),
        (["cluster", "src", "-o", "c.csv", "--html", "./c.csv"], "name the same file"),
        (["cluster", "src", "-o", "src/a.py"], "is the file that the trees are read from"),
        (["cluster", "src", "-o", "c.csv", "--min-nodes", "1000"], "no units found to cluster"),
    ],
)
def test_what_cannot_be_done_is_said(code, capsys, arguments, message):
    assert main(["index", "src", "-o", "x.index"]) == 0
    method = "    def add(self):\n        return {}\n"
    (code / "src" / "d.py").write_text(f"class A:\n{method.format(1)}class B:\n{method.format(2)}")
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


def test_the_name_of_a_method_suffices_if_it_is_the_only_one(code, capsys):
    assert main(["similar", "src/c.py:area", "src/c.py:Shape.area"]) == 0
    first, second, *_ = told(capsys).splitlines()
    assert first.removeprefix("A") == second.removeprefix("B") != ""
    (code / "src" / "c.py").write_text(OTHER + ADD.replace("add", "area"))
    assert main(["similar", "src/c.py:area", "src/a.py:add"]) == 0  # the function, which has the whole name
    assert "edit distance  0 " in told(capsys)


def test_units_that_share_nothing_are_no_results(code, capsys):
    main(["index", "src", "-o", "x.index"])
    told(capsys)
    assert main(["search", "x.index", "x"]) == 0
    assert told(capsys) == (
        "<snippet>:1-1\n  no unit of the index is similar (--threshold 0 lists the nearest)\n"
    )
    assert main(["search", "x.index", "x", "--format", "json"]) == 0
    assert json.loads(told(capsys)) == [{"query": "<snippet>:1-1", "found": []}]


@pytest.mark.parametrize("command", [["search", "x.index"], ["similar", "src/a.py"]])
def test_a_query_with_a_syntax_error_is_compared_with_a_remark(code, capsys, command):
    main(["index", "src", "-o", "x.index"])
    assert main([*command, RENAMED + "    while x >"]) == 0
    said = capsys.readouterr()
    assert "the query has 1 syntax error as python code, near line 8, column 5: " in said.err
    assert "src/a.py:" in said.out


def test_the_place_of_a_syntax_error_is_within_the_unit_of_the_query(code, capsys):
    main(["index", "src", "-o", "x.index"])
    (code / "broken.py").write_text("x = é é\n\n" + RENAMED + "    y = é é\n")
    assert main(["search", "x.index", "broken.py:plus"]) == 0
    assert "broken.py has 1 syntax error as python code, near line 10, column 9: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["index", "cluster"])
@pytest.mark.parametrize("unit", ["function", "page"])
def test_a_folder_without_a_file_to_read_is_named_with_the_suffixes_it_has(code, capsys, command, unit):
    (code / "notes").mkdir()
    (code / "notes" / "a.txt").write_text("x")
    good = "src" if unit == "function" else "page.html"
    (code / "page.html").write_text("<p>a</p>")
    for paths in (["notes"], ["notes", good]):
        assert main([command, *paths, "--unit", unit, "-o", "made"]) == 1
        assert "file to read in notes: its files are 1 .txt" in capsys.readouterr().err
        assert not (code / "made").exists()


def test_two_units_are_compared_and_explained(code, capsys):
    assert main(["similar", "src/a.py:add", "src/b.py:plus"]) == 0
    lines = told(capsys).splitlines()
    assert lines[0].startswith("A: src/a.py:2-7 add, ")
    assert [line.split("  ")[0] for line in lines[3:]] == [
        "similarity", "cosine", "agreement", "edit distance",
    ]  # fmt: skip
    assert lines[3].startswith("similarity     1.000")
    assert lines[6].startswith("edit distance  0 ")
    assert main(["similar", "src/a.py", "src/c.py", "--explain"]) == 0
    said = told(capsys)
    assert "in both: " in said
    assert "in B only: " in said
    assert "class_definition → " in said or "ClassDef → " in said
    assert main(["similar", "(A (B b) c)", "(A (B b) d)", "--format", "json"]) == 0
    facts = json.loads(told(capsys))
    assert facts["edits"] == 1
    assert facts["agreement"] is None
    assert facts["shared"] == {"B → b": 1}


@pytest.mark.slow
def test_pages_of_a_folder_are_indexed_searched_and_clustered(tmp_path, capsys, monkeypatch):
    pytest.importorskip("lxml")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    for n in range(6):
        items = f"<li><a href=x>{n}</a></li>" * (n + 3)
        (tmp_path / "site" / f"list{n}.html").write_text(f"<h1>Title</h1><ul>{items}</ul>")
        cells = f"<tr><td>{n}</td><td><b>x</b></td></tr>" * (n + 3)
        (tmp_path / "site" / f"table{n}.html").write_text(f"<table>{cells}</table><p>end</p>")
    assert main(["index", "site", "-o", "x.index", "--unit", "page"]) == 0
    assert main(["index", "site", "-o", "x.index", "--update"]) == 0
    assert len(TreeIndex.open("x.index")) == 12
    told(capsys)
    for query in ("site/list4.html", (tmp_path / "site" / "list4.html").read_text()):
        assert main(["search", "x.index", query, "-k", "1", "--format", "json"]) == 0
        assert json.loads(told(capsys))[0]["found"][0]["file"] == "site/list4.html"
    assert main(["cluster", "site", "-o", "c.csv", "--unit", "page", "--min-size", "3"]) == 0
    assert told(capsys) == "12 units: 2 clusters, and 0 units in no cluster\n"


def test_clusters_are_a_table_and_a_page(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(6):
        (tmp_path / f"a{number}.py").write_text(ADD.replace("0", str(number)))
        (tmp_path / f"c{number}.py").write_text(OTHER)
    (tmp_path / "d.py").write_text("def alone(x):\n    yield lambda: x\n")
    assert main(["cluster", ".", "-o", "c.csv", "--html", "c.html", "--min-size", "3"]) == 0
    assert told(capsys) == "12 units: 2 clusters, and 0 units in no cluster\n"  # without the one-liner
    options = ("--html", "c.html", "--min-size", "3", "--min-nodes", "1")
    assert main(["cluster", ".", "-o", "c.csv", *options]) == 0
    assert told(capsys) == "13 units: 2 clusters, and 1 unit in no cluster\n"
    with (tmp_path / "c.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["cluster"] for row in rows] == ["0"] * 6 + ["1"] * 6 + ["-1"]
    assert rows[0] == {
        "id": "0", "file": "a0.py", "start": "2", "end": "7", "name": "add",
        "cluster": "0", "size": "6", "medoid": "0", "spread": "0.0000",
    }  # fmt: skip
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert page.count("<details>") == 2
    assert "a5.py:2-7 add" in page
    assert "http" not in page


@pytest.mark.filterwarnings("default")
def test_a_search_reports_in_one_line_that_its_index_was_made_with_another_grammar(code, capsys, monkeypatch):
    main(["index", "src", "-o", "x.index"])
    main(["search", "x.index", "src/a.py"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(grammars, "version", lambda package: "99.0")
    assert main(["search", "x.index", "src/a.py", "-k", "1"]) == 0
    told = capsys.readouterr()
    assert "src/a.py:2-7 add" in told.out
    (line,) = told.err.splitlines()
    assert line.startswith("treedot: x.index was made with tree-sitter 0.")
    assert "but tree-sitter 99.0, tree-sitter-python 99.0 is installed" in line
    assert line.endswith("build the index again (treedot index --overwrite)")


def test_an_index_remembers_which_files_are_left_out(code, capsys):
    (code / "src" / "node_modules").mkdir()
    (code / "src" / "node_modules" / "n.py").write_text("def n(x):\n    return x + 1\n")
    (code / "src" / "extra.py").write_text("def extra(x):\n    return x + 1\n")

    def names():
        return set(TreeIndex.open("x.index").column("name"))

    assert main(["index", "src", "-o", "x.index", "--exclude", "extra.py"]) == 0
    assert "1 dependency folder (src/node_modules), 1 ignored" in capsys.readouterr().err
    assert not {"n", "extra"} & names()
    assert main(["index", "src", "-o", "x.index", "--update"]) == 0
    assert not {"n", "extra"} & names()
    assert main(["index", "src", "-o", "x.index", "--update", "--exclude", "a.py"]) == 1
    assert "--exclude" in capsys.readouterr().err
    assert main(["index", "src", "-o", "x.index", "--include-vendored", "--overwrite"]) == 0
    assert {"n", "extra"} <= names()
    assert main(["index", "src", "-o", "x.index", "--update"]) == 0
    assert {"n", "extra"} <= names()
    assert main(["index", "src", "-o", "y.index", "--unit", "page", "--exclude", "a"]) == 1
    assert ".treedotignore" in capsys.readouterr().err
