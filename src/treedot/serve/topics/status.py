"""The first page: what is loaded, and examples that need no data."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, NamedTuple

from treedot.languages import LANGUAGES
from treedot.serve.answers import Given
from treedot.serve.fields import Value
from treedot.serve.given import current_index, current_model
from treedot.serve.pages.layout import layout, link


class Example(NamedTuple):
    """Two trees to compare."""

    title: str
    format: str
    a: str
    b: str


EXAMPLES = (
    Example(
        "Two sentences",
        "brackets",
        "(S (NP (DT the) (NN bird)) (VP (VBZ sees) (NP (DT the) (NN tree))))",
        "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN bird))))",
    ),
    Example(
        "Two functions in Python",
        "python",
        "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n"
        "    return total / len(values)\n",
        "def variance(numbers, centre):\n    total = 0\n    for number in numbers:\n"
        "        total += (number - centre) ** 2\n    return total / len(numbers)\n",
    ),
    Example(
        "Two lists in HTML",
        "html",
        "<ul><li>oak</li><li>elm</li><li><b>ash</b></li></ul>",
        "<ul><li>oak</li><li><b>elm</b></li></ul>",
    ),
    Example(
        "Two records in JSON",
        "json",
        '{"name": "oak", "size": {"height": 20, "width": 9}}',
        '{"name": "elm", "size": {"height": 30, "width": 9}, "old": true}',
    ),
    Example(
        "Two phylogenies", "newick", "((oak,elm)a,(fern,moss)b)c;", "((oak,elm)a,(fern,(moss,hornwort)d)b)c;"
    ),
    Example(
        "Two RNA structures",
        "dot-bracket",
        "GCAAGCUUUGCAAGC\n((..((...))..))",
        "GCAAGGCUUUGCCAAGC\n((..(((...)))..))",
    ),
)

QUESTION = "(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"


def values(fields: Mapping[str, Value], given: Given) -> dict[str, Any]:
    """Return what is loaded."""
    index = None if given.index is None else current_index(given.index)
    model = None if given.model is None else current_model(given.model)
    return {
        "model": model and {"classes": None if model.classes is None else model.classes.tolist()},
        "index": index and {"trees": len(index), "languages": sorted(set(index.grammars) & set(LANGUAGES))},
    }


def page(fields: Mapping[str, Value], given: Given) -> str:
    """Return the first page."""
    status = values(fields, given)
    links = "".join(f'<li><a href="{example_link(one)}">{one.title}</a></li>' for one in EXAMPLES)
    body = (
        '<p class="says">treedot compares trees: parsed sentences, source code, web pages, RNA.</p>'
        f"{_loaded(status)}<h2>Compare</h2><p>Each example opens with its result.</p><ul>{links}</ul>"
        f"<h2>Explain</h2>{_explained(status)}"
    )
    return frame(fields, body)


def frame(fields: Mapping[str, Value], result: str) -> str:
    """Return the page with a content."""
    return layout("Compare trees", result)


def example_link(example: Example) -> str:
    """Return the link of an example."""
    fields: dict[str, Value] = {
        "a": example.a,
        "a_format": example.format,
        "b": example.b,
        "b_format": example.format,
    }
    return link("compare", fields)


def _loaded(status: Mapping[str, Any]) -> str:
    index = status["index"]
    if index is None:
        return "<p>No index is loaded: start <code>treedot serve --index FILE</code> to search one.</p>"
    languages = f" ({', '.join(index['languages'])})" if index["languages"] else ""
    size = f"{index['trees']:,} trees{html.escape(languages)}"
    return f'<p>The index has {size}: <a href="/search">search it</a>.</p>'


def _explained(status: Mapping[str, Any]) -> str:
    model = status["model"]
    if model is None:
        question = link("explain", {"tree": QUESTION})
        return (
            "<p>The model learns the classes of 300 example questions, such as a person or a place: "
            f'<a href="{question}">see it decide</a>. For another one, use <code>--model</code>.</p>'
        )
    classes = model["classes"]
    what = "numbers" if classes is None else f"{len(classes)} classes"
    return f'<p>The model predicts {what}: <a href="/explain">explain its decisions</a>.</p>'
