"""The command dups: what it writes where, what it exits with, and the hook that calls it."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from treedot import __version__
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
    assert "<b>1</b> group with 2 members</li>" in (project / "out.html").read_text()


def test_the_page_describes_the_run_and_is_the_same_on_the_same_day(project, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1900000000")
    (project / "pyproject.toml").write_text("[tool.treedot.dups]\nexclude = ['old/']\n")
    (project / "made.py").write_text("# @generated\n" + MEAN)
    (project / "empty.py").write_text("")
    command = ["dups", ".", "--min-nodes", "45", "--changed-since", "HEAD"]
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "begin")
    assert main([*command, "-o", "one.html"]) == 0
    page = (project / "one.html").read_text()
    facts = dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", page.partition("</dl>")[0]))
    assert facts == {
        "Folder": project.as_posix(),
        "Searched": ".",
        "Date": "2030-03-17",
        "Made by": f"treedot {__version__}",
        "Settings": "unit function, threshold 0.7, min-nodes 45, exclude old/, tests last, "
        "changed-since HEAD",
        "Compared": "3 functions in 3 files",
        "Left out": "1 generated",
    }
    assert f"<h1>Near-duplicates in {project.name}</h1>" in page
    lines = sum((project / name).read_text().count("\n") for name in ("a.py", "b.py"))
    assert f"<b>18</b> lines in copies, {18 / lines:.1%} of {lines}" in page
    assert "<b>2</b> files of 3 with copies" in page
    (project / "sub").mkdir()
    assert main([*command, "-j", "2", "--no-cache", "-o", "two.html"]) == 0
    assert (project / "two.html").read_text() == page


def test_the_project_is_the_nearest_folder_around_all_paths_that_looks_like_one(project):
    for path in ("shop/src/a", "shop/src/b"):
        (project / path).mkdir(parents=True)
        (project / path / "c.py").write_text(MEAN)
    assert main(["dups", "shop/src/a", "shop/src/b", "-o", "out.json"]) == 0
    assert json.loads((project / "out.json").read_text())["about"]["project"] == "src"
    (project / "shop/package.json").write_text("{}")
    assert main(["dups", "shop", "--write-baseline", "known.json"]) == 0
    (project / "treedot.toml").write_text('[dups]\nbaseline = "known.json"\n')
    assert main(["dups", "shop/src/a/c.py", "shop/src/b/c.py", "-o", "out.json"]) == 0
    about = json.loads((project / "out.json").read_text())["about"]
    assert (about["project"], about["settings"]["baseline"]) == ("shop", "known.json")


def test_of_many_groups_the_first_are_shown_and_all_are_counted(project):
    (project / "c.py").write_text(OTHER.replace("lines_of", "rows_of"))
    assert main(["dups", "--top", "1", "-o", "out.json"]) == 0
    found = json.loads((project / "out.json").read_text())
    assert (len(found["groups"]), found["extent"]["groups"]) == (1, 2)


def test_a_format_that_is_given_counts_more_than_the_name_of_the_output(project):
    (project / "treedot.toml").write_text('[dups]\nformat = "markdown"\n')
    assert main(["dups", "-o", "out.html", "--format", "json"]) == 0
    assert json.loads((project / "out.html").read_text())["groups"][0]["band"] == "renamed"
    assert main(["dups", "-o", "out.html"]) == 0
    assert (project / "out.html").read_text().startswith("<!doctype html>")
    for name in ("out", "out.part"):  # the settings decide where the suffix does not
        assert main(["dups", "-o", name]) == 0
        assert (project / name).read_text().startswith("### ")


@pytest.mark.parametrize("name", ["out.csv", "a.b/out.HTM5", "out.xml"])
def test_a_suffix_that_is_no_format_of_reports_is_refused(project, capsys, name):
    assert main(["dups", "-o", name]) == 2
    error = capsys.readouterr().err
    assert f"{Path(name).suffix} is not the suffix of a report" in error
    assert ".html, .htm, .json, .sarif, .md, .txt" in error
    assert "text, json, sarif, html, markdown, gitlab, github" in error
    assert main(["dups", "-o", "out"]) == 0
    assert main(["dups", "-o", "out.xml", "--format", "text"]) == 0
    assert (project / "out").read_text() == (project / "out.xml").read_text()


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
    assert "  c.py:4-12 mean (new)\n  a.py:2-10 mean\n" in capsys.readouterr().out
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


def test_a_terminal_gets_the_beginning_of_a_long_list_and_a_sentence(project, capsys, monkeypatch):
    (project / "c.py").write_text(OTHER.replace("lines_of", "rows_of"))
    monkeypatch.setattr(importlib.import_module("treedot.cli.dups"), "ON_TERMINAL", 1)
    assert main(["dups"]) == 0
    everything = capsys.readouterr()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["dups"]) == 0
    beginning = capsys.readouterr()
    assert everything.out == beginning.out + "\n" + everything.out.partition("\n\n")[2]
    sentence = "this is the beginning of the list: --top 2 shows all of it, -o report.html shows the copies"
    assert sentence in beginning.err
    assert main(["dups", "--top", "2"]) == 0
    assert capsys.readouterr() == everything


@pytest.mark.parametrize(
    ("variables", "is_coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_the_list_has_colours_on_a_terminal_whose_user_wants_them(
    project, capsys, monkeypatch, variables, is_coloured
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["dups"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["dups"]) == 0
    assert ("\x1b[31mrenamed\x1b[0m" in capsys.readouterr().out) == is_coloured
    assert main(["dups", "-o", "out.txt"]) == 0
    assert "\x1b" not in (project / "out.txt").read_text()


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
