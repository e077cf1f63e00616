"""One bar shows the progress of every command, on a terminal only."""

import pytest

from treedot import read_trees
from treedot.batch.streaming import Progress as At
from treedot.cli import main
from treedot.cli.progress import Progress, report_passes


@pytest.fixture
def _terminal(monkeypatch):
    monkeypatch.setattr("treedot.cli.progress._on_terminal", lambda: True)


@pytest.mark.usefixtures("_terminal")
def test_each_round_is_counted_from_its_beginning():
    with Progress("shards") as progress:
        for total in (3, 3, 3, 2):
            progress.add(total)
        assert "1/2" in str(progress._bar)
        assert "shards" in str(progress._bar)


@pytest.mark.usefixtures("_terminal")
def test_the_trees_of_forests_are_counted():
    forest = read_trees(["(A b)", "(A c)"])
    with Progress() as progress:
        assert list(progress.over([forest, forest[:1]])) == [forest, forest[:1]]
        assert "3 trees" in str(progress._bar)


@pytest.mark.usefixtures("_terminal")
def test_passes_of_a_training_have_a_bar_and_a_line_each(capsys):
    with Progress() as progress:
        report = report_passes(progress)
        report(At(-1, 5, 0, 1.0))
        assert str(progress._bar).startswith("reading: ")
        assert " 5 trees " in str(progress._bar)
        report(At(0, 0, 20, 1.0))
        report(At(0, 10, 20, 1.0))
        assert str(progress._bar).startswith("pass 1:  50%")
        report(At(1, 0, 20, 0.25))
        assert "0/20" in str(progress._bar)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("20 trees read, ")
    assert second.startswith("pass 1: duality gap about 0.25, ")


@pytest.mark.usefixtures("_terminal")
def test_files_are_counted_by_their_bytes_with_the_rate_of_trees(tmp_path, monkeypatch):
    shown = []
    describe = Progress.describe
    monkeypatch.setattr(
        Progress, "describe", lambda self, **texts: shown.append(texts) or describe(self, **texts)
    )
    called = []
    call = Progress.__call__
    monkeypatch.setattr(
        Progress, "__call__", lambda self, *counts: called.append(counts) or call(self, *counts)
    )
    for name in "ab":
        (tmp_path / f"{name}.mrg").write_text("(A b)\n" * 5)
    assert main(["convert", f"{tmp_path}/a.mrg", f"{tmp_path}/b.mrg", "-o", f"{tmp_path}/all.mrg"]) == 0
    assert shown[-1]["after"].startswith("10 trees, ")
    assert called[-1] == (60,)


@pytest.mark.usefixtures("_terminal")
def test_dups_counts_the_files_and_knows_their_number(tmp_path, monkeypatch):
    called = []
    call = Progress.__call__
    monkeypatch.setattr(
        Progress,
        "__call__",
        lambda self, *counts: called.append((*counts, str(self._bar))) or call(self, *counts),
    )
    for name in "abc":
        (tmp_path / f"{name}.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "b.py").write_text("# @generated\n")  # left out, but a file like the others
    assert main(["dups", str(tmp_path)]) == 0
    assert [counts[:2] for counts in called] == [(1, 3), (2, 3), (3, 3)]
    assert " files" in called[-1][2]


def test_nothing_is_shown_elsewhere(tmp_path, capsys):
    (tmp_path / "a.mrg").write_text("(A b)\n")
    assert main(["convert", f"{tmp_path}/a.mrg", "-o", f"{tmp_path}/b.mrg"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_terminal")
@pytest.mark.parametrize(
    ("command", "target", "writer"),
    [("convert", "b.mrg", "trees.writers._Lines"), ("encode", "b.npz", "vectors.writers._SparseRows")],
)
def test_the_bar_is_removed_before_an_error_is_reported(tmp_path, monkeypatch, command, target, writer):
    def full(*_):
        raise OSError(28, "No space left on device")

    events = []
    monkeypatch.setattr(f"treedot.{writer}.write", full)
    monkeypatch.setattr("treedot.cli.note", lambda text: events.append(text))
    monkeypatch.setattr(Progress, "__exit__", lambda self, *_: events.append("removed"))
    (tmp_path / "a.mrg").write_text("(A b)\n")
    assert main([command, f"{tmp_path}/a.mrg", "-o", f"{tmp_path}/{target}"]) == 1
    removed, error = events
    assert removed == "removed"
    assert "No space left on device" in error
