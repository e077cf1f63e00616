"""Report near-duplicates as one HTML page that filters and sorts groups and shows sources side by side.

The groups travel as JSON inside the page. The scripts beside this module list them, and align and mark two
sources when a group is opened, so that thousands of groups stay quick. Equal sources are stored once, and
only up to a limit. Another page can hold the same list: ``group_list`` is the list, and ``report_style`` its
style.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from treedot._pages.page import page
from treedot._pages.printable import printable
from treedot.clones.report.contents import Report
from treedot.clones.report.findings import MAX_LINES, Also, Finding, Member, rounded_down
from treedot.clones.report.json_sarif import figures
from treedot.clones.report.opening import opening
from treedot.clones.report.text import count_of

_INTRODUCTION = """
<details class="meanings"><summary>What the words mean</summary><dl>
<dt>similarity</dt><dd>The share of the constructs of two members that occur in both, for the two least
similar members. A construct is a node of the syntax tree with its children, without names and literals.</dd>
<dt>identical</dt><dd>All members are the same.</dd>
<dt>renamed</dt><dd>The members are the same, except for names and literals.</dd>
<dt>near, similar</dt><dd>The similarity is at least 0.8, or lower.</dd>
<dt>new</dt><dd>The member is new or changed, by the commit or the baseline that the command was
given.</dd>
<dt>shape only</dt><dd>The shared constructs are common, and names and literals differ: often not worth a
change.</dd>
<dt>block</dt><dd>The members are statements inside of different functions, classes or scripts; the names
are those of the functions around them.</dd>
<dt>score</dt><dd>How much there is to save: it grows with the size, the rarity of the shared constructs
and the similarity, averaged over all pairs of members. It falls with the number of copies, which take longer
to read.</dd>
</dl></details>
"""

_CONTROLS = """
<form class="bar" role="search" aria-label="Groups">
<div class="controls">
<label class="grow">File or name <input type="search" name="text" autocomplete="off"></label>
<label class="grow">Not <input type="search" name="not" autocomplete="off" placeholder="e.g. test"></label>
<span class="steps"><button type="button" name="previous" title="Previous group (key k or p)">↑
<span>previous</span></button><button type="button" name="next" title="Next group (key j or n)">↓
<span>next</span></button></span>
<output name="count"></output>
</div>
<details><summary>More filters and order</summary><div class="controls">
<label>Kind <select name="kind"><option value="">all</option><option value="whole">whole units</option>
<option value="block">blocks</option></select></label>
<label>Tests <select name="tests"><option value="">all</option><option value="no">not in tests</option>
<option value="yes">in tests</option></select></label>
<label>Band <select name="band"><option value="">all</option></select></label>
<label>Language <select name="language"><option value="">all</option></select></label>
<label class="grow">Folder <input type="search" name="folder" autocomplete="off" list="folders"></label>
<datalist id="folders"></datalist>
<label>Lowest score <input type="number" name="score" min="0" step="any" value="0"></label>
<label>Order <select name="order">
<option value="rank">as ranked</option><option value="score">score</option>
<option value="similarity">similarity</option><option value="nodes">size</option>
<option value="copies">copies</option><option value="file">file</option>
</select></label>
EDITOR</div></details>
</form>
<p class="keys">Keys: <kbd>j</kbd> or <kbd>n</kbd> opens the next group,
<kbd>k</kbd> or <kbd>p</kbd> the previous one, <kbd>/</kbd> searches, <kbd>Esc</kbd> leaves a field.</p>
<noscript><p>A script inside this page shows the groups: allow it, or make the report as text.</p></noscript>
<div id="groups"></div>
<button type="button" id="more" hidden>Show more</button>
"""


_EDITOR = """<label>Open files in <select name="editor"><option value="">no editor</option></select></label>
<label class="grow">Folder of the sources <input type="text" name="root" autocomplete="off"></label>
"""
MAX_CHARACTERS = 20_000_000  # of all sources on a page: browsers open such a page within some seconds


def html_report(report: Report) -> str:
    """Return a self-contained page that makes no requests."""
    title = printable(f"{report.title} in {report.about.project}" if report.about else report.title)
    root = "" if report.about is None else report.about.root
    groups = group_list(report.found, root=root) if report.found else ""
    return page(title, opening(report) + groups, report_style())


def report_style() -> str:
    """Return the style of a page with a list of groups."""
    return _resource("page.css") + _resource("comparison.css")


def group_list(found: Sequence[Finding], opened: int = 0, root: str = "") -> str:
    """Return the part of a page that lists groups, the first ``opened`` of them open.

    ``root`` is the folder that the names of files start from, for links to an editor.
    """
    texts = _Texts()
    items = [_item(finding, texts) for finding in found]
    for item in items[:opened]:
        item["open"] = True
    # Inside a script, "<" could begin its end; as an escape it means the same.
    content = {"groups": items, "texts": list(texts.numbers), "root": root}
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    controls = _CONTROLS.replace("EDITOR", _EDITOR if root else "")
    return (
        f'{_INTRODUCTION}{_note(items)}{controls}<script type="application/json" id="data">{data}</script>\n'
        f"<script>\n{_resource('comparison.js')}{_resource('page.js')}</script>"
    )


class _Texts:
    """The distinct sources on a page, each with its number, up to the limit of characters."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, ...], int] = {}
        self._left = MAX_CHARACTERS

    def add(self, member: Member) -> int | None:
        """Return the number of the source of a member; None if it does not fit any more."""
        cut = member.end - member.start + 1 - MAX_LINES
        more = (f"… {cut} more lines",) if cut > 0 else ()
        lines = (*map(printable, member.lines), *more)
        if lines not in self.numbers:
            self._left -= sum(map(len, lines))
            if self._left < 0:
                return None
            self.numbers[lines] = len(self.numbers)
        return self.numbers[lines]


