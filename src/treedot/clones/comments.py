"""Take comments out of source text, by the marks of its language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from treedot.languages import Language


def without_comments(lines: Sequence[str], language: Language) -> list[str]:
    """Return as many lines, without comments; Python's docstrings are comments, too.

    Examples
    --------
    >>> from treedot.languages import LANGUAGES
    >>> without_comments(['mark("//");  // two slashes'], LANGUAGES["java"])
    ['mark("//");   ']
    """
    return _pattern(language.comments, language.strings).sub(_blank, "\n".join(lines)).split("\n")


@cache
def _pattern(comments: str, strings: str) -> re.Pattern[str]:
    return re.compile(f"(?P<comment>{comments})|{strings}")


def _blank(found: re.Match[str]) -> str:
    """Return a literal as it is, and a blank and the ends of lines for a comment."""
    text = found["comment"]
    return found[0] if text is None else " " + "\n" * text.count("\n")
