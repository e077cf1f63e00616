"""The part of a comparison that reads the trees back from their vectors, if it is asked for."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from treedot._pages.page import table
from treedot._pages.printable import printable
from treedot.serve.answers import Given
from treedot.serve.comparing import Pair
from treedot.serve.decoding import ReadBack
from treedot.serve.fields import Value
from treedot.serve.pages.layout import layout, link
from treedot.vectors.decoding.decoder import DecodedTree

PART = "decode"  # of the page of a comparison
LONGEST = 2000  # characters of a tree that is shown as text
HEADLINE = "<h2>Read back</h2>"
ABOUT = (
    "<p>The vector of a tree, and the productions of both trees, give the tree again. A certificate proves "
    "that it is the right one. Larger trees need larger vectors.</p>"
)


def values(fields: Mapping[str, Value], given: Given) -> dict[str, Any]:
    """Return the trees as JSON values."""
    return ReadBack.of(Pair.of(fields), fields).to_dict()


def page(fields: Mapping[str, Value], given: Given) -> str:
    """Return the page of the trees, for browsers without scripts, and for the script of a comparison."""
    read = ReadBack.of(Pair.of(fields), fields)
    rows = map(_row, ("First", "Second"), read.found, read.is_same)
    header = ("Tree", f"from {fields['components']:,} numbers", "certified", "distance", "tree")
    return frame(fields, ABOUT + table(header, rows))


def _row(which: str, found: DecodedTree, is_same: bool) -> tuple[str, ...]:
    text = "nothing" if found.tree is None else printable(str(found.tree))
    shown = text if len(text) <= LONGEST else text[:LONGEST] + " …"
    return (
        which,
        "the same tree" if is_same else "another tree",
        "yes" if found.is_certified else "no",
        f"{found.distance:.2g}",
        f"<details><summary>show</summary><code>{html.escape(shown)}</code></details>",
    )


def frame(fields: Mapping[str, Value], result: str) -> str:
    """Return the page with a result, which the page of the comparison shows, too."""
    section = f'<section data-part="{PART}">{HEADLINE}{result}</section>'
    return layout(
        "Read back", f'{section}<p><a href="{link("compare", fields)}">The whole comparison</a></p>'
    )


def waiting_part(fields: Mapping[str, Value]) -> str:
    """Return the part of a comparison that a script replaces by the trees when its link is used."""
    to = link("decode", fields)
    text = f'<p><a href="{to}" data-load>Read both trees back from their vectors</a></p>'
    return f'<section data-part="{PART}" data-src="{to}" data-later>{HEADLINE}{text}</section>'
