"""Report near-duplicates to programs: as JSON, or as SARIF 2.1.0 for code hosts and editors."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import treedot
from treedot._pages.printable import printable
from treedot.clones.report.alerts import alert_text, fingerprints, related
from treedot.clones.report.contents import About, Report
from treedot.clones.report.findings import Finding, Member
from treedot.clones.report.overview import Overview

JSON_FORMAT = "treedot duplicates"
JSON_VERSION = 1
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

BANDS = {
    "identical": "Identical code",
    "renamed": "Identical code, except for names and literals",
    "near": "Near-duplicate code: at least 80 % of the constructs occur in both copies",
    "similar": "Similar code: most constructs occur in both copies",
}
RULES = BANDS | {"block": "A block of statements that is copied into different functions, classes or scripts"}
HELP = (
    "The alert is at one copy, and its message links to the others. In a report of new near-duplicates, the "
    "alert is at a copy that is new or changed.",
    "Compare the copies side by side (treedot dups -o report.html). If they do the same, keep one, make the "
    "differences its parameters, and call it from the other places. If you edited one, the others may need "
    "the same edit.",
    "If they should stay apart, put a comment 'treedot: ignore' directly above the copy, or record all known "
    "near-duplicates with treedot dups --write-baseline FILE.",
)
FINGERPRINT = "treedotCopy/v1"
RELATED = 1000  # related locations of a result: hosts refuse more


def json_report(report: Report) -> str:
    """Return the groups as JSON; ``docs/reports.md`` describes every field."""
    marked = list(zip(report.found, fingerprints(report.found), strict=True))
    content = {
        "format": JSON_FORMAT,
        "version": JSON_VERSION,
        "title": report.title,
        "about": _about(report.about),
        "groups": [_group(finding, mark) for finding, mark in marked if not finding.is_block],
        "blocks": [_group(finding, mark) for finding, mark in marked if finding.is_block],
        "extent": _extent(report.overview),
    }
    return json.dumps(content, indent=1) + "\n"


def _about(about: About | None) -> dict[str, Any] | None:
    """Return the run without its date and the folder, so that the same code gives the same bytes."""
    if about is None:
        return None
    return {
        "project": about.project,
        "paths": list(about.paths),
        "treedot": treedot.__version__,
        "settings": dict(about.settings),
        "compared": about.units,
        "left_out": dict(sorted(about.left_out.items())),
    }


def _extent(found: Overview) -> dict[str, Any]:
    """Return how much is copied, and where."""
    files = [{"file": file.file, "copied": file.copied, "lines": file.lines or None} for file in found.files]
    return {
        "groups": found.groups,
        "blocks": found.blocks,
        "members": found.members,
        "copied": found.copied,
        "lines": found.lines or None,
        "files": files,
    }


def _group(finding: Finding, mark: str) -> dict[str, Any]:
    members = [_described(member) | {"new": member.is_new} for member in finding.members]
    also = [
        {"of": also.of, "similarity": round(also.similarity, 6), **_described(also.member)}
        for also in finding.also
    ]
    return {
        "rank": finding.rank,
        **figures(finding),
        "fingerprint": mark,
        "difference": _difference(finding),
        "members": members,
        "also": also,
    }


def _described(member: Member) -> dict[str, Any]:
    return {key: getattr(member, key) for key in ("file", "start", "end", "name", "language")}


def figures(finding: Finding) -> dict[str, Any]:
    """Return the figures of a group, rounded, since the last digits of logarithms differ between machines."""
    group = finding.group
    return {
        "band": group.band,
        "score": round(group.score, 3),
        "similarity": round(group.similarity, 6),
        "mean_similarity": round(group.mean_similarity, 6),
        "agreement": None if group.agreement is None else round(group.agreement, 6),
        "bits": round(group.bits, 3),
        "nodes": group.nodes,
        "shape_only": group.is_shape_only,
        "in_tests": group.is_in_tests,
    }


def _difference(finding: Finding) -> dict[str, Any] | None:
    found = finding.difference
    if found is None:
        return None
    return {
        "between": [0, finding.other],
        "lines": found.lines,
        "different": found.different,
        "renamed": [list(pair) for pair in found.renamed],
    }


def sarif_report(report: Report) -> str:
    """Return the groups as SARIF 2.1.0: one result per group, at its first member; the others are related.

    New members come first, so that the alert is at a line that a change has touched.
    """
    rules = [_rule(name, text) for name, text in RULES.items()]
    driver = {"name": "treedot", "version": treedot.__version__, "rules": rules}
    marks = fingerprints(report.found)
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"description": {"text": report.title}},
        "results": [_result(finding, mark) for finding, mark in zip(report.found, marks, strict=True)],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(name: str, text: str) -> dict[str, Any]:
    return {
        "id": f"duplicate-{name}",
        "shortDescription": {"text": text},
        "fullDescription": {"text": f"{text}."},
        "help": {"text": "\n\n".join((f"{text}.", *HELP))},
        "defaultConfiguration": {"level": "warning"},
    }


def _result(finding: Finding, mark: str) -> dict[str, Any]:
    """Return the result of a group, with its fingerprint."""
    return {
        "ruleId": f"duplicate-{finding.rule}",
        "ruleIndex": list(RULES).index(finding.rule),
        "level": "warning",
        "message": {"text": alert_text(finding, _bracketed, _link)},
        "locations": [_location(finding.members[0])],
        "relatedLocations": [
            {"id": k, **_location(member), "message": {"text": printable(member.name or member.file)}}
            for k, member in enumerate(related(finding)[:RELATED], 1)
        ],
        "partialFingerprints": {FINGERPRINT: mark},
        "properties": figures(finding),
    }


def _link(place: str, k: int) -> str:
    """Return a link to the k-th related location, if there is one."""
    return f"[{place}]({k})" if k <= RELATED else place


def _bracketed(text: str) -> str:
    """Escape brackets, which begin a link in SARIF as in Markdown."""
    return "".join(f"\\{c}" if c in "\\[]" else c for c in text)


def _location(member: Member) -> dict[str, Any]:
    region = {"startLine": member.start, "endLine": member.end}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(member.file)}, "region": region}}


def _uri(file: str) -> str:
    """Return the URI of a file: relative for a relative path, otherwise with ``file://``."""
    if PurePath(file).is_absolute():
        return "file://" + quote(file.encode(errors="surrogateescape"))
    # Text before a colon would be taken for a scheme, such as http.
    return quote(file.encode(errors="surrogateescape")).replace(":", "%3A")
