import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from strategies import examples
from treedot.errors import SourceError
from treedot.readers.folders import (
    MAX_IGNORE_BYTES,
    FoundFile,
    Skipped,
    looks_binary,
    read_file,
    walk,
)
from treedot.readers.ignore_rules import IgnoreRules


def make_files(folder: Path, *names: str, content: str = "x\n") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def found(paths, on_skip=None) -> list[str]:
    return [file.path for file in walk(paths, lambda name: name.endswith(".py"), on_skip)]


def test_files_come_sorted_folder_by_folder_with_slashes(tmp_path, monkeypatch):
    make_files(
        tmp_path, "b.py", "a/z.py", "a/b/c.py", "a-b/x.py", "a.py", "note.txt", ".hidden/x.py", ".x.py"
    )
    monkeypatch.chdir(tmp_path)
    assert found(["."]) == ["a/b/c.py", "a/z.py", "a-b/x.py", "a.py", "b.py"]
    assert found([tmp_path]) == [f"{tmp_path}/{name}" for name in found(["."])]


def test_each_file_comes_once_whatever_the_order_of_the_paths(tmp_path):
    make_files(tmp_path, "a/x.py", "a/y.py", "b.py")
    paths = [tmp_path / "b.py", tmp_path, tmp_path / "a", tmp_path / "a/x.py"]
    assert found(paths) == found(paths[::-1])
    assert len(found(paths)) == 3


def test_a_file_that_is_named_is_always_read(tmp_path):
    make_files(tmp_path, "a.py", "b.txt", ".git/HEAD")
    (tmp_path / ".gitignore").write_text("*\n")
    assert found([tmp_path]) == []
    named = list(walk([tmp_path / "a.py", tmp_path / "b.txt"], lambda name: False))
    assert named == [FoundFile(f"{tmp_path}/{name}", named=True) for name in ("a.py", "b.txt")]
    with pytest.raises(SourceError, match="no such file or folder"):
        found([tmp_path / "missing"])


def test_ignore_files_hold_below_their_folder_and_the_lower_one_wins(tmp_path):
    make_files(
        tmp_path, "a.py", "sub/a.py", "sub/b.py", "sub/deep/b.py", "out/x.py", "vendor/v.py", ".git/HEAD"
    )
    (tmp_path / ".gitignore").write_text("a.py\n/out/\n")
    (tmp_path / "sub/.gitignore").write_text("!a.py\n/b.py\n")
    (tmp_path / ".treedotignore").write_text("vendor\n")
    skipped = Skipped()
    assert found([tmp_path], skipped) == [f"{tmp_path}/sub/a.py", f"{tmp_path}/sub/deep/b.py"]
    assert skipped.counts == {"ignored": 2, "ignored folder": 2}
    assert str(skipped) == "2 ignored, 2 ignored folders"
    assert found([tmp_path / "sub"]) == found([tmp_path])  # the rules above hold inside a repository


def test_rules_above_the_repository_do_not_hold(tmp_path):
    make_files(tmp_path, "repository/a.py", "repository/.git/HEAD")
    (tmp_path / ".gitignore").write_text("*.py\n")
    assert len(found([tmp_path / "repository"])) == 1


def test_links_are_not_followed_and_unreadable_names_are_left_out(tmp_path):
    make_files(tmp_path, "a/x.py")
    (tmp_path / "a/loop").symlink_to(tmp_path)
    (tmp_path / "a/link.py").symlink_to(tmp_path / "a/x.py")
    (tmp_path / os.fsdecode(b"bad\xff.py")).write_text("x\n")
    reasons: list[tuple[str, str]] = []
    skipped = Skipped(lambda path, reason: reasons.append((Path(path).name, reason)))
    assert found([tmp_path], skipped) == [f"{tmp_path}/a/x.py"]
    assert skipped.counts == {"not a plain file": 1, "name is not UTF-8": 1}
    assert ("link.py", "not a plain file") in reasons
    with pytest.raises(SourceError, match="the name is not UTF-8"):
        found([tmp_path / os.fsdecode(b"bad\xff.py")])


