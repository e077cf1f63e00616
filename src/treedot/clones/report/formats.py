"""``duplicates_report``: report groups of near-duplicates in any format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from treedot.clones.groups import DuplicateGroup
from treedot.clones.report.findings import Finding, Sources, findings
from treedot.clones.report.html import html_report
from treedot.clones.report.json_sarif import json_report, sarif_report
from treedot.clones.report.text import markdown_report, text_report
from treedot.parameters import REPORT_FORMATS, checked_choice
from treedot.trees import Forest

_WRITERS: dict[str, Callable[[str, Sequence[Finding]], str]] = {
    "text": text_report,
    "json": json_report,
    "sarif": sarif_report,
    "html": html_report,
    "markdown": markdown_report,
}


def duplicates_report(
    forest: Forest,
    groups: Iterable[DuplicateGroup],
    format: str,
    *,
    sources: Sources,
    title: str = "Near-duplicates",
) -> str:
    """Return a report of groups of near-duplicates, in the order in which they are given.

    Parameters
    ----------
    forest : Forest
        The trees, with the columns ``file``, ``start`` and ``end`` (the first and the last line, from 1),
        and optionally ``name`` and ``language``.
    groups : iterable of DuplicateGroup
        The groups that ``find_duplicates`` returned for these trees.
    format : str
        ``"text"``, one line per member; ``"json"``; ``"sarif"``, for code hosts and editors; ``"html"``, a
        page with the sources side by side; or ``"markdown"``, for comments on pull requests.
    sources : callable
        Returns the lines of a file, given its name in the column ``file``; an empty list if it is unreadable.
    title : str, default="Near-duplicates"
        The title of the page or the comment.

    Returns
    -------
    str
        The report.

    Examples
    --------
    >>> from treedot import find_duplicates, read_trees
    >>> forest = read_trees(["(f (a x y) (b z) (c z))", "(f (a x y) (b z) (d z))"])
    >>> forest.columns.update(file=["a.py", "b.py"], start=[1, 7], end=[2, 8], name=["area", "size"])
    >>> lines = ["def area(x, y):", "    return x * y"]
    >>> groups = find_duplicates(forest, min_nodes=5, threshold=0.2)
    >>> sources = {"a.py": lines, "b.py": [""] * 6 + lines}
    >>> print(duplicates_report(forest, groups, "text", sources=sources.__getitem__), end="")
    1. similar, similarity 0.33, 2 copies, 8 nodes, score 4: the same text
      a.py:1-2 area
      b.py:7-8 size
    """
    write = _WRITERS[checked_choice("format", format, REPORT_FORMATS)]
    return write(title, findings(forest, groups, sources))
