"""The contributions of a pair's links to a score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treedot.models.explain.linear import LinearFunction
from treedot.models.inputs.links import Links, Pairs, placed
from treedot.models.inputs.table import Table


class LinkShare(NamedTuple):
    """The contribution of one link of a pair to a score.

    Attributes
    ----------
    mark : str
        The placeholder in both trees, such as ``#1``.
    word : str
        The word that it stands for, as the second tree has it first.
    value : float
        By how much the score falls if this link is undone: if both trees have the word instead. These values
        overlap, so their sum has no meaning.
    """

    mark: str
    word: str
    value: float


def link_shares(linear: LinearFunction, table: Table, row: int, sign: float) -> list[LinkShare]:
    """Return the shares of all links of one example, strongest first; none without a pair."""
    pair = linear.reads.pair
    if not pair:
        return []
    read: Pairs = table[pair]
    forests, sides = (read.texts, read.hypotheses), read.links
    whole = linear.scores(table)[0, row]
    found = []
    for number in range(1, int(sides[1].number.max(initial=0)) + 1):
        trees = [
            placed(forest, _without(links, number)) for forest, links in zip(forests, sides, strict=True)
        ]
        undone = linear.scores(table.with_values(dict(zip(pair, trees, strict=True))))[0, row]
        node = sides[1].node[(sides[1].number == number).argmax()]
        word = read.hypotheses.labels[read.hypotheses.label[node]]
        found.append(LinkShare(f"#{number}", word, float(sign * (whole - undone))))
    return sorted(found, key=lambda share: -abs(share.value))


def _without(links: Links, number: int) -> Links:
    kept = np.flatnonzero(links.number != number)
    return Links(links.node[kept], links.number[kept])
