"""Report near-duplicates to programs: as JSON, or as SARIF 2.1.0 for code hosts and editors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import treedot
from treedot._pages.printable import printable
from treedot.clones.report.findings import Finding, Member

JSON_FORMAT = "treedot duplicates"
JSON_VERSION = 1
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

BANDS = {
    "identical": "Identical code",
    "renamed": "Identical code, except for names and literals",
    "near": "Near-duplicate code: at least 80 % of the constructs occur in both copies",
    "similar": "Similar code: most constructs occur in both copies",
}


def json_report(title: str, found: Sequence[Finding]) -> str:
    """Return the groups as JSON; ``docs/reports.md`` describes every field."""
    report = {
        "format": JSON_FORMAT,
        "version": JSON_VERSION,
        "title": title,
        "groups": [_group(finding) for finding in found],
    }
    return json.dumps(report, indent=1) + "\n"


def _group(finding: Finding) -> dict[str, Any]:
    members = [
        {key: getattr(member, key) for key in ("file", "start", "end", "name", "language")}
        for member in finding.members
    ]
    return {"rank": finding.rank, **figures(finding), "difference": _difference(finding), "members": members}


def figures(finding: Finding) -> dict[str, Any]:
    """Return the figures of a group, rounded, since the last digits of logarithms differ between machines."""
    group = finding.group
    return {
        "band": group.band,
        "score": round(group.score, 3),
        "similarity": round(group.similarity, 6),
        "agreement": None if group.agreement is None else round(group.agreement, 6),
        "bits": round(group.bits, 3),
        "nodes": group.nodes,
        "shape_only": group.is_shape_only,
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


def sarif_report(title: str, found: Sequence[Finding]) -> str:
    """Return the groups as SARIF 2.1.0: one result per group, at its first member; the others are related."""
    rules = [{"id": f"duplicate-{band}", "shortDescription": {"text": text}} for band, text in BANDS.items()]
    driver = {"name": "treedot", "version": treedot.__version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"description": {"text": title}},
        "results": [_result(finding) for finding in found],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(finding: Finding) -> dict[str, Any]:
    first, *others = finding.members
    places = ", ".join(f"[{_bracketed(member.place)}]({k})" for k, member in enumerate(others, 1))
    differs = f" {finding.difference}." if finding.difference else ""
    name = printable(first.name or first.file)
    return {
        "ruleId": f"duplicate-{finding.group.band}",
        "ruleIndex": list(BANDS).index(finding.group.band),
        "level": "warning",
        "message": {"text": f"{_bracketed(name)} is also at {places}.{differs}"},
        "locations": [_location(first)],
        "relatedLocations": [
            {"id": k, **_location(member), "message": {"text": printable(member.name or member.file)}}
            for k, member in enumerate(others, 1)
        ],
        "properties": figures(finding),
    }


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