def test_a_file_is_read_up_to_a_size(tmp_path):
    (tmp_path / "a.py").write_bytes(b"12345")
    file = FoundFile(str(tmp_path / "a.py"), named=True)
    assert read_file(file, 5) == b"12345"
    with pytest.raises(
        SourceError, match=r"a\.py: larger than 4 bytes.* in Python with read_code\(max_bytes=…\)"
    ):
        read_file(file, 4)
    with pytest.raises(SourceError, match="cannot open"):
        read_file(FoundFile(str(tmp_path / "b.py"), named=True), 4)


def test_binary_files_are_recognised_by_their_content():
    assert looks_binary(b"\x7fELF\0\1")
    assert not looks_binary(b"def f(x):\n    return x\n")


PIECES = st.sampled_from(
    [
        *"ab/",
        "*",
        "**",
        "?",
        "[",
        "]",
        "!",
        "-",
        "\\",
        " ",
        "#",
        ".",
        "[!a]",
        "[a-b]",
        "[[:alpha:]]",
        "**/",
        "/**",
    ]
)
LINES = st.lists(PIECES, max_size=6).map("".join)
TREE = (
    "a",
    "b",
    "ab",
    "a/a",
    "a/b",
    "b/a",
    "a/b/a",
    "b/ab/b",
    "ab/a.b",
    "-",
    "a b",
    "#a",
    "!a",
    "[",
    "a\\b",
    "a ",
)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")
@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(LINES, max_size=4), st.lists(LINES, max_size=2))
@example(["a/**", "!a/b", "\\!a", "a\\ ", "[]-a]", "[a-", "[[:nope:]]", "/*/a"], ["/a", "**/b"])
@example(["foo\\", "\\#a  ", "***/a", "a**", "a**/a", "**a/b", "[^a]b", "[b-a]", "b/", "!b/ab/"], ["", "!"])
@example(["**\\/a"], ["**\\/b", "a/**\\/b"])
@example(["/**\\/**a", "a/***\\/a"], [])
def test_patterns_mean_what_they_mean_to_git(tmp_path_factory, top, inside):
    folder = tmp_path_factory.mktemp("repository")
    folders = {str(parent) for name in TREE for parent in Path(name).parents} - {"."}
    for name in folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    files = [name for name in TREE if name not in folders]
    for name in files:
        (folder / name).write_text("")
    (folder / ".gitignore").write_bytes("\n".join(top).encode())
    (folder / "b/.gitignore").write_bytes("\n".join(inside).encode())
    subprocess.run(["git", "init", "-q", folder], check=True)
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=folder,
        capture_output=True,
        check=True,
    ).stdout.decode()
    expected = {name for name in listed.split("\0") if name and not name.endswith(".gitignore")}
    walked = {os.path.relpath(file.path, folder) for file in walk([folder], lambda name: True)}
    assert walked == expected


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter():
    rules = IgnoreRules.parse(b"\xef\xbb\xbfa\r\nb \r\n")
    assert rules.verdict(b"a", is_folder=False)
    assert rules.verdict(b"b", is_folder=False)
    assert rules.verdict(b"c", is_folder=False) is None


@pytest.mark.parametrize(
    ("pattern", "path", "end"),
    [
        (b"*a" * 60 + b"b", b"a" * 255, b"b"),
        (b"*?" * 60 + b"b", b"a" * 255, b"b"),
        (b"**/a/" * 60 + b"b", b"a/" * 500 + b"a", b"/b"),
        (b"a/**/" * 30 + b"*a" * 30 + b"b", b"a/" * 500 + b"a" * 255, b"b"),
    ],
)
def test_patterns_of_many_stars_are_decided_without_trying_all_ways(pattern, path, end):
    rules = IgnoreRules.parse(pattern)
    assert rules.verdict(path, is_folder=False) is None
    assert rules.verdict(path + end, is_folder=False) is True


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_an_ignore_file_that_is_no_plain_file_is_none(tmp_path):
    make_files(tmp_path, "a.py")
    os.mkfifo(tmp_path / ".gitignore")
    assert found([tmp_path]) == [f"{tmp_path}/a.py"]


def test_an_ignore_file_that_is_too_large_is_left_out_and_counted(tmp_path):
    make_files(tmp_path, "a.py")
    (tmp_path / ".gitignore").write_bytes(b"a.py\n" * (MAX_IGNORE_BYTES // 5 + 1))
    skipped = Skipped()
    assert found([tmp_path], skipped) == [f"{tmp_path}/a.py"]
    assert skipped.counts == {"too large": 1}
