"""The command dups: what it writes where, what it exits with, and the hook that calls it."""

import importlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from treedot.cli import main
from treedot.languages import LANGUAGES

ROOT = Path(__file__).parents[2]
MEAN = """
def mean(values):
    total, count = 0, 0
    for value in values:
        if value is not None and value >= 0:
            total += value
            count += 1
        elif value is None:
            raise ValueError("a value is missing")
    return total / max(count, 1)
"""
RENAMED = MEAN.replace("mean", "average").replace("value", "price").replace("total", "paid")
OTHER = """
def lines_of(path, *, width=80):
    with open(path, encoding="utf-8") as file:
        return [line[:width].rstrip() for line in file if line.strip() and not line.startswith("#")]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a folder with a renamed copy, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(MEAN)
    (tmp_path / "b.py").write_text(RENAMED + OTHER)
    return tmp_path


def git(*arguments):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)


def test_a_renamed_copy_is_found_in_the_current_folder(project, capsys):
    assert main(["dups"]) == 0
    said = capsys.readouterr()
    first, *members = said.out.splitlines()
    assert first.startswith("1. renamed, similarity 1.00, 2 copies, ")
    assert members == ["  a.py:2-10 mean", "  b.py:2-10 average"]
    assert said.err == "treedot: 1 group of 2 functions, among 3 functions of at least 40 nodes in 2 files\n"


@pytest.mark.parametrize(
    ("output", "begins"),
    [
        ("out.html", "<!doctype html>"),
        ("out.json", "{"),
        ("out.sarif", '{\n "$schema"'),
        ("out.md", "### "),
        ("out.txt", "1. "),
    ],
)
def test_the_format_follows_the_name_of_the_output(project, output, begins):
    assert main(["dups", "-o", output]) == 0
    assert (project / output).read_text().startswith(begins)


def test_counts_are_told_in_words_that_fit(project, capsys):
    assert main(["dups", "--unit", "class", "-o", "out.html"]) == 0
    assert capsys.readouterr().err == ("treedot: nothing to compare: no class has 40 nodes or more\n")
    assert main(["dups", "-o", "out.html"]) == 0
    assert "<p>1 group with 2 members.</p>" in (project / "out.html").read_text()


def test_a_format_that_is_given_counts_more_than_the_name_of_the_output(project):
    (project / "treedot.toml").write_text('[dups]\nformat = "markdown"\n')
    assert main(["dups", "-o", "out.html", "--format", "json"]) == 0
    assert json.loads((project / "out.html").read_text())["groups"][0]["band"] == "renamed"
    assert main(["dups", "-o", "out.html"]) == 0
    assert (project / "out.html").read_text().startswith("<!doctype html>")
    assert main(["dups", "-o", "out.txt"]) == 0
    assert (project / "out.txt").read_text().startswith("### ")


def test_known_groups_do_not_fail_and_a_third_copy_does(project, capsys):
    assert main(["dups", "--fail-on-new"]) == 1
    assert main(["dups", "--write-baseline", "known.json"]) == 0
    new = ["dups", "--baseline", "known.json", "--fail-on-new"]
    capsys.readouterr()
    assert main(new) == 0
    said = capsys.readouterr()
    assert said.out == "no near-duplicates\n"
    assert said.err.startswith("treedot: 0 new groups of 0 functions, ")
    (project / "c.py").write_text("\n\n" + MEAN)
    assert main(new) == 1
    assert "  c.py:4-12 mean\n" in capsys.readouterr().out
    assert main(["dups", "--baseline", "nowhere.json"]) == 2


def test_the_hook_fails_where_a_commit_adds_a_copy(project, capsys):
    hook = the_hook()
    assert hook["pass_filenames"] is False  # for all files are compared, not those of the commit alone
    program, *arguments = shlex.split(hook["entry"])
    assert program == "treedot"
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "begin")
    assert main(arguments) == 0
    assert capsys.readouterr().out == "no near-duplicates\n"
    (project / "c.py").write_text(MEAN.replace("mean", "middle"))
    git("add", ".")
    assert main(arguments) == 1
    assert "c.py:2-10 middle" in capsys.readouterr().out


def test_the_hook_runs_for_every_language():
    names = {"csharp": "c#", "cpp": "c++", "typescript": "ts"}
    assert {*the_hook()["types_or"]} == {"jsx", *(names.get(language, language) for language in LANGUAGES)}


def the_hook():
    yaml = pytest.importorskip("yaml")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    return hook


def test_limits_are_told(project, capsys, monkeypatch):
    monkeypatch.setattr(importlib.import_module("treedot.clones.similarity"), "MAX_SIMILAR", 1)
    for k in range(3):
        (project / f"c{k}.py").write_text(
            MEAN.replace("count += 1", "count += 1" + "\n            n()" * (k + 1))
        )
    assert main(["dups"]) == 0
    assert "treedot: found too many near-duplicates of 2 functions" in capsys.readouterr().err


@pytest.mark.parametrize("streams", [["stdout"], ["stderr"], ["stdout", "stderr"]])
@pytest.mark.parametrize(
    ("arguments", "code"), [(["--fail-on-new"], 1), ([], 0), (["--fail-on-new", "missing"], 2)]
)
def test_the_exit_code_is_the_same_where_no_one_reads_the_output(
    project, monkeypatch, streams, arguments, code
):
    (project / "bad.py").write_text("def half(:\n")
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as pipe:
        for stream in streams:
            monkeypatch.setattr(sys, stream, pipe)
        assert main(["dups", *arguments]) == code
