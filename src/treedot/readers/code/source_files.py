"""Read one source file: decode it, skip it if nobody wrote it by hand, and parse its units."""

from __future__ import annotations

import codecs
import contextlib
import io
import tokenize
from typing import NamedTuple

from treedot.errors import MissingDependencyError, SourceError, missing
from treedot.languages import LANGUAGES, language_of, language_of_text, languages_of
from treedot.readers.code import treesitter
from treedot.readers.code.handwriting import looks_compiled, looks_generated, looks_minified
from treedot.readers.code.parse_cache import current_cache, key_of
from treedot.readers.code.processes import CrashError, TooSlowError, do_apart
from treedot.readers.code.settings import CodeSettings
from treedot.readers.folders import (
    COMPILED,
    GENERATED,
    MINIFIED,
    FoundFile,
    TooLargeError,
    looks_binary,
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
    left_out: dict[str, int] | None = None  # numbers of units that are left out, by reason
    skipped: str | None = None  # the reason, if the file was found in a folder
    error: SourceError | None = None  # the error, if the file was given by name


def read_units(
    file: FoundFile, language: str | None, settings: CodeSettings, include_vendored: bool = False
) -> Outcome:
    """Read one file; without ``language``, its suffix determines the language.

    With ``include_vendored``, minified, compiled and generated files are read, too.
    """
    if language is None and language_of(file.path) is None:
        suffixes = " ".join(suffix for entry in LANGUAGES.values() for suffix in entry.suffixes)
        message = (
            f"{file.path}: unknown language: the suffix is not one of {suffixes}; set the language with "
            "language=…"
        )
        return Outcome(file.path, error=SourceError(message))
    name = language or ""
    try:
        content = read_file(file, settings.max_bytes)
        name = language if language and file.named else language_of_text(file.path, content) or ""
        reason = None if file.named else reason_to_skip(content, file.path, name, include_vendored)
        if reason is None and language not in (None, name):
            reason = "in another language"
        if reason is not None:
            return Outcome(file.path, skipped=reason)
        forest, left_out = _parse_best(as_utf8(content, name), name, language is None, file.path, settings)
    except MissingDependencyError:
        if file.named or language is not None:
            raise
        return Outcome(file.path, skipped=f"needs pip install {_package(name)}")
    except SourceError as error:
        if file.named:
            return Outcome(file.path, error=error)
        return Outcome(file.path, skipped=_REASONS.get(type(error), "unreadable"))
    return Outcome(file.path, forest, left_out)


def _package(language: str) -> str:
    return LANGUAGES[language].module.replace("_", "-")


_REASONS: dict[type[SourceError], str] = {
    CrashError: "crashes the parser",
    TooLargeError: "too large",
    TooSlowError: "too slow",
}


def reason_to_skip(content: bytes, path: str, language: str, include_vendored: bool = False) -> str | None:
    """Return why a file of a folder is not read; None if it is."""
    if looks_binary(content) and not content.startswith(tuple(_BYTE_ORDER_MARKS)):
        return "binary"
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<?xml", b"<!DOCTYPE")):
        return "in another language"  # such as the translations of Qt, which are XML in files *.ts
    if include_vendored:
        return None
    if looks_minified(content, path):
        return MINIFIED
    if looks_compiled(content, path):
        return COMPILED
    return GENERATED if looks_generated(content, language) else None


def _parse_best(
    text: bytes, language: str, is_guess: bool, file: str, settings: CodeSettings
) -> tuple[Forest, dict[str, int]]:
    """Return the units of a text; for a header without marks of C++, in the language that reads it better."""
    best = parse_units(text, language, file, settings)
    for other in languages_of(file)[1:] if is_guess and language == language_of(file) else ():
        if _badness(best) != (0, -1) and treesitter.is_installed(LANGUAGES[other]):
            best = min(best, parse_units(text, other, file, settings), key=_badness)
    return best


def _badness(found: tuple[Forest, dict[str, int]]) -> tuple[int, int]:
    """Return the number of syntax errors in units, and then a smaller number if there are units."""
    forest, _ = found
    return sum(forest.columns["errors"]), -(len(forest) > 0)


def parse_units(
    source: bytes, language: str, file: str, settings: CodeSettings
) -> tuple[Forest, dict[str, int]]:
    """Return the units of a UTF-8 text, and the numbers of units left out, by reason."""
    entry = LANGUAGES[language]
    if not treesitter.is_installed(entry):
        raise missing(_package(language), "code", f"reading {language} source")
    cache = current_cache()
    key = b"" if cache is None else key_of(source, language, settings)
    found = None if cache is None else cache.get(key)
    if found is None:
        arguments = (source, language, entry, file, settings)
        found = do_apart(treesitter.parse, *arguments, file=file, max_seconds=settings.max_seconds)
        if cache is not None:
            cache.put(key, *found)
    forest, left_out = found
    forest.columns.update(file=[file] * len(forest))
    return forest, left_out


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


def source_lines(file: str, language: str, part: slice = slice(None)) -> list[str]:
    """Return lines of a file as its units count them, for display; none if it cannot be read."""
    try:
        with open(file, "rb") as stream:
            text = as_utf8(stream.read(), language).decode(errors="replace")
    except OSError:  # deleted since it was read
        return []
    return text.replace("\r\n", "\n").removesuffix("\r").split("\n")[part]


def _recoded(content: bytes, encoding: str) -> bytes:
    return content.decode(encoding, errors="replace").encode(errors="replace")
