"""Objects passed as trees: nested lists, objects that nearly behave like trees, and those of parsers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.bridges import make_object
from fuzz.readers import check_forest, check_round_trip
from fuzz.target import Target, require
from fuzz.trees import LABELS, random_tree
from treedot import read_trees
from treedot.errors import SourceError


class Labelled:
    """Like an nltk tree: a label, and an iterator over children."""

    def __init__(self, label: Any, children: list[Any]) -> None:
        self._label, self._children = label, children

    def label(self) -> Any:
        """Return what should be text."""
        return self._label

    def __iter__(self) -> Iterator[Any]:
        return iter(self._children)


class Text(str):
    """A subclass of text."""

    __slots__ = ()


@cache
def oddities() -> list[Any]:
    """Return objects that are not trees, and some that nearly are."""
    import pandas as pd
    import pyarrow as pa

    return [
        None, 0, -1, 1.5, float("nan"), True, b"(A b)", "", "(A b)", "(A", ")", "()", "\ud800",
        Text("(A b)"), Text("a"), [], (), {}, {"A": 1}, set(), [[]], [None], [["A"]], ["(A b)", "c"],
        object(), int, len, range(3), ..., np.array(["A", "b"], object), np.array(3), np.float32(1),
        np.str_("(A b)"), pd.NA, pd.NaT, np.zeros((2, 2)), pd.Series(["A"]), pa.scalar("(A b)"),
        pa.scalar(None), pa.scalar(["A", "b"]), pa.array(["A"]),
    ]  # fmt: skip


class ObjectTarget:
    """Lists of objects; the bytes of a case seed the random choices."""

    needs = ("pandas", "pyarrow")

    def make(self, random: Random) -> bytes:
        """Return a number."""
        return str(random.getrandbits(64)).encode()

    def run(self, data: bytes, folder: Path) -> None:
        """Read objects, and read them again without the bad ones."""
        import pandas as pd

        random = Random(data)
        items = [_item(random) for _ in range(random.randint(0, 4))]
        source = items if random.random() < 0.8 else pd.DataFrame({"tree": pd.Series(items, dtype=object)})
        problems: list[SourceError] = []
        good = read_trees(source, on_bad=problems.append)
        check_forest(good)
        require(len(good) + len(problems) == len(items), "an item is neither read nor reported")
        forest = read_trees(source)
        check_forest(forest)
        require(len(forest) == len(items), "the numbers of trees and of items differ")
        check_round_trip(forest, folder)


def _item(random: Random) -> Any:
    match random.randrange(10):
        case 0:
            return random.choice(oddities())
        case 8 | 9:
            return make_object(random, lambda: random.choice(oddities()))
        case 1:
            return random_tree(random)
        case 2:
            return str(random_tree(random))
        case 3:
            return _cycle(random)
        case 4:
            return _shared(random)
        case _:
            return _nested(random, random.choice([1, 3, 6]))


def _nested(random: Random, depth: int) -> Any:
    if random.random() < 0.02:
        return random.choice(oddities())
    label = random.choice(LABELS)
    if depth == 0 or random.random() < 0.2:
        return label
    children = [_nested(random, depth - 1) for _ in range(random.choice([1, 1, 2, 3]))]
    return random.choice(
        [[label, *children], [label, *children], (label, *children), Labelled(label, children)]
    )


def _cycle(random: Random) -> Any:
    """Return a list or an object that contains itself at some depth."""
    bottom: list[Any] = ["A"]
    top: Any = bottom
    for _ in range(random.randrange(5)):
        top = random.choice([["B", top], ("B", "c", top), Labelled("B", [top])])
    bottom.extend(random.choices(["x", top], k=random.randint(1, 3)))
    return top


def _shared(random: Random) -> Any:
    """Return a few objects that form very many nodes, since they are shared."""
    node: Any = "a"
    for _ in range(random.choice([3, 10, 14, 40, 200])):
        children = [node] * random.choice([1, 2, 2])
        node = random.choice([["A", *children], ("A", *children), Labelled("A", children)])
    return node


OBJECTS: dict[str, Target] = {"objects": ObjectTarget()}
