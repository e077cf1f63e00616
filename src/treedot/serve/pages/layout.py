"""The frame, the navigation and the form controls of all pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from treedot._pages.page import STYLE as PAGE_STYLE
from treedot._pages.page import frame
from treedot.serve.fields import TOPICS, Field, Value

HEAD = '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/serve.css">'
SCRIPT = '<script src="/static/serve.js"></script>'  # not deferred: it precedes the first field
LINKS = {"/compare": "Compare", "/explain": "Explain", "/search": "Search"}
ROWS = 8  # lines of a text field


def style_sheet(own: str) -> str:
    """Return the style of all pages: that of reports and drawings, then their own."""
    from treedot.trees.drawing import STYLE as TREE_STYLE

    return f"{PAGE_STYLE}{TREE_STYLE}{_of_reports('comparison.css')}{own}"


def script(own: str) -> str:
    """Return the script of all pages: that of reports for two sources side by side, then their own."""
    return _of_reports("comparison.js") + own


def _of_reports(name: str) -> str:
    return files("treedot.clones.report").joinpath(name).read_text(encoding="utf-8")


def layout(title: str, body: str, path: str = "/") -> str:
    """Return a page with the navigation; ``path`` is that of the page."""
    links = "".join(
        f'<a href="{to}"{_current(to, path)}>{name}</a>' for to, name in {"/": "treedot", **LINKS}.items()
    )
    return frame(
        f"{title} · treedot",
        HEAD + SCRIPT,
        '<a class="skip" href="#content">Skip to the content</a>'
        f'<header><nav aria-label="Pages">{links}</nav></header>'
        f'<main id="content"><h1>{html.escape(title)}</h1>\n{body}</main>',
    )


def _current(to: str, path: str) -> str:
    return ' aria-current="page"' if to == path else ""


def problem(message: str) -> str:
    """Return a message about a request, in place of its result."""
    return f'<p class="problem" role="alert">{html.escape(message)}</p>'


def part(name: str, content: str) -> str:
    """Return a part of a page that depends on the form, which the script replaces."""
    return f'<div data-part="{name}">{content}</div>'


def text_field(field: Field, value: Value, title: str) -> str:
    """Return a large field for a text."""
    text = html.escape(str(value))
    return (
        f'<label class="grow"><span>{html.escape(title)}</span><textarea name="{field.name}" rows="{ROWS}" '
        f'spellcheck="false" autocapitalize="off" autocomplete="off">\n{text}</textarea></label>'
    )


def choice_field(field: Field, value: Value, title: str, names: Mapping[Value, str] | None = None) -> str:
    """Return a list to choose from."""
    shown = names or {}
    options = "".join(
        f'<option value="{choice}"{" selected" if choice == value else ""}>'
        f"{html.escape(shown.get(choice, str(choice)))}</option>"
        for choice in field.choices
    )
    return (
        f'<label><span>{html.escape(title)}</span><select name="{field.name}" data-default="{field.default}">'
        f"{options}</select></label>"
    )


def steps_field(field: Field, value: Value, title: str, names: Mapping[Value, str]) -> str:
    """Return a row of choices, which arrow keys move through."""
    options = "".join(
        f'<label><input type="radio" name="{field.name}" value="{choice}" data-default="{field.default}"'
        f"{' checked' if choice == value else ''}><span>{html.escape(names[choice])}</span></label>"
        for choice in field.choices
    )
    return f'<fieldset class="steps"><legend>{html.escape(title)}</legend><div>{options}</div></fieldset>'


def slider(field: Field, value: Value, title: str) -> str:
    """Return a slider from 0 to 1."""
    return (
        f'<label><span>{html.escape(title)} <output>{value:g}</output></span><input type="range" min="0" '
        f'max="1" step="0.05" name="{field.name}" value="{value:g}" data-default="{field.default}"></label>'
    )


def count_field(field: Field, value: Value, title: str) -> str:
    """Return a field for a small number."""
    return (
        f'<label><span>{html.escape(title)}</span><input type="number" name="{field.name}" min="{field.low}" '
        f'max="{field.high}" value="{value}" data-default="{field.default}"></label>'
    )


def line_field(field: Field, value: Value, title: str) -> str:
    """Return a field for a short text."""
    return (
        f'<label><span>{html.escape(title)}</span><input type="text" name="{field.name}" autocomplete="off" '
        f'value="{html.escape(str(value))}" data-default="{field.default}"></label>'
    )


def form(path: str, controls: Iterable[str], button: str) -> str:
    """Return a form whose fields are in the link of the page."""
    return (
        f'<form action="{path}" method="get" data-live>{"".join(controls)}'
        f'<p class="send"><button>{html.escape(button)}</button> '
        '<output class="state" role="status"></output></p></form>'
    )


def row(*controls: str) -> str:
    """Return controls that are side by side where there is room."""
    return f'<div class="controls">{"".join(controls)}</div>'


def facts(pairs: Iterable[tuple[str, Any, str]]) -> str:
    """Return numbers with their names and explanations."""
    items = "".join(
        f"<div><dt>{html.escape(name)}</dt>"
        f"<dd><b>{html.escape(str(value))}</b> <small>{why}</small></dd></div>"
        for name, value, why in pairs
    )
    return f'<dl class="facts">{items}</dl>'


def link(topic: str, fields: Mapping[str, Value]) -> str:
    """Return the link of a page, without the fields that have their default, escaped for HTML."""
    known = TOPICS[topic]
    defaults = {field.name: field.default for field in known.fields}
    changed = {name: value for name, value in fields.items() if value != defaults[name]}
    return html.escape(f"{known.page}?{urlencode(changed)}")
