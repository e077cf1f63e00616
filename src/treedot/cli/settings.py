"""Read the settings of a command from the project's ``treedot.toml`` or ``pyproject.toml``."""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treedot.errors import SourceError

KINDS = {
    list: "a list of strings",
    str: "a string",
    Path: "a path",
    int: "an integer",
    float: "a number",
    bool: "true or false",
}


def folder_of(paths: Sequence[str]) -> Path:
    """Return the folder in which the search for settings begins: the innermost one around all paths."""
    folders = [path if os.path.isdir(path) else os.path.dirname(path) or os.curdir for path in paths]
    try:
        return Path(os.path.commonpath([os.path.realpath(folder) for folder in folders]))
    except ValueError:  # on different drives, or names that cannot be paths
        return Path.cwd()


def apply_settings(options: argparse.Namespace, names: dict[str, type], folder: Path) -> None:
    """Fill in the options that were not given from the nearest settings file.

    It is in the folder or above it, or else in the current folder or above that. The settings are the table
    ``[COMMAND]`` of ``treedot.toml``, or else ``[tool.treedot.COMMAND]`` of ``pyproject.toml``. They are
    named like the options (``min-nodes``). Paths are relative to the file.
    """
    path, settings = _found(options.command, folder.resolve(), Path.cwd())
    for key, value in settings.items():
        option = key.replace("-", "_")
        if option not in names:
            known = ", ".join(sorted(name.replace("_", "-") for name in names))
            raise SourceError(f"{path}: unknown setting {key!r}: use one of {known}")
        if not _is_a(value, names[option]):
            raise SourceError(f"{path}: {key} must be {KINDS[names[option]]}, not {_shown(value)}")
        if getattr(options, option) is None:
            setattr(options, option, str(path.parent / value) if names[option] is Path else value)


def _found(command: str, *folders: Path) -> tuple[Path, dict[str, Any]]:
    """Return the settings file nearest to the first folder that has one, and a command's settings."""
    for place in (place for folder in folders for place in (folder, *folder.parents)):
        for name, tables in (("treedot.toml", (command,)), ("pyproject.toml", ("tool", "treedot", command))):
            path = place / name
            settings = _table(path, tables) if path.is_file() else None
            if settings is not None:
                return path, settings
    return folders[0], {}


def _table(path: Path, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the table of a TOML file that nested names lead to; None if there is none."""
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
    """Return whether a value of TOML is of a kind of setting."""
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if isinstance(value, int) and value.bit_length() > 63:  # TOML has 64 bits
        return False
    if kind is float:
        return isinstance(value, (int, float))
    return isinstance(value, str if kind is Path else kind)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        return "one of thousands of digits"
