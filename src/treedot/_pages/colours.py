"""Colours of text on a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Any

Paint = Callable[[str, str], str]  # takes a text and the name of a style

STYLES = {"strong": "1", "quiet": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def painted(text: str, style: str) -> str:
    """Return a text in a style; it must not contain control characters."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if text else text


def plain(text: str, style: str) -> str:
    """Return a text as it is."""
    return text


def shows_colours(stream: IO[Any]) -> bool:
    """Return whether a stream is a terminal, unless its user wants no colours (NO_COLOR)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
