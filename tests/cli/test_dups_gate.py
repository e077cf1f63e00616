"""treedot dups --fail-on-new: third copies, functions without names, baselines of both versions."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from treedot.cli import main
from treedot.parameters import REPORT_FORMATS
from treedot.readers.code import grammars

LINES = """
x = a + b
y = a.b(c, d)
z[a] = [b, c]
assert a, b.c
del a, b[c]
a.b += c(d)(a)
x = a if b else c
y = [a for b in c]
return a < b < c
z = {a: b, c: d}
raise a(b) from c
x = not a
y = lambda a: -b
z = a[b:c]
yield a * b ** c
x = a, b, c, d
global a
x: a = b
y = {a, b}
z = a @ b
x = await_(a)[b].c
y = a and b or c
z = (a is b) is c
x = a[b][c][d]
""".strip().splitlines()


def function(name, first, count=16):
    return "\n".join([f"def {name}(a, b, c, d):", *(f"    {line}" for line in LINES[first : first + count])])


def callback(name, first):
    """Return a call with a function that has no name."""
    kinds = ("x = {};", "if (a < b) {{ {}(c); }}", "for (const a of {}) {{ b(a, c); }}", "b.{}.c = [a, a];",
             "throw {}(a)(b);", "while (!{}) {{ c -= 1; }}", "return a ? {} : [c];", "x[{}] = -b;",
             "a.b(c, {}, d);", "do {{ {}++; }} while (a);", "x = {{ a: {} }};", "delete a[{}];")  # fmt: skip
    body = "\n".join(f"  {kind.format(name)}" for kind in kinds[first : first + 6] * 2)
    return f"on(function (a, b) {{\n{body}\n}});\n"


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a repository with a pair of near-duplicates and a baseline of them; it is the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(function("left", 0))
    (tmp_path / "src/b.py").write_text(function("middle", 2))
    assert dups("--write-baseline", "known.json", "--fail-on-new") == 1
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *command], check=True)
    return tmp_path


def dups(*options):
    return main(["dups", "src", "-j", "1", *options])


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
WAYS = [
    pytest.param(("--changed-since", "HEAD"), marks=needs_git),
    pytest.param(("--baseline", "known.json"), marks=needs_git),
    pytest.param(("--changed-since", "HEAD", "--baseline", "known.json"), marks=needs_git),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_a_copy_of_one_member_of_a_known_pair_is_shown_and_fails(code, capsys, way, format):
    assert dups(*way, "--fail-on-new", "--format", format) == 0
    assert "src/b.py" not in capsys.readouterr().out
    (code / "src/c.py").write_text(function("right", 5))
    assert dups("--format", "json") == 0
    groups = json.loads(capsys.readouterr().out)["groups"]  # left and right are not alike
    names = [{member["name"] for member in group["members"]} for group in groups]
    assert names == [{"left", "middle"}, {"middle", "right"}]
    assert dups(*way, "--fail-on-new", "--format", format) == 1
    told = capsys.readouterr()
    assert "src/c.py" in told.out
    assert "src/b.py" in told.out
    assert "src/a.py" not in told.out
    if format == "gitlab":
        (issue,) = json.loads(told.out)
        assert issue["location"] == {"path": "src/c.py", "lines": {"begin": 1, "end": 17}}
    elif format == "sarif":
        (result,) = json.loads(told.out)["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/c.py"
    else:
        groups = told.out.partition('id="data"')[2] or told.out  # of a page
        assert groups.index("src/c.py") < groups.index("src/b.py")  # the new one comes first
    assert "group of 2 functions" in told.err


@pytest.mark.parametrize("way", WAYS)
def test_the_new_member_of_a_group_is_marked_and_a_failing_gate_says_what_to_do(code, capsys, way):
    (code / "src/c.py").write_text(function("right", 0))
    assert dups(*way, "--fail-on-new") == 1
    told = capsys.readouterr()
    _, new, *old = told.out.splitlines()
    assert new == "  src/c.py:1-17 right (new)"
    assert [line.endswith("(new)") for line in old] == [False] * len(old)
    advice = told.err.splitlines()[-1]
    assert "merge the copies, or accept one with a comment 'treedot: ignore' directly above it" in advice
    assert advice.endswith("; -o report.html shows the copies side by side")
    assert ("--write-baseline known.json" in advice) == ("--baseline" in way)
    assert dups(*way) == 0
    assert "failed" not in capsys.readouterr().err


@needs_git
def test_both_members_of_a_new_pair_are_new_and_an_edit_is(code, capsys):
    (code / "src/a.py").write_text(function("left", 0).replace("a + b", "a - b"))
    assert dups("--changed-since", "HEAD") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  src/a.py:1-17 left (new)",
        "  src/b.py:1-17 middle",
    ]
    (code / "src/c.py").write_text(function("one", 8) + "\n" + function("other", 8))
    assert dups("--baseline", "known.json") == 0
    assert [line.endswith(" (new)") for line in capsys.readouterr().out.splitlines()[1:]] == [True, True]


@needs_git
def test_writing_a_baseline_prints_no_list_unless_it_is_asked_for(code, capsys):
    capsys.readouterr()
    assert dups("--write-baseline", "new.json") == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "recorded all near-duplicates: --baseline new.json shows only new ones" in told.err
    assert "1 group of 2 functions" in told.err
    assert (code / "new.json").read_bytes() == (code / "known.json").read_bytes()
    assert dups("--write-baseline", "new.json", "-o", "report.txt") == 0
    assert "src/a.py" in (code / "report.txt").read_text()


@pytest.mark.parametrize("way", WAYS)
def test_moved_and_reformatted_copies_pass(code, capsys, way):
    (code / "src/a.py").rename(code / "src/moved.py")
    text = (code / "src/b.py").read_text()
    (code / "src/b.py").write_text("# a comment\n\n" + text.replace("a + b", "(a  +  b)  # !"))
    assert dups(*way, "--fail-on-new") == 0
    assert capsys.readouterr().out == "no near-duplicates\n"


@pytest.mark.parametrize("way", WAYS)
def test_a_new_pair_of_functions_without_names_fails(code, capsys, way):
    pytest.importorskip("tree_sitter_javascript")
    (code / "src/d.js").write_text(callback("f", 0) + callback("g", 0))
    assert dups("--write-baseline", "known.json") == 0
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"], check=True)
    assert dups(*way, "--fail-on-new") == 0
    capsys.readouterr()
    (code / "src/d.js").write_text(callback("f", 0) + callback("h", 6) + callback("g", 0) + callback("k", 6))
    assert dups(*way, "--fail-on-new", "--format", "json") == 1
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert [member["start"] for member in group["members"]] == [15, 43]


@needs_git
def test_a_baseline_of_the_first_version_is_read_and_reported_as_weaker(code, capsys):
    found = json.loads((code / "known.json").read_text())
    members = [
        {key: member[key] for key in ("file", "name", "content")}
        for tree in found["trees"]
        for member in tree["members"]
    ]
    (code / "known.json").write_text(json.dumps({"treedot_baseline": 1, "groups": [members]}))
    capsys.readouterr()
    assert dups("--baseline", "known.json", "--fail-on-new") == 0
    told = capsys.readouterr()
    assert "known.json is a baseline of version 1, which stores groups but not pairs" in told.err
    assert "renew it with --write-baseline known.json" in told.err
    (code / "src/c.py").write_text(function("left", 0))
    assert dups("--baseline", "known.json", "--fail-on-new") == 1
    assert dups("--baseline", "known.json", "--write-baseline", "known.json") == 0
    capsys.readouterr()
    assert dups("--baseline", "known.json", "--fail-on-new") == 0
    assert "weaker" not in capsys.readouterr().err


@needs_git
def test_an_edited_copy_is_known_to_a_baseline_and_has_changed_since_a_commit(code):
    (code / "src/b.py").write_text(function("middle", 2).replace("c(d)(a)", "c(d)"))
    assert dups("--baseline", "known.json", "--fail-on-new") == 0
    (code / "src/b.py").write_text(function("middle", 2).replace("b[c]", "b[d]"))
    assert dups("--baseline", "known.json", "--fail-on-new") == 0
    assert dups("--changed-since", "HEAD", "--fail-on-new") == 1


def test_a_gate_reports_that_its_baseline_was_made_with_another_grammar(code, capsys, monkeypatch):
    assert json.loads(Path("known.json").read_text())["grammars"].keys() == {"tree-sitter", "python"}
    assert dups("--baseline", "known.json", "--fail-on-new") == 0
    assert "was made with" not in capsys.readouterr().err
    monkeypatch.setattr(grammars, "version", lambda package: "99.0")
    assert dups("--baseline", "known.json", "--fail-on-new") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "was made with tree-sitter" in line]
    assert len(lines) == 1
    assert "but tree-sitter 99.0, tree-sitter-python 99.0 is installed" in lines[0]
    assert lines[0].endswith("renew it with --write-baseline known.json")


def test_a_baseline_without_versions_of_grammars_is_read_silently(code, capsys, monkeypatch):
    known = json.loads(Path("known.json").read_text())
    del known["grammars"]
    Path("known.json").write_text(json.dumps(known))
    monkeypatch.setattr(grammars, "version", lambda package: "99.0")
    assert dups("--baseline", "known.json", "--fail-on-new") == 0
    assert "was made with" not in capsys.readouterr().err
