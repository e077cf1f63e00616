"""Results on public data beside published ones: ``python -m published``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("TREEDOT_COMPILE", "always")  # or the first measurements would be of plain Python

from paper.record import Record, versions

from treedot import __version__
from treedot._storage.files import write_whole

__all__ = ["TABLES", "run"]

TABLES = ("classification", "retrieval", "bigclonebench", "clone_search", "corpora")


def run(names: Sequence[str], data: Path, out: Path, say: Callable[[str], object] = print) -> Path:
    """Measure tables, and write the results and a page of all that are there.

    Parameters
    ----------
    names : sequence of str
        Members of ``TABLES``.
    data : Path
        The folder with the data sets; ``LAYOUT`` of ``programs`` and of ``bigclonebench`` describe it.
    out : Path
        The folder of the results, with the parsed programs. Steps that it holds are not measured again.
    say : callable
        Receives lines of progress.

    Returns
    -------
    Path
        The page, as Markdown.
    """
    out.mkdir(parents=True, exist_ok=True)
    source = cache(lambda read: read(data, out))
    for name in names:
        found = source(_module(name).read)
        _record(name, found, out).complete(name, _module(name).steps(found), say)
    sections = []
    for name in TABLES:
        if name in names or _path(name, out).exists():
            found = source(_module(name).read)
            record = _record(name, found, out)
            needed = getattr(_module(name), "required", _module(name).steps)
            if all(key in record for key in needed(found)):
                sections.append(_module(name).section(record))
    page = out / "published.md"
    with write_whole(page) as aside:
        text = ["# Beside published results", *(section.markdown(".") for section in sections)]
        aside.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    say(f"the page: {page}")
    return page


def settings(table: Any) -> dict[str, str]:
    """Return the constants that a table's results depend on: all in capitals, except published values."""
    return {
        name: _described(value)
        for name, value in vars(table).items()
        if name.isupper() and not name.startswith("PUBLISHED")
    }


def _described(value: Any) -> str:
    """Return a text that is the same in every process: no addresses of functions, no order of sets."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_described(each)}" for key, each in value.items()) + "}"
    if isinstance(value, set):
        return repr(sorted(value))
    return str(getattr(value, "__qualname__", repr(value)))


def _module(name: str) -> Any:
    return import_module(f"published.{name}")


def _path(name: str, out: Path) -> Path:
    return out / f"{name}.json"


def _record(name: str, source: Any, out: Path) -> Record:
    return Record(_path(name, out), _made(name, source), f"python -m published {name} --data DIR")


def _made(name: str, source: Any) -> dict[str, Any]:
    """Return everything that the results of a table depend on."""
    return {
        "treedot": __version__,
        "data": source.digest,
        "versions": versions(),
        "settings": settings(_module(name)),
    }
