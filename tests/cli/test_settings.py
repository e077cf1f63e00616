"""Settings from files: which file, what is refused, and that the command line comes first."""

from argparse import Namespace

import pytest

from treedot.cli.settings import apply_settings, folder_of
from treedot.errors import SourceError

NAMES = {"min_nodes": int, "threshold": float, "exclude": list, "format": str}


def applied(folder, **given):
    options = Namespace(command="dups", **{name: given.get(name) for name in NAMES})
    apply_settings(options, NAMES, folder)
    return {name: getattr(options, name) for name in NAMES if getattr(options, name) is not None}


def test_the_nearest_file_that_has_the_table_counts(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert applied(inner) == {}
    (tmp_path / "pyproject.toml").write_text("[tool.treedot.dups]\nmin-nodes = 50\nthreshold = 1\n")
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert applied(inner) == {"min_nodes": 50, "threshold": 1}
    (tmp_path / "a" / "treedot.toml").write_text('[dups]\nexclude = ["*.py"]\n')
    assert applied(inner) == {"exclude": ["*.py"]}


def test_what_is_given_on_the_command_line_counts_more(tmp_path):
    (tmp_path / "treedot.toml").write_text("[dups]\nmin-nodes = 50\nthreshold = 0.9\n")
    assert applied(tmp_path, min_nodes=60) == {"min_nodes": 60, "threshold": 0.9}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[dups]\nmin-node = 1",
            "unknown setting 'min-node': use one of exclude, format, min-nodes",
        ),
        ("[dups]\nmin-nodes = 1.5", "min-nodes must be an integer, not 1.5"),
        ("[dups]\nmin-nodes = true", "min-nodes must be an integer, not True"),
        ("[dups]\nthreshold = 'a'", "threshold must be a number"),
        ("[dups]\nexclude = 'a'", "exclude must be a list of strings"),
        ("[dups]\nformat = 1", "format must be a string"),
        ("dups = 1", "dups must be a table"),
        ("[dups", "cannot read"),
        ("\udcff", "cannot read"),
        (f"x = {'[' * 5000}{']' * 5000}", "nested too deeply"),
        (f"[dups]\nformat = 0x{'f' * 4000}", "format must be a string"),
        (f"[dups]\nmin-nodes = 0x{'f' * 4000}", "min-nodes must be an integer"),
        (f"[dups]\nthreshold = 0x{'f' * 16}", "threshold must be a number"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_file(tmp_path, text, message):
    (tmp_path / "treedot.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SourceError, match=message) as caught:
        applied(tmp_path)
    assert "treedot.toml" in str(caught.value)


def test_the_search_begins_in_the_folder_around_all_paths(tmp_path, monkeypatch):
    project, other = tmp_path / "project", tmp_path / "other"
    for folder in (project / "src" / "a", project / "src" / "b", other):
        folder.mkdir(parents=True)
    (project / "src" / "a" / "x.py").write_text("")
    (project / "treedot.toml").write_text("[dups]\nmin-nodes = 50\n")
    (other / "treedot.toml").write_text("[dups]\nmin-nodes = 60\n")
    monkeypatch.chdir(other)
    for paths in (["src"], ["src/a/x.py"], ["src/a", "src/b"]):
        found = folder_of([str(project / path) for path in paths])
        assert applied(found) == {"min_nodes": 50}
    assert folder_of(["."]) == other
    assert applied(folder_of([str(project), str(other)])) == {"min_nodes": 60}  # the current folder's


def test_a_switch_is_true_or_false(tmp_path, monkeypatch):
    monkeypatch.setitem(NAMES, "include_vendored", bool)
    (tmp_path / "treedot.toml").write_text("[dups]\ninclude-vendored = true\n")
    assert applied(tmp_path) == {"include_vendored": True}
    (tmp_path / "treedot.toml").write_text("[dups]\ninclude-vendored = 1\n")
    with pytest.raises(SourceError, match="include-vendored must be true or false, not 1"):
        applied(tmp_path)
