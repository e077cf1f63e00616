"""Find the files of folders, apply ignore files, and count the files that are skipped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from treedot._storage.files import reason
from treedot.errors import SourceError
from treedot.readers.ignore_rules import IgnoreRules

IGNORE_FILES = (".gitignore", ".treedotignore")
MAX_IGNORE_BYTES = 1 << 17  # larger ignore files are skipped: every pattern is compared with every name
HEAD_BYTES = 8192

# Why something is skipped that nobody wrote for the project, and that readers of code take only if asked to.
VENDORED, DEPENDENCIES = "vendored folder", "dependency folder"
ENVIRONMENT, BUILD = "environment folder", "build folder"
MINIFIED, COMPILED, GENERATED = "minified", "compiled", "generated"
STUB = "stub"
FOLDERS_NOT_WRITTEN = frozenset({VENDORED, DEPENDENCIES, ENVIRONMENT, BUILD})
NOT_WRITTEN = FOLDERS_NOT_WRITTEN | {MINIFIED, COMPILED, GENERATED, STUB}
IGNORED_UNIT = "ignored unit"  # by a comment
_NOUNS = ("folder", "unit", "stub")  # ends of reasons that have a plural

OnSkip = Callable[[str, str], object]  # called with a path and the reason why it is skipped
# Called with the path of a folder and the names in it; returns why it is skipped, or None.
LeaveOut = Callable[[str, Collection[str]], str | None]


class Skipped:
    """Count the files that are skipped, by reason; pass it as ``on_skip``.

    Parameters
    ----------
    also : callable, default=None
        Called with the path and the reason for every file after it is counted.

    Attributes
    ----------
    counts : Counter
        The number of files by reason.

    Examples
    --------
    >>> skipped = Skipped()
    >>> skipped("a.min.js", "minified")
    >>> skipped("lib", "dependency folder")
    >>> skipped.counts, str(skipped)
    (Counter({'minified': 1, 'dependency folder': 1}), '1 dependency folder (lib), 1 minified')
    """

    def __init__(self, also: OnSkip | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}  # the first folder by reason
        self._also = also

    def __call__(self, path: str, reason: str) -> None:
        """Count one file.

        Parameters
        ----------
        path : str
            The file.
        reason : str
            Why it was skipped.
        """
        self.counts[reason] += 1
        if reason in FOLDERS_NOT_WRITTEN:
            self._first.setdefault(reason, path)
        if self._also is not None:
            self._also(path, reason)

    def __str__(self) -> str:
        return ", ".join(
            f"{count:,} {reason}{'s' * (count > 1 and reason.endswith(_NOUNS))}{self._example(reason)}"
            for reason, count in sorted(self.counts.items())
        )

    def _example(self, reason: str) -> str:
        """Return the first folder that was skipped for a reason, since a user may miss its code."""
        if reason not in self._first:
            return ""
        return f" ({self._first[reason]}{', …' if self.counts[reason] > 1 else ''})"


class TooLargeError(SourceError):
    """A file exceeds the size limit."""

    @classmethod
    def of(cls, path: str, max_bytes: int) -> TooLargeError:
        """Return the error for a file larger than ``max_bytes``."""
        return cls(
            f"{path}: larger than {max_bytes:,} bytes, the limit for a source file: split it, or raise the "
            "limit in Python with read_code(max_bytes=…)"
        )


class FoundFile(NamedTuple):
    """A file to read; a ``named`` one was given by the user and is never skipped as binary or generated."""

    path: str
    named: bool


class _Rules(NamedTuple):
    """The ignore rules of a folder and those above it; ``path`` is relative to the topmost of these."""

    path: bytes
    levels: tuple[tuple[int, IgnoreRules], ...]  # lengths of the paths of folders, and their rules

    def inside(self, folder: str, name: str, on_skip: OnSkip) -> _Rules:
        """Return the rules of the subfolder ``name``; its own ignore files take precedence."""
        path = self.path + os.fsencode(name) + b"/" if name else self.path
        own = _ignore_rules(folder, on_skip)
        return _Rules(path, (*self.levels, (len(path), own)) if own.rules else self.levels)

    def ignore(self, name: str, is_folder: bool) -> bool:
        path = self.path + os.fsencode(name)
        for length, rules in reversed(self.levels):
            verdict = rules.verdict(path[length:], is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False


def walk(
    paths: Iterable[str | os.PathLike[str]],
    wanted: Callable[[str], bool],
    on_skip: OnSkip | None = None,
    exclude: Iterable[str] = (),
    leave_out: LeaveOut | None = None,
) -> Iterator[FoundFile]:
    """Yield the files of the given files and folders, each once, in an order that depends only on names.

    A file in ``paths`` is always yielded. In a folder, every file whose name is ``wanted`` is yielded,
    recursively, except symbolic links, names that begin with a dot, and files excluded by the patterns in
    ``exclude`` or by ``.gitignore`` and ``.treedotignore`` files in the folder and above it, up to the folder
    that holds ``.git``. Paths use "/". An ignore file larger than 128 KiB is skipped. A folder inside a given
    one is skipped if ``leave_out`` returns a reason.
    """
    skip = on_skip or Skipped()
    given = sorted({os.path.normpath(os.fspath(path)) for path in paths}, key=lambda path: path.split(os.sep))
    seen: set[str] = set()
    excluded = IgnoreRules.parse(os.fsencode("\n".join(exclude)))
    for path in given:
        if os.path.isdir(path):
            found: Iterable[FoundFile] = _walk_folder(path, wanted, skip, excluded, leave_out)
        elif not _is_text(path):
            raise SourceError(f"cannot open {path!r}: the name is not UTF-8")
        elif os.path.exists(path):
            found = [FoundFile(path.replace(os.sep, "/"), named=True)]
        else:
            raise SourceError(f"cannot open {path}: no such file or folder")
        if len(given) == 1:
            yield from found
            continue
        for file in found:
            real = os.path.realpath(file.path)
            if real not in seen:
                seen.add(real)
                yield file


def _walk_folder(
    top: str,
    wanted: Callable[[str], bool],
    on_skip: OnSkip,
    excluded: IgnoreRules,
    leave_out: LeaveOut | None,
) -> Iterator[FoundFile]:
    waiting: list[tuple[str, _Rules | None]] = [(top, _rules_of(top, on_skip))]
    while waiting:
        path, rules = waiting.pop()
        if rules is None:
            yield FoundFile(path.replace(os.sep, "/"), named=False)
            continue
        try:
            with os.scandir(path) as entries:
                listed = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError:
            on_skip(path.replace(os.sep, "/"), "unreadable")
            continue
        reason = leave_out(path, {entry.name for entry in listed}) if leave_out and path != top else None
        if reason is not None:
            on_skip(path.replace(os.sep, "/"), reason)
            continue
        for entry in listed:
            name = entry.name
            inside = name if path == os.curdir else os.path.join(path, name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if name.startswith(".") or not (is_folder or wanted(name)):
                continue
            path_in_top = os.fsencode(os.path.relpath(inside, top)) if excluded.rules else b""
            if rules.ignore(name, is_folder) or excluded.verdict(path_in_top, is_folder=is_folder):
                on_skip(inside.replace(os.sep, "/"), "ignored folder" if is_folder else "ignored")
            elif is_folder:
                waiting.append((inside, rules.inside(inside, name, on_skip)))
            elif not entry.is_file(follow_symlinks=False):
                on_skip(inside.replace(os.sep, "/"), "not a plain file")
            elif not _is_text(name):
                on_skip(inside.replace(os.sep, "/"), "name is not UTF-8")
            else:
                waiting.append((inside, None))


def _rules_of(top: str, on_skip: OnSkip) -> _Rules:
    """Return the rules of a folder: its own, and those above it up to the folder that holds ``.git``."""
    chain = [os.path.abspath(top)]
    while not os.path.exists(os.path.join(chain[-1], ".git")):
        parent = os.path.dirname(chain[-1])
        if parent == chain[-1]:  # no repository
            del chain[1:]
            break
        chain.append(parent)
    rules = _Rules(b"", ()).inside(chain[-1], "", on_skip)
    for folder in chain[-2::-1]:
        rules = rules.inside(folder, os.path.basename(folder), on_skip)
    return rules


def _ignore_rules(folder: str, on_skip: OnSkip) -> IgnoreRules:
    content = b""
    for name in IGNORE_FILES:
        path = os.path.join(folder, name)
        if not os.path.isfile(path):  # a pipe would never end
            continue
        try:
            with open(path, "rb") as file:
                found = file.read(MAX_IGNORE_BYTES + 1)
        except OSError:
            continue
        if len(found) > MAX_IGNORE_BYTES:
            on_skip(path.replace(os.sep, "/"), "too large")
        else:
            content += found + b"\n"
    return IgnoreRules.parse(content)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_file(file: FoundFile, max_bytes: int) -> bytes:
    """Return the content of a file; raise SourceError if it cannot be read or is too large."""
    try:
        with open(file.path, "rb") as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        raise SourceError(f"cannot open {file.path}: {reason(error)}") from error
    if len(content) > max_bytes:
        raise TooLargeError.of(file.path, max_bytes)
    return content


def looks_binary(content: bytes) -> bool:
    """Return whether a file is binary: like git, look for a NUL byte near the beginning."""
    return b"\0" in content[:HEAD_BYTES]
