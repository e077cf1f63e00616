"""A cache of parsed source files by content, so that no text is parsed twice.

It is a table of a ``CacheFile`` in the user's cache folder, or in ``TREEDOT_CACHE_DIR``. The key of an entry
is a digest of the text, the language, the settings and the versions of the grammar and of treedot's reader.
The same file keeps what was found among the trees.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from treedot._storage.cache_file import DIGEST, CacheFacts, CacheFile, facts, from_bytes, to_bytes
from treedot._version import __version__
from treedot.errors import SourceError
from treedot.readers.code.settings import CodeSettings
from treedot.trees import Forest
from treedot.trees.packed import FOREST, pack, unpack

READER = 2  # increased when the reader makes other trees from the same text
MAX_BYTES = 2**29
MAX_FOUND = 2**26  # bytes of what was found among trees
FILE = "parsed.sqlite"
PARSED, FOUND = "parsed", "found"  # tables
STATEMENT = 5  # numbers in a row of the column of statements


class ParseCache:
    """Parsed files, and what was found among them, in one SQLite file.

    Parameters
    ----------
    folder : Path, optional
        The folder of the file; by default ``cache_folder()``.
    max_bytes : int, default=2**29
        The largest total size of the parsed files. The least recently used ones are removed first.
    """

    def __init__(self, folder: Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    @functools.cached_property
    def file(self) -> CacheFile:
        """The file."""
        folder = self._folder or cache_folder()
        return CacheFile(folder / FILE, {PARSED: self._max_bytes, FOUND: MAX_FOUND})

    def get(self, key: bytes) -> tuple[Forest, dict[str, int]] | None:
        """Return the units of a key, with an empty ``file``, and the numbers of those left out; or None."""
        content = self.file.get(PARSED, key)
        return None if content is None else _read(content)

    def put(self, key: bytes, forest: Forest, left_out: dict[str, int]) -> None:
        """Store the units of a key."""
        self.file.put(PARSED, key, _written(forest, left_out))

    def close(self) -> None:
        """Write new entries, and remove old ones above the size limit."""
        self.file.close()


_current: ParseCache | None = None


@contextlib.contextmanager
def keeping_parsed(cache: ParseCache | None) -> Iterator[None]:
    """Let all readers of source code use a cache in a ``with`` block; None for no cache."""
    global _current
    before, _current = _current, cache
    try:
        yield
    finally:
        _current = before
        if cache is not None:
            cache.close()


def current_cache() -> ParseCache | None:
    """Return the cache that readers of source code currently use, if any."""
    return _current


def cache_folder() -> Path:
    """Return the folder for caches: TREEDOT_CACHE_DIR, or treedot's folder in the user's cache folder."""
    given = os.environ.get("TREEDOT_CACHE_DIR")
    if given:
        return Path(given)
    from platformdirs import user_cache_path

    return user_cache_path("treedot")


def cache_path() -> Path:
    """Return the file of the cache."""
    return cache_folder() / FILE


def cache_facts(table: str = PARSED, folder: Path | None = None) -> CacheFacts:
    """Return the number and size of the parsed files, or of what was found; zeros if there is nothing."""
    return facts((folder or cache_folder()) / FILE, table)


def key_of(text: bytes, language: str, settings: CodeSettings) -> bytes:
    """Return the key of a text in a language; equal keys have equal units."""
    chosen = [settings.unit, settings.identifiers, settings.literals, settings.min_nodes, settings.blurred]
    chosen += [settings.stubs, settings.statements]
    context = json.dumps([READER, __version__, language, _grammar(language), chosen]).encode()
    return hashlib.blake2b(text, digest_size=DIGEST, key=hashlib.blake2b(context).digest()).digest()


@functools.cache
def _grammar(language: str) -> dict[str, str]:
    from treedot.readers.code.grammars import grammar_versions

    return grammar_versions([language])


def _written(forest: Forest, left_out: dict[str, int]) -> bytes:
    """Serialise units."""
    arrays = {name: np.asarray(values).astype(FOREST[name]) for name, values in pack(forest).items()}
    columns = {name: values for name, values in forest.columns.items() if name != "file"}
    statements = columns.pop("statements", None)
    if statements is not None:
        arrays["statements"] = statements[-1].astype("<i8").ravel()
    blurred = columns.pop("blurred", None)
    if blurred is not None:
        arrays["blurred"] = np.concatenate([np.zeros(0, np.int64), *blurred]).astype("<i8")
        arrays["blurred_sizes"] = np.array([len(hashes) for hashes in blurred], "<i8")
    return to_bytes([left_out, columns], arrays)


def _read(content: bytes) -> tuple[Forest, dict[str, int]] | None:
    """Deserialise units; return None if they are damaged."""
    try:
        (left_out, columns), arrays = from_bytes(content)
        forest = unpack(arrays)
    except (ValueError, KeyError, TypeError, SourceError):
        return None
    if "blurred" in arrays:
        ends = np.cumsum(arrays["blurred_sizes"])[:-1]
        columns["blurred"] = np.split(arrays["blurred"].astype(np.int64), ends) if len(forest) else []
    if "statements" in arrays:
        rows = arrays["statements"].astype(np.int64).reshape(-1, STATEMENT)
        columns["statements"] = [*[None] * (len(forest) - 1), rows]
    forest.columns.update({"file": [], **columns})  # the caller sets the file
    return forest, left_out
