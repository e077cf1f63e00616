"""The third section of the tour: near-duplicate functions of Python's standard library."""

from __future__ import annotations

from pathlib import Path

import treedot as td
from treedot._runtime.timing import timed
from treedot.cli.tour.section import Section, code, measured, paragraph
from treedot.clones.duplicates import MIN_NODES
from treedot.clones.report.findings import Finding, findings
from treedot.clones.report.html import group_list
from treedot.readers.code.source_files import source_lines

OPENED = 3  # groups that are open on the page, and printed
LISTED = 30  # groups on the page
WARM = 50  # functions: enough to compile everything, or to load it


def duplicates_section(root: Path, functions: td.Forest, read_seconds: float) -> Section:
    """Make the section; ``functions`` were read from ``root`` in some seconds."""
    td.find_duplicates(functions[:WARM])
    groups, seconds = timed(lambda: td.find_duplicates(functions, n_jobs=-1))
    found = findings(functions, groups[:LISTED], lambda file: source_lines(str(root / file), "python"))
    times = f"read in {read_seconds:.1f} s and compared in {seconds:.1f} s"
    members = sum(len(group.members) for group in groups)
    counts = (
        f"{len(functions):,} functions of at least {MIN_NODES} nodes: {members:,} are in {len(groups):,} "
        "groups of near-duplicates"
    )
    body = paragraph(
        f"{code('treedot dups FOLDER')} finds functions that were copied, renamed or edited. Names, numbers, "
        "strings, comments and layout do not count."
    ) + paragraph(f"This run compared {counts}, {measured(times)}.", _list_words(len(found)))
    if found:
        body += group_list(found, OPENED)
    said = [f"  {counts}, {times}", *(f"  {_line(finding)}" for finding in found[:OPENED])]
    return Section("duplicates", "Near-duplicates in Python's standard library", body, said)


def _list_words(listed: int) -> str:
    if not listed:
        return ""
    opened = min(OPENED, listed)
    return (
        f"Here are the {listed} groups with the most to save, {opened} of them open, side by side. Words "
        f"that differ and lines that only one function has are marked. {code('-o report.html')} writes such "
        "a list of all groups."
    )


def _line(finding: Finding) -> str:
    first, other = finding.members[0], finding.members[finding.other]
    return f"{finding.rank}. {finding.title}: {first.place} and {other.place}, {finding.group.band}"
