"""``duplicates_report``: report groups of near-duplicates in any format."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from treedot.clones.blocks import DuplicateBlocks
from treedot.clones.groups import DuplicateGroup
from treedot.clones.places import PLACE
from treedot.clones.report.code_hosts import github_report, gitlab_report
from treedot.clones.report.contents import About, Report
from treedot.clones.report.findings import Sources, findings
from treedot.clones.report.html import html_report
from treedot.clones.report.json_sarif import json_report, sarif_report
from treedot.clones.report.overview import Span, overview
from treedot.clones.report.text import markdown_report, text_report
from treedot.parameters import REPORT_FORMATS, checked_choice
from treedot.trees import Forest

_WRITERS: dict[str, Callable[[Report], str]] = {
    "text": text_report,
    "json": json_report,
    "sarif": sarif_report,
    "html": html_report,
    "markdown": markdown_report,
    "gitlab": gitlab_report,
    "github": github_report,
}


def duplicates_report(
    forest: Forest,
    groups: Iterable[DuplicateGroup],
    format: str,
    *,
    sources: Sources,
    blocks: DuplicateBlocks | None = None,
    title: str = "Near-duplicates",
    top: int | None = None,
    about: About | None = None,
    coloured: bool = False,
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
        page with the sources side by side; ``"markdown"``, for comments on pull requests; ``"gitlab"``, for
        GitLab Code Quality; or ``"github"``, for annotations by GitHub Actions.
    sources : callable
        Returns the lines of a file, given its name in the column ``file``; an empty list if it is unreadable.
    blocks : DuplicateBlocks, default=None
        The similar blocks that ``find_duplicate_blocks`` returned, which follow the groups.
    title : str, default="Near-duplicates"
        The title of the page or the comment.
    top : int, default=None
        Show only the first groups, and the first of blocks; the extent of all is in the page and in JSON.
    about : About, default=None
        The run that found the groups, which the page and JSON describe.
    coloured : bool, default=False
        Whether text has colours, for a terminal.

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
    1. similar, similarity 0.33, 2 copies, 8 nodes, score 2: the same text
      a.py:1-2 area
      b.py:7-8 size
    """
    write = _WRITERS[checked_choice("format", format, REPORT_FORMATS)]
    groups = list(groups)
    found = findings(forest, groups[:top], sources)
    spans = _spans(forest, groups)
    if blocks is not None:
        shown = blocks.groups[:top]
        found += findings(blocks.trees, shown, sources, len(found) + 1, are_blocks=True)
        spans += _spans(blocks.trees, blocks.groups)
    extent = overview(spans, {} if about is None else about.lines, len(spans) - len(groups))
    return write(Report(title, found, extent, about, coloured))


def _spans(forest: Forest, groups: Iterable[DuplicateGroup]) -> list[list[Span]]:
    """Return the places of the members of groups."""
    if not groups:  # a forest without trees may lack the columns
        return []
    files, starts, ends = (forest.columns[name] for name in PLACE)
    return [[(files[i], int(starts[i]), int(ends[i])) for i in group.members] for group in groups]
