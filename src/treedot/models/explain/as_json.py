"""Explanations as JSON, for programs; ``docs/explain.md`` describes the fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from treedot._pages.printable import printable_json
from treedot.models.explain.shown import Shown

VERSION = 2


def json_of(found: Shown) -> str:
    """Return an explanation as JSON."""
    fields = {"format": found.format, "version": VERSION, **found.json_fields()}
    return printable_json(_plain(fields), indent=1) + "\n"


def _plain(value: Any) -> Any:
    """Convert a value for JSON; trees, and classes of other types than numbers and bools, become text."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
