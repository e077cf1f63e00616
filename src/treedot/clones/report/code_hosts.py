"""Report near-duplicates to code hosts that do not read SARIF: GitLab Code Quality, GitHub annotations."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from treedot._pages.printable import printable
from treedot.clones.report.alerts import alert_text, fingerprints, related
from treedot.clones.report.contents import Report
from treedot.clones.report.findings import Finding, Member
from treedot.clones.report.text import count_of, text_report

SEVERITIES = {"identical": "major", "renamed": "major", "near": "minor", "similar": "info"}  # by band
ANNOTATIONS = 10  # GitHub shows as many warnings of a step


def gitlab_report(report: Report) -> str:
    """Return the groups as GitLab Code Quality, a list of issues: one per group, at its first member."""
    marks = fingerprints(report.found)
    issues = [_issue(finding, mark) for finding, mark in zip(report.found, marks, strict=True)]
    return json.dumps(issues, indent=1) + "\n"


def _issue(finding: Finding, mark: str) -> dict[str, Any]:
    return {
        "type": "issue",
        "check_name": f"duplicate-{finding.rule}",
        "description": alert_text(finding),
        "categories": ["Duplication"],
        "severity": SEVERITIES[finding.group.band],
        "fingerprint": mark,
        "location": _location(finding.members[0]),
        "other_locations": [_location(member) for member in related(finding)],
    }


def _location(member: Member) -> dict[str, Any]:
    return {"path": member.file, "lines": {"begin": member.start, "end": member.end}}


def github_report(report: Report) -> str:
    """Return the groups as commands of GitHub Actions that annotate the first member of each.

    GitHub shows ten annotations of a step; the other groups follow as text, folded.
    """
    lines = [_annotation(finding) for finding in report.found[:ANNOTATIONS]]
    rest = report.found[ANNOTATIONS:]
    if rest:
        lines += [f"::group::{count_of(len(rest), 'more group')}", _rest(report), "::endgroup::"]
    return "".join(f"{line}\n" for line in lines) or text_report(report)


def _annotation(finding: Finding) -> str:
    first = finding.members[0]
    properties = {
        "file": printable(first.file),
        "line": str(first.start),
        "endLine": str(first.end),
        "title": f"{finding.group.band} code in {count_of(len(finding.members), 'place')}",
    }
    given = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::warning {given}::{_escaped(alert_text(finding))}"


def _rest(report: Report) -> str:
    """Return the groups without annotations as text; a bar before each line keeps it from being a command."""
    text = text_report(replace(report, found=report.found[ANNOTATIONS:])).rstrip("\n")
    return "\n".join(f"| {line}".rstrip() for line in text.replace("##[", "## [").split("\n"))


def _escaped(text: str, more: str = "") -> str:
    """Escape the characters that end a message of GitHub Actions, or, with ``more``, a property."""
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" + more else c for c in text)
