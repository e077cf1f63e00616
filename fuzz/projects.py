"""Files of a project other than its code: ignore files, settings, baselines."""

from __future__ import annotations

import contextlib
import io
from functools import cache, partial
from pathlib import Path

from fuzz.seeds import MARK, read_seeds
from fuzz.target import FileTarget, require
from fuzz.tokens import CODE, mutate_text
from treedot import Forest, Tree
from treedot.cli import dups, parser
from treedot.clones.baseline import read_baseline
from treedot.clones.duplicates import near_duplicates
from treedot.clones.identities import units_of
from treedot.clones.near_duplicates import NearDuplicates
from treedot.clones.new_duplicates import new_duplicates
from treedot.readers.folders import walk

SOURCE = "def f(x):\n    return [y + 1 for y in x if y]\n"
FILES = [
    "kept.py", "build/a.py", "a/x1y2z.js", "a/b/c.txt", "a/b/a/b/kept.py", "doc/x.txt", "src/kept.py",
    "foo bar", "[", "]", "-", "#odd", "trailing ", "a\\b", "\u00e4.c", "a" * 250, "ab" * 100 + ".h",
    ".hidden/x.py", *(f"{'a/' * depth}b{depth}" for depth in (5, 12)),
]  # fmt: skip


def _ignore_files() -> list[bytes]:
    """Return the contents of ignore files for three folders."""
    texts = read_seeds("ignore")
    return [MARK.join([*texts[k:], *texts[:k]]) for k in range(len(texts))]


def _make_project(folder: Path) -> Path:
    top = folder / "project"
    if not top.exists():
        for name in FILES:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(SOURCE)
        (top / "a/loop").symlink_to(top)
    return top


def check_walk(path: Path) -> None:
    """Walk a folder; every file must be found, or skipped for a reason."""
    top = _make_project(path.parent)
    names = (".gitignore", "a/.gitignore", ".treedotignore")
    texts = [*path.read_bytes().split(MARK), b"", b""]
    for name, text in zip(names, texts, strict=False):
        (top / name).write_bytes(text)
    left_out: set[str] = set()
    found = [file.path for file in walk([top], lambda name: True, lambda path, _: left_out.add(path))]
    require(found == sorted(found, key=lambda name: name.split("/")), "files are out of order")
    for name in FILES:
        whole = f"{top}/{name}"
        reported = any(part == whole or whole.startswith(f"{part}/") for part in left_out)
        times = (whole in found) + reported
        require(times == (not name.startswith(".")), f"{name!r} is neither found nor skipped, or both")


def check_settings(path: Path) -> None:
    """Find duplicates with the settings of a file."""
    top = path.parent / "with_settings"
    top.mkdir(exist_ok=True)
    (top / "treedot.toml").write_bytes(path.read_bytes())
    (top / "a.py").write_text(SOURCE * 2)
    unread = io.StringIO()
    with contextlib.chdir(top), contextlib.redirect_stdout(unread), contextlib.redirect_stderr(unread):
        dups.run(parser().parse_args(["dups", "a.py", "--jobs", "1"]))


@cache
def _duplicates() -> tuple[Forest, NearDuplicates]:
    tree = Tree.parse("(A (B (C d) (E f)) (G h))")
    columns = {"file": ["a.py", "b.py", "c"], "name": ["f", "C.g", ""]}
    forest = Forest.from_trees([tree] * 3, columns)
    return forest, near_duplicates(forest, min_nodes=2)


def check_baseline(path: Path) -> None:
    """Read a baseline, and look up near-duplicates in it."""
    forest, found = _duplicates()
    units = units_of(forest, forest.columns["name"])
    new = new_duplicates(found, known=read_baseline(path), units=units)
    require(len(new) <= 1, "there are more groups than without a baseline")


_damage = partial(mutate_text, syntaxes=(CODE,))

PROJECTS = {
    "folders": FileTarget("", cache(_ignore_files), check_walk, damage=_damage),
    "settings": FileTarget(".toml", cache(partial(read_seeds, "settings")), check_settings, damage=_damage),
    "baseline": FileTarget(".json", cache(partial(read_seeds, "baseline")), check_baseline, damage=_damage),
}
