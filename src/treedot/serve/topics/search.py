"""The page that searches an index."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from treedot._pages.printable import printable
from treedot.errors import ParameterError
from treedot.serve.answers import Given
from treedot.serve.fields import SEARCH, Value
from treedot.serve.given import current_index
from treedot.serve.pages.layout import choice_field, count_field, form, layout, link, part, row, text_field
from treedot.serve.searching import Found, Query, Result, Source

NONE = "No unit of the index is similar. <code>treedot search --threshold 0</code> lists the nearest."
FIELD = {field.name: field for field in SEARCH}


def values(fields: Mapping[str, Value], given: Given) -> dict[str, Any]:
    """Return the results as JSON values."""
    return _found(fields, given).to_dict()


def page(fields: Mapping[str, Value], given: Given) -> str:
    """Return the page, with results if there is something to search for."""
    result = _results(fields, _found(fields, given)) if str(fields["text"]).strip() else ""
    return frame(fields, result)


def frame(fields: Mapping[str, Value], result: str) -> str:
    """Return the page with a result."""
    controls = [
        text_field(FIELD["text"], fields["text"], "A function, or another tree"),
        row(
            choice_field(FIELD["text_format"], fields["text_format"], "Format"),
            count_field(FIELD["k"], fields["k"], "Results"),
        ),
    ]
    return layout("Search the index", form("/search", controls, "Search") + part("result", result), "/search")


def _found(fields: Mapping[str, Value], given: Given) -> Found:
    if given.index is None:
        raise ParameterError("there is no index to search: start treedot serve with --index")
    return Found.of(current_index(given.index), fields)


def _results(fields: Mapping[str, Value], found: Found) -> str:
    if not found.results:
        return f"<p>{NONE}</p>"
    items = "".join(f"<li>{_result(fields, found.query, one)}</li>" for one in found.results)
    return f'<ol class="results">{items}</ol>'


def _result(fields: Mapping[str, Value], query: Query, one: Result) -> str:
    differs = "".join(
        f"<p>{which}: <code>{html.escape('; '.join(texts))}</code></p>"
        for which, texts in (("Only here", one.only_query), ("Only there", one.only_found))
        if texts
    )
    if one.difference is not None:
        differs = f"<p>{html.escape(printable(str(one.difference)))}</p>{differs}"
    return (
        f"<h3>{html.escape(one.place)}</h3><p>similarity <b>{one.similarity:.3f}</b>, cosine "
        f"<b>{one.cosine:.3f}</b></p>{differs}<details><summary>Side by side</summary>"
        f"{_sources(query, one)}{_trees(fields, query, one)}</details>"
    )


def _sources(query: Query, one: Result) -> str:
    """Return the lines of both, which the script aligns; nothing if they are not known or too many."""
    if one.difference is None or query.source is None or one.source is None:
        return ""
    sides = _source("Your text", query.source) + _source(one.place, one.source)
    return f'<div class="beside" data-sources>{sides}</div>'


def _source(title: str, source: Source) -> str:
    text = "\n".join(printable(line.expandtabs(4)) for line in source.lines)
    shown = f'<pre data-start="{source.start}">\n{html.escape(text)}</pre>'
    return f"<section><h3>{html.escape(title)}</h3>{shown}</section>"


def _trees(fields: Mapping[str, Value], query: Query, one: Result) -> str:
    """Return a link to the comparison of both trees, which the script follows."""
    asked = {"a": fields["text"], "a_format": query.format, "b": str(one.tree[0]), "b_format": "brackets"}
    to = link("compare", asked)
    return f'<div data-src="{to}" data-later data-from="result"><p><a href="{to}">Compare both</a></p></div>'
