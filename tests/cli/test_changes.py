"""Changed lines, against repositories made for the purpose."""

import shutil
import subprocess

import pytest

from treedot import SourceError
from treedot.cli.changes import Changes

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "ä project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    git("init", "-q")
    (folder / "a.py").write_text("".join(f"line {k}\n" for k in range(1, 21)))
    (folder / 'odd "näme".py').write_text("one\n")
    (folder / "same.py").write_text("same\n" * 9)
    commit()
    return folder


def git(*arguments):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments], check=True)


def commit():
    git("add", "-A")
    git("commit", "-q", "-m", "x")


def test_changed_added_and_deleted_lines_touch_what_they_are_in(repository):
    lines = (repository / "a.py").read_text().splitlines(True)
    lines[4] = "changed\n"  # line 5
    del lines[11:13]  # after line 11
    lines.append("added\n")  # line 19
    (repository / "a.py").write_text("".join(lines))
    changes = Changes("HEAD", repository)
    touched = [k for k in range(1, 20) if changes.touch("a.py", k, k)]
    assert touched == [5, 11, 19]
    assert changes.touch("a.py", 1, 7)
    assert not changes.touch("a.py", 6, 10)
    assert not changes.touch("same.py", 1, 9)


def test_new_files_and_odd_names_are_seen_and_moved_ones_are_not_changed(repository):
    (repository / 'odd "näme".py').write_text("two\n")
    (repository / "new.py").write_text("x\n")
    git("mv", "same.py", "moved.py")
    changes = Changes("HEAD", repository)
    assert changes.touch('odd "näme".py', 1, 1)
    assert changes.touch(str(repository / "new.py"), 1, 1)
    assert not changes.touch("moved.py", 1, 9)


def test_a_folder_inside_compares_the_same_files(repository, monkeypatch):
    inner = repository / "inner"
    inner.mkdir()
    (repository / "a.py").write_text("other\n")
    monkeypatch.chdir(inner)
    assert Changes("HEAD", inner).touch("../a.py", 1, 1)


def test_what_git_does_not_know_is_told(repository, tmp_path):
    for reference in ("nowhere", "--output=x"):
        with pytest.raises(SourceError, match="commit"):
            Changes(reference, repository)
    with pytest.raises(SourceError, match="git rev-parse failed"):
        Changes("HEAD", tmp_path)


def test_the_settings_of_users_do_not_matter(repository):
    lines = (repository / "a.py").read_text().splitlines(True)
    lines[4] = lines[6] = "changed\n"
    (repository / "a.py").write_text("".join(lines))
    inner = repository / "a module"
    inner.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True)
    (inner / "x.py").write_text("x\n")
    identity = ["-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run(["git", "add", "x.py"], cwd=inner, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", "x"], cwd=inner, check=True)
    git("-c", "advice.addEmbeddedRepo=false", "add", "a module")
    for name, value in (("diff.submodule", "log"), ("diff.interHunkContext", "9"), ("color.ui", "always")):
        git("config", name, value)
    (repository / "same.py").write_text("other\n")
    changes = Changes("HEAD", repository)
    assert [k for k in range(1, 21) if changes.touch("a.py", k, k)] == [5, 7]
    assert changes.touch("same.py", 1, 1)


def test_a_commit_that_is_not_there_is_named(repository):
    with pytest.raises(SourceError, match="there is no commit none"):
        Changes("none", repository)
