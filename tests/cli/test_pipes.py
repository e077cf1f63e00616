"""Commands whose standard streams are closed or full, and hostile names on their way to a terminal."""

import io
import os
import subprocess
import sys

import pytest

from treedot import Forest, TreeClassifier
from treedot.cli import main
from treedot.cli.pipes import standard_streams

TREES = ["(S (NP a) (VP b))", "(S (NP a) (VP c))", "(S (NP d) (VP c))"]
RED = "\x1b[31m"
CLOSED = "treedot: cannot write to standard output: it is closed\n"
PRINTING = [
    ["kernel", "(a b)", "(a c)"],
    ["info", "trees.mrg"],
    ["predict", "model", "trees.mrg"],
    ["explain", "model", "(S (NP a) (VP b))"],
    ["encode", "trees.mrg", "-o", "-"],
    ["gram", "trees.mrg", "-o", "-"],
    ["similar", "(a b)", "(a c)"],
    ["check"],
]


@pytest.fixture(autouse=True)
def _inputs(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trees.mrg").write_text("\n".join(TREES))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "model"
    TreeClassifier(decay=0.4, C=1).fit(TREES, [0, 1, f"{RED}2"]).save(folder)
    return str(folder)


@pytest.mark.parametrize("arguments", PRINTING, ids=lambda arguments: arguments[0])
def test_a_closed_standard_output_is_one_line(arguments, model, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert main([model if x == "model" else x for x in arguments]) == 1
    assert sys.stdout is None
    monkeypatch.undo()
    assert capsys.readouterr() == ("", CLOSED)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("arguments", PRINTING, ids=lambda arguments: arguments[0])
def test_a_full_standard_output_is_one_line_that_names_it(arguments, model, capsys, monkeypatch, buffered):
    raw = io.FileIO("/dev/full", "w")
    with io.TextIOWrapper(io.BufferedWriter(raw) if buffered else raw, "utf-8", write_through=True) as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main([model if x == "model" else x for x in arguments]) == 1
        monkeypatch.undo()
    said = "treedot: cannot write to standard output: No space left on device\n"
    assert capsys.readouterr() == ("", said)


def test_a_command_that_writes_a_file_needs_no_standard_output(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdout", None)
    assert main(["convert", "trees.mrg", "-o", "trees.nwk"]) == 0
    assert main(["index", "trees.mrg", "-o", "trees.index"]) == 0
    monkeypatch.undo()
    assert capsys.readouterr() == ("", "")
    assert {"trees.nwk", "trees.index"} <= set(os.listdir(tmp_path))


def test_standard_output_that_is_closed_after_a_command_is_no_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    with standard_streams():
        kept = sys.stdout  # as libraries keep it that colour their output
    stream.close()
    assert not kept.isatty()


def test_errors_do_not_go_to_standard_output_where_standard_error_is_closed(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert main(["info", "missing.mrg"]) == 1
    monkeypatch.undo()
    assert capsys.readouterr() == ("", "")


def test_a_closed_standard_input_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["info", "-"]) == 1
    assert capsys.readouterr().err == "treedot: cannot read standard input: it is closed\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_files_do_not_take_the_numbers_of_closed_streams(tmp_path):
    command = f"exec {sys.executable} -m treedot convert trees.mrg -o trees.nwk <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command]).returncode == 0
    assert (tmp_path / "trees.nwk").read_text().count("\n") == 3
    command = f"exec {sys.executable} -m treedot kernel '(a b)' '(a c)' >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, CLOSED)


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "trees.mrg", f"--{RED}"],
        ["info", "trees.mrg", RED],
        [RED],
        ["info", f"missing{RED}.mrg"],
        ["encode", "trees.mrg", "-o", f"{RED}.npz\n", "--jobs", "0"],
        ["kernel", "(a b)", f"(a {RED}"],
        ["info", "trees.mrg", "--column", RED],
    ],
)
def test_arguments_do_not_control_the_terminal(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    assert code in (1, 2)
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert err.count("\n") == 1 + ("\nusage: treedot" in err)


def test_names_in_files_do_not_control_the_terminal(model, capsys, tmp_path):
    (tmp_path / f"{RED}.tsv").write_text(f"tree\t{RED}\n(a b)\tx\n(a\ty\n({RED} b)\tz\n")
    file = f"{RED}.tsv"
    assert main(["info", file, "--skip-bad"]) == 0
    assert main(["info", file]) == 1
    assert main(["info", model]) == 0
    assert main(["explain", model, TREES[0]]) == 0
    Forest([0], [0], [0, 1], [RED], {RED: [1], "class": [RED]}).save(tmp_path / "odd.arrow")
    assert main(["info", "odd.arrow"]) == 0
    assert main(["similar", "odd.arrow", "(a b)", "--explain"]) == 0
    assert main(["evaluate", model, "odd.arrow", "--label", "class"]) == 0
    assert main(["evaluate", model, "odd.arrow", "--label", "none"]) == 1
    assert main(["train", "odd.arrow", "--label", RED + "no", "-o", "new"]) == 1
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert r"\x1b[31m" in out
    assert r"\x1b[31m" in err
