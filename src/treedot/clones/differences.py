"""Describe the differences between two pieces of source text in one line.

Lines are compared word by word, so that their layout does not matter. Words that only one of the two texts
has are all taken as equal when lines are aligned: then a copy in which every name was changed is still
aligned line by line, and the names that were changed are read off.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

WORD = re.compile(r"\w+|[^\w\s]")
NAMED = 3  # renamed names that are listed
LONG = 40  # characters of a name that are written


@dataclass(frozen=True)
class Difference:
    """What differs between two texts whose lines were aligned.

    Attributes
    ----------
    lines : int
        The lines of both texts: two that are aligned count once, empty ones not at all.
    different : int
        How many of them are in one text alone, or not the same in both.
    renamed : tuple of (str, str)
        Names of the first text with those that stand in their places in the second, the most frequent first.
    """

    lines: int
    different: int
    renamed: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        if not self.different:
            return "the same text"
        text = f"{self.different} of {self.lines} lines differ"
        if self.renamed:
            shown = [f"{_short(old)} -> {_short(new)}" for old, new in self.renamed[:NAMED]]
            more = ["…"] if len(self.renamed) > NAMED else []
            names = "name" if len(self.renamed) == 1 else "names"
            text += f"; {len(self.renamed)} {names} renamed ({', '.join(shown + more)})"
        return text


def difference(a: Sequence[str], b: Sequence[str], keywords: Collection[str] = ()) -> Difference:
    """Return what differs between the lines of two texts, in a language whose keywords are no names.

    Examples
    --------
    >>> a = ["def area(width, depth):", "    return width * depth"]
    >>> b = ["def area(height, depth):", "    # of the side", "    return height * depth"]
    >>> print(difference(a, b))
    3 of 3 lines differ; 1 name renamed (width -> height)
    """
    x, y = ([words for line in text if (words := WORD.findall(line))] for text in (a, b))
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


def _short(name: str) -> str:
    return name if len(name) <= LONG else name[: LONG - 1] + "…"
