"""Ask git which units of source code are new or changed since a commit."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from treedot.clones.identities import unit_keys
from treedot.errors import SourceError
from treedot.languages import language_of
from treedot.readers.folders import IGNORE_FILES
from treedot.trees import Forest

_PLAIN_FILES = (b"100644", b"100755")  # modes of git; others are links and submodules


class Changes:
    """The files that differ from a commit, including untracked files.

    A unit has changed if its content has: a unit that was only moved or reformatted has not.

    Parameters
    ----------
    reference : str
        A branch, a tag or a commit.
    folder : Path
        Any folder in the repository.
    """

    def __init__(self, reference: str, folder: Path) -> None:
        if reference.startswith("-"):
            raise SourceError(f"{reference!r} is not a commit: give a branch, a tag or a hash")
        self._root = Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel")).rstrip("\n")).resolve()
        _git(self._root, "rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}")
        # Renamed files are recognised by their content; --no-relative overrides the user's git settings.
        diff = ("diff", "--name-only", "--no-renames", "--no-relative", "-z", reference, "--")
        names = _git(self._root, *diff).split(b"\0")[:-1]
        unknown = _git(self._root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]
        self._files = {self._path(name) for name in (*names, *unknown)}
        self._reference = reference

    def changed(
        self, forest: Forest, paths: Sequence[str], read: Callable[[Sequence[Path]], Forest]
    ) -> list[bool]:
        """Return for every unit whether it is new or changed: whether its content occurs more often now.

        Parameters
        ----------
        forest : Forest
            The units of ``paths`` as they are now.
        paths : sequence of str
            Files and folders.
        read : callable
            Reads the units of other paths with the same settings.

        Returns
        -------
        list of bool, one per unit
        """
        files = forest.columns.get("file", ())
        inside = [i for i, file in enumerate(files) if Path(file).resolve() in self._files]
        if not inside:
            return [False] * len(forest)
        content = {i: unit_keys(forest, i)[0] for i in inside}
        with self._old_paths(paths) as there:
            old = read(there) if there else forest[[]]
        more = Counter(content.values()) - Counter(unit_keys(old, i)[0] for i in range(len(old)))
        return [i in content and content[i] in more for i in range(len(forest))]

    @contextmanager
    def _old_paths(self, paths: Sequence[str]) -> Iterator[list[Path]]:
        """Write the old contents of files that differ to a temporary folder; yield the paths inside it.

        The ignore files of the commit are written too, so that its rules apply.
        """
        real = [Path(path).resolve() for path in paths]
        with tempfile.TemporaryDirectory(prefix="treedot-") as name:

            def aside(path: Path) -> Path:
                return Path(name, path.relative_to(path.anchor))

            aside(self._root / ".git").mkdir(parents=True)
            for path, content in self._old_contents(lambda path: path in real):
                aside(path).parent.mkdir(parents=True, exist_ok=True)
                aside(path).write_bytes(content)
            yield [aside(path) for path in real if aside(path).exists()]

    def _old_contents(self, is_named: Callable[[Path], bool]) -> Iterator[tuple[Path, bytes]]:
        """Yield path and content, in the commit, of the source files that differ and of all ignore files."""
        blobs = []
        for entry in _git(self._root, "ls-tree", "-r", "-z", "--full-tree", self._reference).split(b"\0"):
            kind, _, file = entry.partition(b"\t")
            if b".." in file.split(b"/"):  # a forged tree: the path would lead out of the folder
                continue
            path = self._path(file)
            is_source = path in self._files and (language_of(path.name) is not None or is_named(path))
            if kind.startswith(_PLAIN_FILES) and (is_source or path.name in IGNORE_FILES):
                blobs.append((path, kind.split()[2]))
        asked = b"".join(blob + b"\n" for _, blob in blobs)
        answer, place = _git(self._root, "cat-file", "--batch", given=asked), 0
        for path, _ in blobs:
            head, _, _ = answer[place : place + 200].partition(b"\n")
            if head.endswith(b" missing"):
                raise SourceError(
                    f"--changed-since: git cannot find the content of {path} in {self._reference}"
                )
            begin = place + len(head) + 1
            place = begin + int(head.split()[2]) + 1
            yield path, answer[begin : place - 1]

    def _path(self, name: bytes) -> Path:
        return self._root / os.fsdecode(name)


def _git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes:
    """Run git in a folder, with ``given`` as its input; return its output."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False, input=given)
    except OSError as error:
        raise SourceError(f"--changed-since needs git, which cannot be run: {error}") from error
    if done.returncode:
        no_commit = f"there is no commit {arguments[-1].removesuffix('^{commit}')}"
        message = os.fsdecode(done.stderr).strip() or no_commit
        raise SourceError(f"--changed-since: git {arguments[0]} failed: {message}")
    return done.stdout
