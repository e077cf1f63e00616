"""Self-contained HTML pages: text, tables and figures in one file."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from treedot.errors import missing

ONE_LINE = 40  # characters of a cell that stays on one line

# The documentation has these colours, too.
COLOURS = {
    "text": "#222", "heading": "#123", "quiet": "#567", "line": "#ddd", "soft": "#f6f8fa", "back": "#fff",
    "mark": "#ffe08a", "only": "#fff3cd", "accent": "#1f5f8b", "good": "#2a7d2a", "bad": "#b03020",
}  # fmt: skip
DARK_COLOURS = {
    "text": "#ddd", "heading": "#eee", "quiet": "#9ab", "line": "#3a4048", "soft": "#1c2026",
    "back": "#14171a", "mark": "#725a00", "only": "#3a3310", "accent": "#6ab0e0", "good": "#7dc87d",
    "bad": "#f08070",
}  # fmt: skip


def _variables(colours: Mapping[str, str]) -> str:
    return ":root { " + "; ".join(f"--{name}: {colour}" for name, colour in colours.items()) + " }"


STYLE = """
:root { color-scheme: light dark }
LIGHT
@media (prefers-color-scheme: dark) {
DARK
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back) }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word }
h1, h2 { line-height: 1.2; color: var(--heading) } h2 { margin-top: 2.5rem }
h3 { font-size: 0.85rem; font-weight: 600; margin: 0.5rem 0; overflow-wrap: anywhere }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; font-size: 0.9rem }
th, td { padding: 0.3rem 0.8rem; text-align: left; border-bottom: 1px solid var(--line) }
td { white-space: nowrap } td.text { white-space: normal; min-width: 14rem }
th { border-bottom: 2px solid var(--quiet); font-weight: 600 }
pre { font-size: 0.75rem; line-height: 1.4; background: var(--soft); padding: 0.6rem; margin: 0 }
pre { overflow-x: auto }
mark { color: inherit; background: var(--mark) }
a { color: var(--accent) }
details { border-top: 1px solid var(--line); padding: 0.5rem 0 }
summary { cursor: pointer; overflow-wrap: anywhere }
.beside { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)) }
.beside > * { min-width: 0 }
.panels { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)) }
.wide { overflow-x: auto }
.says { font-size: 1.1rem; border-left: 4px solid var(--accent); padding-left: 0.8rem }
.agrees { color: var(--good); font-weight: bold } .differs { color: var(--bad); font-weight: bold }
figure { margin: 1rem 0 } img { max-width: 100% } figcaption { color: var(--quiet); font-size: 0.9rem }
""".replace("LIGHT", _variables(COLOURS)).replace("DARK", _variables(DARK_COLOURS))


def page(title: str, body: str, style: str = "") -> str:
    """Return a complete page; ``style`` adds to the common style."""
    return frame(title, f"<style>{STYLE}{style}</style>", f"<h1>{html.escape(title)}</h1>\n{body}")


def frame(title: str, head: str, body: str) -> str:
    """Return a complete page from HTML that goes into its head, such as its style, and its body."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>{head}</head>
<body>{body}
</body></html>
"""


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; cells contain HTML. Short cells stay on one line on any screen."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    lines = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    body = f"<table><thead><tr>{head}</tr></thead><tbody>\n{lines}\n</tbody></table>"
    return f'<div class="wide">{body}</div>'


def _cell(content: object) -> str:
    is_text = len(re.sub("<[^>]*>", "", str(content))) > ONE_LINE
    return f'<td class="text">{content}</td>' if is_text else f"<td>{content}</td>"


def require_plots(purpose: str) -> None:
    """Raise if matplotlib is not installed; call this before long work that ends in a plot."""
    if find_spec("matplotlib") is None:
        raise missing("matplotlib", "plots", purpose)


def figure(caption: str, *panels: Any) -> str:
    """Return matplotlib figures as HTML: side by side, or stacked on narrow screens."""
    text = html.escape(caption)
    pictures = "".join(f'<img alt="{text}" src="data:image/png;base64,{_png(panel)}">' for panel in panels)
    shown = f'<div class="panels">{pictures}</div>' if len(panels) > 1 else pictures
    return f"<figure>{shown}<figcaption>{text}</figcaption></figure>"


def _png(drawing: Any) -> str:
    buffer = io.BytesIO()
    drawing.savefig(buffer, format="png", dpi=130)
    return base64.b64encode(buffer.getvalue()).decode()