def _note(items: Sequence[dict[str, Any]]) -> str:
    """Return a sentence about groups whose sources are not in the page, if there are any."""
    whole = sum(all(member["text"] is not None for member in item["members"]) for item in items)
    if whole == len(items):
        return ""
    return (
        f"<p><b>The page holds the sources of {whole:,} of {count_of(len(items), 'group')}, as many as "
        f"fit into {MAX_CHARACTERS // 1_000_000} million characters.</b> Of the other groups it lists the "
        "places. To compare those side by side, search fewer folders, or raise the threshold.</p>"
    )


def _item(finding: Finding, texts: _Texts) -> dict[str, Any]:
    members = [_copy(member, texts) for member in finding.members]
    if any(member["text"] is None for member in members):
        for member in members:
            member["text"] = None
    return {
        "rank": finding.rank,
        "title": finding.title,
        "facts": finding.facts,
        "difference": finding.changes,
        "language": finding.members[0].language,
        "other": finding.other,
        **{key: value for key, value in figures(finding).items() if key in _ORDERS},
        "kind": "block" if finding.is_block else "whole",
        "tests": finding.group.is_in_tests,
        "also": [_also(also) for also in finding.also],
        "members": members,
    }


_ORDERS = ("band", "score", "similarity", "nodes")  # fields that the page filters and sorts by


def _also(also: Also) -> dict[str, Any]:
    member = also.member
    return {"of": also.of, "similarity": rounded_down(also.similarity), **_place(member)}


def _place(member: Member) -> dict[str, Any]:
    return {
        "place": member.place,
        "file": printable(member.file),
        "name": printable(member.name),
        "start": member.start,
    }


def _copy(member: Member, texts: _Texts) -> dict[str, Any]:
    return {**_place(member), "new": member.is_new, "text": texts.add(member)}


def _resource(name: str) -> str:
    return files("treedot.clones.report").joinpath(name).read_text(encoding="utf-8")
