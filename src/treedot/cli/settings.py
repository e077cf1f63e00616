"""Settings of commands from a project's own file: ``treedot.toml``, or ``pyproject.toml``."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import Any

from treedot.errors import SourceError


def apply_settings(options: argparse.Namespace, names: dict[str, type], folder: Path) -> None:
    """Set the options of a command that were not given from the nearest file of settings above a folder.

    ``[COMMAND]`` in ``treedot.toml``, or ``[tool.treedot.COMMAND]`` in ``pyproject.toml``: the first of both
    that has it, in the folder or in one around it. Names are those of the options, as ``min-nodes``; a path
    is relative to the file that it stands in.
    """
    for name, value in _found(options.command, folder.resolve()):
        path, key = name
        option = key.replace("-", "_")
        if option not in names:
            raise SourceError(f"{path}: unknown setting {key!r}: use one of {', '.join(_keys(names))}")
        if not _is_a(value, names[option]):
            wanted = {
                list: "a list of texts",
                str: "a text",
                Path: "a path",
                int: "an integer",
                float: "a number",
            }
            raise SourceError(f"{path}: {key} must be {wanted[names[option]]}, not {_shown(value)}")
        if getattr(options, option) is None:
            setattr(options, option, str(path.parent / value) if names[option] is Path else value)


def _found(command: str, folder: Path) -> list[tuple[tuple[Path, str], Any]]:
    for place in (folder, *folder.parents):
        for name, tables in (("treedot.toml", (command,)), ("pyproject.toml", ("tool", "treedot", command))):
            path = place / name
            settings = _table(path, tables) if path.is_file() else None
            if settings is not None:
                return [((path, key), value) for key, value in settings.items()]
    return []


def _table(path: Path, names: tuple[str, ...]) -> dict[str, Any] | None:
    try:
        found: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise SourceError(f"cannot read {path}: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read {path}: {error}") from error
    for name in names:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    if not isinstance(found, dict):
        raise SourceError(f"{path}: {'.'.join(names)} must be a table")
    return found


def _is_a(value: Any, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if isinstance(value, bool) or (isinstance(value, int) and value.bit_length() > 63):  # no integer of TOML
        return False
    if kind is float:
        return isinstance(value, (int, float))
    return isinstance(value, str if kind is Path else kind)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # an integer with more digits than Python likes to write
        return "one of thousands of digits"


def _keys(names: dict[str, type]) -> list[str]:
    return sorted(name.replace("_", "-") for name in names)
