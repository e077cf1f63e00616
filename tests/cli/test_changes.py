"""New and changed functions, against repositories made for the purpose."""

import shutil
import subprocess

import pytest

from treedot import read_code
from treedot.cli.changes import Changes
from treedot.errors import SourceError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

FUNCTION = "def {0}(x):\n    y = {0}_at(x)\n    return y + x\n\n\n"


def functions(*names):
    return "".join(FUNCTION.format(name) for name in names)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "ä project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    git("init", "-q")
    (folder / "a.py").write_text(functions("f", "g", "h"))
    (folder / 'odd "näme".py').write_text(functions("odd"))
    (folder / "same.py").write_text(functions("same", "twice"))
    commit()
    return folder


def git(*arguments):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments], check=True)


def commit():
    git("add", "-A")
    git("commit", "-q", "-m", "x")


def changed(repository, paths=(".",), **how):
    """Return the names of the functions that changed."""

    def read(some):
        return read_code(some, identifiers="blur", literals="blur", blurred=True, **how)

    forest = read(paths)
    found = Changes("HEAD", repository).changed(forest, list(paths), read)
    return [name for name, is_changed in zip(forest.columns["name"], found, strict=True) if is_changed]


def test_functions_whose_content_is_another_have_changed(repository):
    assert changed(repository) == []
    text = (repository / "a.py").read_text()
    (repository / "a.py").write_text(text.replace("g_at", "other") + functions("new"))
    assert changed(repository) == ["g", "new"]
    commit()
    assert changed(repository) == []


def test_moved_and_reformatted_functions_have_not_changed(repository):
    (repository / "a.py").write_text(
        "import x\n\n" + functions("h", "f").replace("\n    return", "\n\n    return")
    )
    (repository / "same.py").write_text(functions("same", "g") + "# a comment\n" + functions("twice"))
    (repository / 'odd "näme".py').rename(repository / "moved.py")
    assert changed(repository) == []
    git("add", "-A")
    assert changed(repository) == []


def test_a_further_copy_has_changed_whether_git_knows_its_file_or_not(repository):
    (repository / "new.py").write_text(functions("f"))
    assert changed(repository) == ["f"]
    git("add", "-A")
    assert changed(repository) == ["f"]


def test_a_file_with_an_odd_name_is_compared(repository):
    (repository / 'odd "näme".py').write_text(functions("odd", "more"))
    assert changed(repository) == ["more"]


def test_a_function_that_comes_from_outside_of_the_paths_is_new(repository):
    for name in ("src", "tests"):
        (repository / name).mkdir()
    (repository / "tests" / "t.py").write_text(functions("helper"))
    commit()
    (repository / "tests" / "t.py").rename(repository / "src" / "t.py")
    assert changed(repository, ["src"]) == ["helper"]
    assert changed(repository) == []
    assert changed(repository, ["src", "tests"]) == []
    assert changed(repository, [str(repository / "src" / "t.py")]) == ["helper"]
    assert changed(repository, [str(repository)]) == []


def test_a_function_that_was_ignored_is_new(repository):
    (repository / ".treedotignore").write_text("old/\n")
    (repository / "old").mkdir()
    (repository / "old" / "x.py").write_text(functions("helper", "excluded"))
    commit()
    (repository / "old" / "x.py").rename(repository / "x.py")
    assert changed(repository) == ["helper", "excluded"]
    commit()
    (repository / "x.py").rename(repository / "y.py")
    assert changed(repository) == []
    assert changed(repository, exclude=["/x.py"]) == ["helper", "excluded"]


def test_a_folder_inside_compares_the_same_files(repository, monkeypatch):
    inner = repository / "inner"
    inner.mkdir()
    (repository / "a.py").write_text(functions("f", "other"))
    monkeypatch.chdir(inner)
    assert changed(inner, ["../a.py"]) == ["other"]
    assert changed(inner, [".."]) == ["other"]


def test_links_and_files_that_became_links_are_left_out(repository):
    (repository / "link.py").symlink_to("a.py")
    (repository / "same.py").unlink()
    (repository / "same.py").symlink_to("a.py")
    (repository / "a.py").write_text(functions("f", "g", "h", "new"))
    assert changed(repository) == ["new"]
    commit()
    (repository / "a.py").write_text(functions("f", "g", "h"))
    assert changed(repository) == []


def test_what_git_does_not_know_is_told(repository, tmp_path):
    for reference in ("nowhere", "--output=x"):
        with pytest.raises(SourceError, match="commit"):
            Changes(reference, repository)
    with pytest.raises(SourceError, match="git rev-parse failed"):
        Changes("HEAD", tmp_path)


def test_the_settings_of_users_do_not_matter(repository):
    inner = repository / "a module"
    inner.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True)
    (inner / "x.txt").write_text("x\n")
    identity = ["-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run(["git", "add", "x.txt"], cwd=inner, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", "x"], cwd=inner, check=True)
    git("-c", "advice.addEmbeddedRepo=false", "add", "a module")
    settings = ("diff.submodule", "log"), ("diff.relative", "true"), ("color.ui", "always")
    for name, value in (*settings, ("diff.noprefix", "true"), ("diff.renames", "copies")):
        git("config", name, value)
    (repository / "a.py").write_text(functions("f", "new", "h"))
    assert changed(repository) == ["new"]


def test_a_commit_that_is_not_there_is_named(repository):
    with pytest.raises(SourceError, match="there is no commit none"):
        Changes("none", repository)


def test_a_commit_without_files_has_none_of_them(repository):
    git("checkout", "-q", "--orphan", "empty")
    git("rm", "-rfq", "--cached", ".")
    git("commit", "-q", "--allow-empty", "-m", "x")
    assert changed(repository) == ["f", "g", "h", "odd", "same", "twice"]


def tree_of(*entries):
    """Return the hash of a tree of git with entries (mode and type, hash, name)."""
    listed = "".join(f"{kind} {name}\t{called}\n" for kind, name, called in entries)
    made = subprocess.run(["git", "mktree", "--missing"], input=listed, capture_output=True, text=True)
    return made.stdout.strip()


def commit_of(tree):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", tree, "-m", "x"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_commit_whose_paths_lead_elsewhere_writes_nothing_there(repository, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    blob = subprocess.run(["git", "rev-parse", "HEAD:a.py"], capture_output=True, text=True).stdout.strip()
    above = tree_of(("100644 blob", blob, ".gitignore"))
    for _ in repository.resolve().parts:  # one more than lead out of the folder that is written to
        above = tree_of(("040000 tree", above, ".."))
    commit = commit_of(above)
    forest = read_code("a.py", identifiers="blur", literals="blur", blurred=True)
    assert all(Changes(commit, repository).changed(forest, ["a.py"], lambda paths: forest[[]]))
    assert list(tmp_path.rglob(".gitignore")) == []


def test_content_that_git_does_not_have_is_named(repository):
    commit = commit_of(tree_of(("100644 blob", "1" * 40, ".gitignore")))
    forest = read_code("a.py", identifiers="blur", literals="blur", blurred=True)
    with pytest.raises(SourceError, match=r"git cannot find the content of .*\.gitignore in"):
        Changes(commit, repository).changed(forest, ["a.py"], lambda paths: forest[[]])
