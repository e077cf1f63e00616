"""treedot dups: what is listed, what is left out, what is new, and how it ends."""

import json
import shutil
import subprocess

import pytest

from treedot.cli import main

LARGE = '''
def total(orders, rates, today):
    """Return what all open orders are worth."""
    found = {}
    for order in orders:
        if order.open and order.due <= today:
            rate = rates.get(order.currency, 1.0)
            found[order.name] = found.get(order.name, 0) + order.amount * rate
        elif order.cancelled:
            found.pop(order.name, None)
    return sorted(found.items(), key=lambda item: -item[1])
'''
RENAMED = (
    LARGE.replace("order", "ticket")
    .replace("found", "prices")
    .replace("rate", "factor")
    .replace("1.0", "2.5")
)
EDITED = LARGE.replace(
    "            found.pop(order.name, None)", "            log(order)\n            continue"
)
OTHER = """
class Reader:
    def lines(self, path, encoding):
        with open(path, encoding=encoding) as file:
            while True:
                line = file.readline()
                if not line:
                    break
                try:
                    yield self.parse(line.strip(), strict=False)
                except ValueError as error:
                    self.errors.append((path, error))
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a folder of source files, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    for name, text in (("a", LARGE), ("b", RENAMED), ("c", OTHER)):
        (tmp_path / "src" / f"{name}.py").write_text(text)
    return tmp_path


def dups(capsys, *options):
    """Return the exit code, and the places of the members of each group."""
    code = main(["dups", "src", "--format", "json", "-j", "1", *options])
    out = capsys.readouterr().out
    found = json.loads(out)["groups"] if out else []
    return code, [[f"{m['file']}:{m['start']}" for m in group["members"]] for group in found]


def test_a_renamed_copy_is_listed_with_its_place(code, capsys):
    assert main(["dups", "src"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("1. renamed, similarity 1.00, 2 copies")
    assert [line.split()[0] for line in told.out.splitlines()[1:] if line] == [
        "src/a.py:2-11",
        "src/b.py:2-11",
    ]
    assert told.err == (
        "treedot: 1 group of 2 functions, among 3 functions of at least 40 nodes in 3 files\n"
    )


def test_edited_copies_are_listed_and_others_are_not(code, capsys):
    (code / "src" / "b.py").write_text(EDITED)
    assert dups(capsys) == (0, [["src/a.py:2", "src/b.py:2"]])
    assert dups(capsys, "--threshold", "0.95") == (0, [])
    assert dups(capsys, "--min-nodes", "200") == (0, [])


def test_nothing_that_is_left_out_is_listed(code, capsys):
    (code / "src" / "b.py").write_text("# treedot: ignore\n" + RENAMED.lstrip())
    assert dups(capsys) == (0, [])
    (code / "src" / "b.py").write_text(RENAMED)
    assert dups(capsys, "--exclude", "b*") == (0, [])
    (code / "treedot.toml").write_text('[dups]\nexclude = ["a.py"]\n')
    assert dups(capsys) == (0, [])
    assert dups(capsys, "--exclude", "none") == (0, [["src/a.py:2", "src/b.py:2"]])
    (code / "treedot.toml").write_text("[dups]\nthreshold = 2\n")
    assert main(["dups", "src"]) == 2
    assert "threshold must be" in capsys.readouterr().err


def test_what_a_baseline_knows_is_not_listed_and_further_copies_are(code, capsys):
    assert dups(capsys, "--fail-on-new", "--write-baseline", "known.json")[0] == 1
    assert dups(capsys, "--fail-on-new", "--baseline", "known.json") == (0, [])
    (code / "src" / "a.py").rename(code / "src" / "moved.py")
    (code / "src" / "moved.py").write_text(
        "import this\n\n\n" + LARGE.replace("    found = {}", "    found = {}  # !")
    )
    assert dups(capsys, "--fail-on-new", "--baseline", "known.json") == (0, [])
    (code / "src" / "third.py").write_text(LARGE)
    code_, groups = dups(capsys, "--fail-on-new", "--baseline", "known.json")
    assert (code_, len(groups[0])) == (1, 3)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_groups_without_changed_lines_are_not_listed(code, capsys):
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *command], check=True)
    assert dups(capsys, "--changed-since", "HEAD") == (0, [])
    (code / "src" / "b.py").write_text(RENAMED.replace("2.5", "3.5"))
    assert dups(capsys, "--changed-since", "HEAD", "--fail-on-new") == (1, [["src/b.py:2", "src/a.py:2"]])


def test_the_report_is_written_whole(code, capsys):
    assert main(["dups", "src", "--format", "html", "-o", "report.html"]) == 0
    assert capsys.readouterr().out == ""
    assert (code / "report.html").read_text().rstrip().endswith("</html>")
    assert sorted(path.name for path in code.iterdir()) == ["report.html", "src"]


def test_the_same_whatever_the_processes_and_the_order_of_the_files(code, capsys):
    (code / "src" / "d.py").write_text(EDITED)
    expected = None
    for options in (["src", "-j", "1"], ["src", "-j", "2"], ["src/d.py", "src/c.py", "src/b.py", "src/a.py"]):
        assert main(["dups", *options]) == 0
        told = capsys.readouterr()
        expected = expected or told
        assert told == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "cannot open nowhere"),
        (["src", "--baseline", "nowhere.json"], "--write-baseline"),
        (["src", "--min-nodes", "0"], "--min-nodes must be at least"),
        (["src", "--top", "-1"], "--top must be at least 1"),
        (["src", "--changed-since", "HEAD"], "git"),
        (["src", "-o", "no/where.txt"], "where.txt"),
    ],
)
def test_bad_input_is_one_line_and_the_exit_code_of_a_mistake(code, capsys, options, message):
    assert main(["dups", *options]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.startswith("treedot: ")
    assert told.err.count("\n") == 1
    assert told.out == ""
