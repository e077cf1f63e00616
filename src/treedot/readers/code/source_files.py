"""Read one source file: decode it, skip generated code, and parse its units."""

from __future__ import annotations

import codecs
import contextlib
import io
import tokenize
from typing import NamedTuple

from treedot.errors import MissingDependencyError, SourceError, missing
from treedot.languages import LANGUAGES, language_of
from treedot.readers.code import treesitter
from treedot.readers.code.parse_cache import current_cache, key_of
from treedot.readers.code.processes import CrashError, TooSlowError, do_apart
from treedot.readers.code.settings import CodeSettings
from treedot.readers.folders import (
    FoundFile,
    TooLargeError,
    looks_binary,
    looks_generated,
    looks_minified,
    read_file,
)
from treedot.trees import Forest

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Outcome(NamedTuple):
    """The result of reading a file."""

    path: str
    forest: Forest | None = None
    n_ignored: int = 0  # units ignored by a comment
    skipped: str | None = None  # the reason, if the file was found in a folder
    error: SourceError | None = None  # the error, if the file was given by name


def read_units(file: FoundFile, language: str | None, settings: CodeSettings) -> Outcome:
    """Read one file; without ``language``, its suffix determines the language."""
    name = language or language_of(file.path)
    if name is None:
        suffixes = " ".join(suffix for entry in LANGUAGES.values() for suffix in entry.suffixes)
        message = f"{file.path}: unknown language: the suffix is not one of {suffixes}; set the language"
        return Outcome(file.path, error=SourceError(message))
    try:
        content = read_file(file, settings.max_bytes)
        reason = None if file.named else _reason_to_skip(content)
        if reason is not None:
            return Outcome(file.path, skipped=reason)
        forest, n_ignored = parse_units(as_utf8(content, name), name, file.path, settings)
    except MissingDependencyError:
        if file.named or language is not None:
            raise
        return Outcome(file.path, skipped="needs pip install 'treedot[code]'")
    except SourceError as error:
        if file.named:
            return Outcome(file.path, error=error)
        return Outcome(file.path, skipped=_REASONS.get(type(error), "unreadable"))
    return Outcome(file.path, forest, n_ignored)


_REASONS: dict[type[SourceError], str] = {
    CrashError: "crashes the parser",
    TooLargeError: "too large",
    TooSlowError: "too slow",
}


def _reason_to_skip(content: bytes) -> str | None:
    if looks_binary(content) and not content.startswith(tuple(_BYTE_ORDER_MARKS)):
        return "binary"
    if looks_minified(content):
        return "minified"
    return "generated" if looks_generated(content) else None


def parse_units(source: bytes, language: str, file: str, settings: CodeSettings) -> tuple[Forest, int]:
    """Return the units of a UTF-8 text, and the number of units that comments ignore."""
    entry = LANGUAGES[language]
    if not treesitter.is_installed(entry):
        raise missing(entry.module.replace("_", "-"), "code", f"reading {language} source")
    cache = current_cache()
    key = b"" if cache is None else key_of(source, language, settings)
    found = None if cache is None else cache.get(key)
    if found is None:
        arguments = (source, language, entry, file, settings)
        found = do_apart(treesitter.parse, *arguments, file=file, max_seconds=settings.max_seconds)
        if cache is not None:
            cache.put(key, *found)
    forest, n_ignored = found
    forest.columns.update(file=[file] * len(forest))
    return forest, n_ignored


def as_utf8(content: bytes, language: str) -> bytes:
    """Return a text in UTF-8; its encoding is given by a byte order mark or, in Python, by a comment."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return content[len(mark) :] if encoding == "utf-8" else _recoded(content, encoding)
    if language == "python" and b"coding" in content[:400]:
        with contextlib.suppress(SyntaxError, LookupError, UnicodeError):
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
            if encoding != "utf-8":
                return _recoded(content, encoding)
    return content


def source_lines(file: str, language: str) -> list[str]:
    """Return the lines of a file as its units count them, for display; none if it cannot be read."""
    try:
        with open(file, "rb") as stream:
            text = as_utf8(stream.read(), language).decode(errors="replace")
    except OSError:  # deleted since it was read
        return []
    return [line.removesuffix("\r") for line in text.split("\n")]


def _recoded(content: bytes, encoding: str) -> bytes:
    return content.decode(encoding, errors="replace").encode(errors="replace")
