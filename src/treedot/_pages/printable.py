"""Escape untrusted text for terminals, and shorten it for messages."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

LISTED = 5  # names in a message
LONGEST = 200  # characters of a name


def printable(text: str) -> str:
    r"""Escape the characters of a text that would disturb a terminal or are not valid UTF-8.

    Examples
    --------
    >>> print(printable("é \x1b[2J \udcff"))
    é \x1b[2J \udcff
    """
    return text if text.isprintable() else re.sub(r"[^ -~]", _escaped, text)


def printable_json(value: object, indent: int = 2) -> str:
    r"""Return a value as JSON; characters that would disturb a terminal are escaped.

    Examples
    --------
    >>> print(printable_json("é \x9b2J \U000e0001"))
    "é \u009b2J \udb40\udc01"
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return re.sub(r"[^\n -~]", _escaped_in_json, text)


def first_few(names: Collection[object], listed: int = LISTED) -> str:
    """Return names for a message: the first ones, shortened if they are long, and the number of others.

    Examples
    --------
    >>> first_few(["a", "b"])
    "'a', 'b'"
    >>> first_few(range(1000), listed=2)
    '0, 1 and 998 more'
    """
    shown = ", ".join(_short(repr(name)) for name, _ in zip(names, range(listed), strict=False))
    return f"{shown} and {len(names) - listed:,} more" if len(names) > listed else shown


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _escaped_in_json(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else match[0].encode("unicode_escape").decode()
