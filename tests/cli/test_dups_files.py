"""The files of treedot dups: odd names and encodings, what is gone meanwhile, and where reports go."""

import io
import json
import sys

import pytest

from treedot.cli import main

BODY = """
    total = 0
    for item in items:
        if item > limit:
            total += item * 2
        elif item < 0:
            total -= item
    return [total, limit, len(items)]
"""
ADD = f"def add(items, limit):{BODY}"
PLUS = f"def plus(items, limit):{BODY}"


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a folder with two copies of a function, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(ADD)
    (tmp_path / "src/b.py").write_text(f"import os\n\n\n{PLUS}")
    return tmp_path


def test_the_path_of_a_baseline_is_relative_to_the_settings(code, monkeypatch):
    main(["dups", "src", "--write-baseline", "known.json"])
    (code / "treedot.toml").write_text('[dups]\nbaseline = "known.json"\n')
    monkeypatch.chdir(code / "src")
    assert main(["dups", ".", "--fail-on-new"]) == 0


@pytest.mark.parametrize(
    "content", [ADD.encode("utf-16"), ADD.encode("utf-8-sig"), ADD.replace("\n", "\r\n").encode()]
)
def test_files_are_compared_in_their_own_encoding(code, capsys, content):
    (code / "src/b.py").write_bytes(content)
    assert main(["dups", "src"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(": the same text")


def test_a_file_that_is_gone_meanwhile_is_told_without_its_lines(code, capsys, monkeypatch):
    from treedot.clones import duplicates

    def find(*arguments, **settings):
        (code / "src/b.py").unlink()
        return found(*arguments, **settings)

    found = duplicates.near_duplicates
    monkeypatch.setattr(duplicates, "near_duplicates", find)
    assert main(["dups", "src"]) == 0
    assert "src/b.py:4-11 plus" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "cannot open none: no such file or folder"),
        (["src", "--top", "0"], "--top must be at least 1"),
        (["src", "--baseline", "none.json"], "cannot open none.json"),
        (["src", "-o", "none/report"], "the folder none does not exist"),
        (
            ["src/a.py", "-o", "src/a.py", "--format", "text"],
            "src/a.py is the file that the trees are read from",
        ),
        (["src", "-o", "src/a.py", "--format", "text"], "src/a.py is the file that the trees are read from"),
        (["src", "--write-baseline", "src/a.py"], "src/a.py is the file that the trees are read from"),
        (["src", "--write-baseline", "x", "-o", "x"], "x is the baseline"),
        (["src", "--changed-since", "HEAD"], "--changed-since"),
        (["a\x1b[2Jb"], "cannot open a\\x1b[2Jb: "),
        (["src", "--threshold", "nan"], "threshold must"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_changed(code, capsys, monkeypatch, arguments, message):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(code.parent))
    assert main(["dups", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert (code / "src/a.py").read_text() == ADD


@pytest.mark.parametrize("text", ["[dups", "a = " + "[" * 5000, "[dups]\nbaseline = 1\n"])
def test_settings_that_cannot_be_read_are_told(code, capsys, text):
    (code / "treedot.toml").write_text(text)
    assert main(["dups", "src"]) == 2
    assert "treedot.toml" in capsys.readouterr().err


NOTHING = [
    ({}, (), "no source file to read in lib: it has no files"),
    (
        {"a.txt": "x", "b.md": "x", "c/b.md": "x", "Make": "x"},
        (),
        "its files are 2 .md, 1 without a suffix, 1 .txt",
    ),
    ({"a.js": "f()"}, ("--language", "rust"), "no rust file to read in lib: its files are 1 .js"),
    ({"a.py": ADD}, ("--exclude", "*.py"), "its files are 1 .py; left out: 1 ignored"),
    ({"a.py": "# @generated\n" + ADD}, (), "its files are 1 .py; left out: 1 generated"),
    ({"a.py": ADD, ".gitignore": "*.py"}, (), "it has no files; left out: 1 ignored"),
]


@pytest.mark.parametrize("others", [(), ("src",)])
@pytest.mark.parametrize(("files", "options", "message"), NOTHING)
def test_a_gate_over_a_folder_without_a_source_file_fails(code, capsys, files, options, message, others):
    (code / "lib" / "c").mkdir(parents=True)
    for name, text in files.items():
        (code / "lib" / name).write_text(text)
    assert main(["dups", "lib", *others, "--fail-on-new", *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    if not others:
        assert message in said.err


def test_a_folder_counts_as_read_if_another_name_of_it_was_read(code, capsys):
    (code / "link").symlink_to("src")
    assert main(["dups", "link", "src", "src/a.py", "."]) == 0
    assert "2 copies" in capsys.readouterr().out


def test_a_gate_over_files_none_of_which_can_be_read_fails(code, capsys):
    (code / "notes.txt").write_text("x")
    assert main(["dups", "notes.txt", "--fail-on-new"]) == 2
    assert "notes.txt: unknown language" in capsys.readouterr().err
    assert main(["dups", "notes.txt", "src/a.py", "--fail-on-new"]) == 0


def test_a_folder_without_long_functions_has_no_duplicates(code, capsys):
    assert main(["dups", "src", "--fail-on-new", "--min-nodes", "1000", "--exclude", "\udcff*"]) == 0
    assert capsys.readouterr().out == "no near-duplicates\n"


def test_names_are_shown_on_any_terminal(code, capsys, monkeypatch):
    (code / "src/b.py").rename(code / "src/\x1b[31mé\n.py")
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert main(["dups", "src"]) == 0
    assert rb"src/\x1b[31m\xe9\n.py:4-11 plus" in narrow.buffer.getvalue()
    assert main(["dups", "src", "--format", "json", "-o", "r.json"]) == 0
    (group,) = json.loads((code / "r.json").read_text())["groups"]
    assert {member["file"] for member in group["members"]} == {"src/a.py", "src/\x1b[31mé\n.py"}


def test_a_named_file_above_the_limit_is_left_out_with_a_message_that_names_no_option(code, capsys):
    (code / "src/a.py").write_text(ADD + "#" * 2_000_000)
    assert main(["dups", "src/a.py", "src/b.py"]) == 0
    told = capsys.readouterr()
    assert told.out == "no near-duplicates\n"
    assert "left out src/a.py: larger than 2,000,000 bytes" in told.err
    assert "in Python with read_code(max_bytes=…)" in told.err


def test_code_that_nobody_wrote_for_the_project_is_compared_only_if_asked_for(code, capsys):
    stub = "@overload\n" + ADD.replace("add", "stub")
    for name, text in {
        "node_modules/a/a.py": ADD,
        "third_party/a.py": PLUS,
        "env/pyvenv.cfg": "",
        "env/a.py": ADD,
        "gen.py": "# This file is generated by a tool.\n" + ADD,
        "typed.py": stub + stub,
    }.items():
        (code / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (code / "src" / name).write_text(text)
    assert main(["dups", "src"]) == 0
    said = capsys.readouterr()
    assert "2 copies" in said.out
    reasons = (
        "1 dependency folder (src/node_modules), 1 environment folder (src/env), 1 generated, 2 stubs, "
        "1 vendored folder (src/third_party)"
    )
    assert f"; left out: {reasons}" in said.err
    assert main(["dups", "src", "--include-vendored"]) == 0
    said = capsys.readouterr()
    assert "8 copies" in said.out
    assert "left out" not in said.err
    (code / "treedot.toml").write_text("[dups]\ninclude-vendored = true\n")
    assert main(["dups", "src"]) == 0
    assert "8 copies" in capsys.readouterr().out


def test_a_folder_of_vendored_code_only_says_how_to_read_it(code, capsys):
    (code / "lib" / "vendored").mkdir(parents=True)
    (code / "lib" / "vendored" / "a.py").write_text(ADD)
    assert main(["dups", "lib"]) == 2
    message = "its files are 1 .py; left out: 1 vendored folder (lib/vendored); --include-vendored reads them"
    assert message in capsys.readouterr().err


def test_settings_are_found_from_the_path(code, capsys, monkeypatch):
    (code / "src" / "treedot.toml").write_text("[dups]\nmin-nodes = 1000\n")
    (code / "elsewhere").mkdir()
    monkeypatch.chdir(code / "elsewhere")
    assert main(["dups", "../src"]) == 0
    assert "no function has 1000 nodes" in capsys.readouterr().err
