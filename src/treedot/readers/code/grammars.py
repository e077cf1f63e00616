"""The versions of the parser and the grammars: under another version, a file may become another tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from typing import Any

from treedot.languages import LANGUAGES

PARSER = "tree-sitter"

version = cache(metadata.version)  # it reads a file, which takes as long as a search


def grammar_versions(languages: Iterable[Any]) -> dict[str, str]:
    """Return the installed versions of the parser and of the grammars of some languages.

    For Python, for example, ``{"tree-sitter": "tree-sitter 0.25.2", "python": "tree-sitter-python 0.25.0"}``.
    Unknown languages, and languages without an installed grammar, are left out.
    """
    wanted = {name for name in languages if isinstance(name, str)}
    packages = {name: LANGUAGES[name].module.replace("_", "-") for name in LANGUAGES if name in wanted}
    if packages:
        packages = {PARSER: PARSER, **packages}
    return {name: found for name, package in packages.items() if (found := _installed(package))}


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except metadata.PackageNotFoundError:
        return ""


def grammar_changes(stored: Mapping[str, str], languages: Iterable[Any]) -> str:
    """Describe how the installed versions for some languages differ from stored ones; "" if they do not."""
    now = grammar_versions(languages)
    changed = [name for name in now if stored.get(name, now[name]) != now[name]]
    if not changed:
        return ""
    before, after = (", ".join(some[name] for name in changed) for some in (stored, now))
    return f"was made with {before}, but {after} is installed: the same code may give different trees"


def checked_versions(stored: Any) -> dict[str, str]:
    """Return the versions stored in a file; raise TypeError unless they map names to strings."""
    if isinstance(stored, dict) and all(isinstance(text, str) for text in stored.values()):
        return stored
    raise TypeError(f"grammar versions must map languages to strings, not {stored!r:.40}")
