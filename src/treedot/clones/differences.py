"""Describe the differences between two pieces of source text in one line.

Lines are compared word by word, without comments and layout. When lines are aligned, all words that occur in
only one of the texts count as equal. So a copy in which every name was changed is still aligned line by line,
which shows the renamed names.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from treedot.clones.comments import without_comments
from treedot.languages import Language

WORD = re.compile(r"\w+|[^\w\s]")
NAMED = 3  # renamed names to list
LONG = 40  # characters of a name to show


@dataclass(frozen=True)
class Difference:
    """The differences of two texts whose lines were aligned.

    Attributes
    ----------
    lines : int
        The number of lines of both texts; aligned lines count once, and lines without code are ignored.
    different : int
        The number of lines that are in one text only, or differ.
    renamed : tuple of (str, str)
        Names of the first text with their replacements in the second, most frequent first.
    in_comments : bool, default=False
        Whether comments differ.
    """

    lines: int
    different: int
    renamed: tuple[tuple[str, str], ...]
    in_comments: bool = False

    def __str__(self) -> str:
        if not self.different:
            return "only layout or comments differ" if self.in_comments else "the same text"
        text = f"{self.different} of {self.lines} lines differ"
        if self.renamed:
            shown = [f"{_short(old)} -> {_short(new)}" for old, new in self.renamed[:NAMED]]
            more = ["…"] if len(self.renamed) > NAMED else []
            names = "name" if len(self.renamed) == 1 else "names"
            text += f"; {len(self.renamed)} {names} renamed ({', '.join(shown + more)})"
        return text


def difference(a: Sequence[str], b: Sequence[str], language: Language | None = None) -> Difference:
    """Return the differences between the lines of two texts.

    Comments and keywords are those of the language; if it is unknown, there are none.

    Examples
    --------
    >>> from treedot.languages import LANGUAGES
    >>> a = ["def area(width, depth):", "    return width * depth"]
    >>> b = ["def area(height, depth):", "    # of the side", "    return height * depth"]
    >>> print(difference(a, b, LANGUAGES["python"]))
    2 of 2 lines differ; 1 name renamed (width -> height)
    """
    x, y = (_words(text if language is None else without_comments(text, language)) for text in (a, b))
    if x == y:
        return Difference(len(x), 0, (), _words(a) != _words(b))
    keywords = frozenset[str]() if language is None else language.keywords
    known = {word for line in x for word in line} & {word for line in y for word in line}
    a_keys, b_keys = ([tuple(w if w in known else "" for w in line) for line in text] for text in (x, y))
    lines = different = 0
    renamed: Counter[tuple[str, str]] = Counter()
    for kind, x0, x1, y0, y1 in difflib.SequenceMatcher(None, a_keys, b_keys, autojunk=False).get_opcodes():
        lines += max(x1 - x0, y1 - y0)
        if kind != "equal":
            different += max(x1 - x0, y1 - y0)
            continue
        for old, new in zip(x[x0:x1], y[y0:y1], strict=True):
            different += old != new
            renamed.update(
                (was, now)
                for was, now in zip(old, new, strict=True)
                if was != now and all(word.isidentifier() and word not in keywords for word in (was, now))
            )
    return Difference(lines, different, tuple(pair for pair, _ in renamed.most_common()))


def _words(lines: Sequence[str]) -> list[list[str]]:
    return [words for line in lines if (words := WORD.findall(line))]


def _short(name: str) -> str:
    return name if len(name) <= LONG else name[: LONG - 1] + "…"
