"""Labels of a relation with its head and its modifier, ``nsubj<grow::v,tree::n>``, as KeLP writes them."""

from __future__ import annotations

import re
from typing import NamedTuple

ROOT = "*::*"  # instead of the head of a root
_LABEL = re.compile(r"(?:COMP##)?([^<>,]*)<([^<>,]*::[^<>,]*),([^<>,]*::[^<>,]*)>")
_MARKS = {",": "_comma_", "<": "_oang_", ">": "_cang_"}  # KeLP's names of these characters in a word


class Composition(NamedTuple):
    """A relation, and the words of its head and its modifier, each with its part of speech."""

    relation: str
    head: str
    modifier: str


def composition(relation: str, head: str, modifier: str) -> str:
    """Return the label of a relation with both words.

    Examples
    --------
    >>> composition("punct", "grow::v", ",::,")
    'punct<grow::v,_comma_::_comma_>'
    """
    head, modifier = (re.sub("[,<>]", lambda mark: _MARKS[mark[0]], word) for word in (head, modifier))
    return f"{relation}<{head},{modifier}>"


def composition_of(label: str) -> Composition | None:
    """Return the parts of a label, with or without KeLP's type; None for all other labels.

    Examples
    --------
    >>> composition_of("COMP##nsubj<grow::v,tree::n>")
    Composition(relation='nsubj', head='grow::v', modifier='tree::n')
    >>> composition_of("<"), composition_of("tree::n")
    (None, None)
    """
    found = _LABEL.fullmatch(label)
    return None if found is None else Composition(*found.groups())
