"""Report near-duplicates as one HTML page that filters and sorts groups and shows sources side by side.

The groups travel as JSON inside the page. The script beside this module lists them, and aligns and marks two
sources when a group is opened, so that thousands of groups stay quick. Another page can hold the same list:
``group_list`` is the list, and ``report_style`` its style.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from treedot._pages.page import page
from treedot._pages.printable import printable
from treedot.clones.report.findings import MAX_LINES, Finding, Member
from treedot.clones.report.json_sarif import figures
from treedot.clones.report.text import count_of

_INTRODUCTION = """
<details class="meanings"><summary>What the words mean</summary><dl>
<dt>similarity</dt><dd>The share of the constructs of two members that occur in both, for the two least
similar members. A construct is a node of the syntax tree with its children, without names and literals.</dd>
<dt>identical</dt><dd>All members are the same.</dd>
<dt>renamed</dt><dd>The members are the same, except for names and literals.</dd>
<dt>near, similar</dt><dd>The similarity is at least 0.8, or lower.</dd>
<dt>shape only</dt><dd>The shared constructs are common, and names and literals differ: often not worth a
change.</dd>
<dt>score</dt><dd>How much there is to save: the rarity of the shared constructs in bits, times the
similarity, times the square root of the number of copies beyond the first.</dd>
</dl></details>
"""

_CONTROLS = """
<form class="controls" role="search" aria-label="Groups">
<label class="grow">File or name <input type="search" name="text" autocomplete="off"></label>
<label>Band <select name="band"><option value="">all</option></select></label>
<label>Lowest score <input type="number" name="score" min="0" step="any" value="0"></label>
<label>Order <select name="order">
<option value="rank">as ranked</option><option value="score">score</option>
<option value="similarity">similarity</option><option value="nodes">size</option>
<option value="copies">copies</option><option value="file">file</option>
</select></label>
<output name="count"></output>
</form>
<noscript><p>A script inside this page shows the groups: allow it, or make the report as text.</p></noscript>
<div id="groups"></div>
<button type="button" id="more" hidden>Show more</button>
"""


def html_report(title: str, found: Sequence[Finding]) -> str:
    """Return a self-contained page that makes no requests."""
    members = sum(len(finding.members) for finding in found)
    body = f"<p>{count_of(len(found), 'group')} with {count_of(members, 'member')}.</p>"
    return page(printable(title), body + (group_list(found) if found else ""), report_style())


def report_style() -> str:
    """Return the style of a page with a list of groups."""
    return _resource("page.css")


def group_list(found: Sequence[Finding], opened: int = 0) -> str:
    """Return the part of a page that lists groups, the first ``opened`` of them open."""
    items = [_item(finding) for finding in found]
    for item in items[:opened]:
        item["open"] = True
    # Inside a script, "<" could begin its end; as an escape it means the same.
    data = json.dumps(items, separators=(",", ":")).replace("<", "\\u003c")
    script = f"<script>\n{_resource('page.js')}</script>"
    return f'{_INTRODUCTION}{_CONTROLS}<script type="application/json" id="data">{data}</script>\n{script}'


def _item(finding: Finding) -> dict[str, Any]:
    return {
        "rank": finding.rank,
        "title": finding.title,
        "facts": finding.facts,
        "difference": str(finding.difference or ""),
        "other": finding.other,
        **{key: value for key, value in figures(finding).items() if key in _ORDERS},
        "members": [_copy(member) for member in finding.members],
    }


_ORDERS = ("band", "score", "similarity", "nodes")  # fields that the page filters and sorts by


def _copy(member: Member) -> dict[str, Any]:
    cut = member.end - member.start + 1 - MAX_LINES
    return {
        "place": member.place,
        "name": printable(member.name),
        "start": member.start,
        "lines": [*member.lines, *([f"… {cut} more lines"] if cut > 0 else [])],
    }


def _resource(name: str) -> str:
    return files("treedot.clones.report").joinpath(name).read_text(encoding="utf-8")
