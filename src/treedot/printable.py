"""Texts that come from elsewhere, made fit for terminals and pages."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    r"""Return a text with escapes for what would disturb a terminal or cannot be written as UTF-8.

    >>> print(printable("a\x1b[1mb"))
    a\x1b[1mb
    """
    return text if text.isprintable() else re.sub(r"[^ -~]", _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else match[0].encode("unicode_escape").decode()
