"""A section of the tour: its HTML, and the lines that the command prints."""

from __future__ import annotations

import html
from typing import NamedTuple

MEASURED, END = "<!-- measured -->", "<!-- end -->"


class Section(NamedTuple):
    """One section; ``body`` is HTML, ``said`` the result for the terminal."""

    name: str  # of the link to it
    title: str
    body: str
    said: list[str]


def paragraph(*sentences: str) -> str:
    """Return sentences as a paragraph; they are HTML already."""
    return f"<p>{' '.join(sentences)}</p>\n"


def step(title: str) -> str:
    """Return the heading of a part of a section."""
    return f'<h3 class="step">{title}</h3>\n'


def picture(content: str, *sentences: str) -> str:
    """Return a figure: HTML of a picture, and the sentences that say what to see in it."""
    return f"<figure>{content}<figcaption>{' '.join(sentences)}</figcaption></figure>\n"


def beside(*panels: tuple[str, str]) -> str:
    """Return pictures with their titles side by side, or one below the other on narrow screens."""
    drawn = "".join(f"<div><h3>{title}</h3>{content}</div>" for title, content in panels)
    return f'<div class="beside">{drawn}</div>'


def code(text: str) -> str:
    """Return text as inline code."""
    return f"<code>{html.escape(text)}</code>"


def measured(content: str) -> str:
    """Mark HTML that depends on measured times: two runs differ only between such marks."""
    return f"{MEASURED}{content}{END}"
