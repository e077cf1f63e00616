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
        (["src/a.py", "-o", "src/a.py"], "src/a.py is the file that the trees are read from"),
        (["src", "-o", "src/a.py"], "src/a.py is the file that the trees are read from"),
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


def test_a_folder_without_code_has_no_duplicates(tmp_path, capsys):
    assert main(["dups", str(tmp_path), "--fail-on-new", "--exclude", "\udcff*"]) == 0
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
