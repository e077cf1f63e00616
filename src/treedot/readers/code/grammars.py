"""The versions of the parser and the grammars: under another version, a file may become another tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from treedot.languages import LANGUAGES

PARSER = "tree-sitter"


def grammar_versions(languages: Iterable[Any]) -> dict[str, str]:
    """Return the installed versions of the parser and of the grammars of some languages.

    For Python they are such as ``{"tree-sitter": "tree-sitter 0.25.2", "python": "tree-sitter-python
    0.25.0"}``. Values that are not a language, and languages without an installed grammar, are left out.
    """
    wanted = {name for name in languages if isinstance(name, str)}
    packages = {name: LANGUAGES[name].module.replace("_", "-") for name in LANGUAGES if name in wanted}
    if packages:
        packages = {PARSER: PARSER, **packages}
    return {name: found for name, package in packages.items() if (found := _installed(package))}


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""


def grammar_changes(stored: Mapping[str, str], languages: Iterable[Any]) -> str:
    """Describe how the installed versions for some languages differ from stored ones; "" if they do not."""
    now = grammar_versions(languages)
    changed = [name for name in now if stored.get(name, now[name]) != now[name]]
    if not changed:
        return ""
    before, after = (", ".join(some[name] for name in changed) for some in (stored, now))
    return f"was made with {before}, and {after} is installed: the same code may have other trees now"


def checked_versions(stored: Any) -> dict[str, str]:
    """Return the versions that a file holds; raise TypeError unless they are texts by name."""
    if isinstance(stored, dict) and all(isinstance(text, str) for text in stored.values()):
        return stored
    raise TypeError(f"the versions of grammars are texts by language, not {stored!r:.40}")
