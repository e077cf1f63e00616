"""Texts of other people, as they can be shown."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    r"""Return a text with escapes for what would disturb a terminal or cannot be written as UTF-8.

    Examples
    --------
    >>> print(printable("é \x1b[2J \udcff"))
    é \x1b[2J \udcff
    """
    return text if text.isprintable() else re.sub(r"[^ -~]", _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else match[0].encode("unicode_escape").decode()
