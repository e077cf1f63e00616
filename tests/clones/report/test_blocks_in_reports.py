"""Blocks in reports: they follow the groups, and every format says that they are blocks."""

import json
import re

import pytest

from treedot import Forest
from treedot.clones import DuplicateBlocks, find_duplicate_blocks
from treedot.clones.report import duplicates_report
from treedot.parameters import REPORT_FORMATS
from treedot.readers import CodeSettings, parse_code

BLOCK = [
    "    total = sum(price * count for price, count in items if count)",
    "    if total > limit:",
    "        raise ValueError(f'{total} exceeds {limit}')",
    "    log.info('total %d', total)",
]
SOURCES = {
    "a.py": ["def first(x):", *BLOCK, "    return {x: [y for y in x]}"],
    "b.py": ["def other(x):", "    while x > 1:", "        x = f(x, [x])", "    del y[x:2]", *BLOCK],
}


@pytest.fixture(scope="module")
def found() -> DuplicateBlocks:
    settings = CodeSettings("file", "blur", "blur", blurred=True, statements=True)
    files = [
        parse_code("\n".join(lines), "python", file=file, settings=settings)
        for file, lines in SOURCES.items()
    ]
    return find_duplicate_blocks(Forest.concat(files))


def report(format: str, found: DuplicateBlocks) -> str:
    return duplicates_report(Forest.concat([]), [], format, sources=SOURCES.__getitem__, blocks=found)


def test_text_has_a_heading_for_blocks(found):
    lines = report("text", found).splitlines()
    assert lines[0] == "Blocks in different functions, classes or scripts:"
    assert lines[2].startswith("1. block, identical, similarity 1.00, 2 copies, ")
    assert lines[2].endswith(": the same text")
    assert lines[3:] == ["  a.py:2-5", "  b.py:5-8"]


def test_json_has_a_list_of_its_own_for_blocks(found):
    content = json.loads(report("json", found))
    assert content["groups"] == []
    (block,) = content["blocks"]
    assert [(member["file"], member["start"], member["end"]) for member in block["members"]] == [
        ("a.py", 2, 5),
        ("b.py", 5, 8),
    ]
    assert content["extent"]["copied"] == 8
    assert (content["extent"]["groups"], content["extent"]["blocks"]) == (1, 1)


def test_sarif_has_a_rule_for_blocks_and_their_fingerprints_are_of_their_lines(found):
    (run,) = json.loads(report("sarif", found))["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "duplicate-block"
    assert result["message"]["text"] == "A block in a.py is also at [b.py:5-8](1). the same text."
    named = DuplicateBlocks(found.trees[:], found.groups)
    named.trees.columns["name"] = ["first", "other"]
    (again,) = json.loads(report("sarif", named))["runs"][0]["results"]
    assert again["message"]["text"].startswith("A block in first is also at")
    assert again["partialFingerprints"] == result["partialFingerprints"]


def test_a_page_filters_blocks(found):
    page = report("html", found)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert [group["kind"] for group in data["groups"]] == ["block"]
    assert "<b>1</b> group, 1 of them of blocks, with 2 members</li>" in page


def test_markdown_has_a_heading_and_gitlab_a_name_for_blocks(found):
    assert "#### Blocks in different functions, classes or scripts\n\n**1.** block" in report(
        "markdown", found
    )
    assert [issue["check_name"] for issue in json.loads(report("gitlab", found))] == ["duplicate-block"]


@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_top_limits_blocks_too(found, format):
    twice = DuplicateBlocks(found.trees, found.groups * 2)
    settings = {"sources": SOURCES.__getitem__, "top": 1}
    nothing = Forest.concat([])
    assert duplicates_report(nothing, [], format, blocks=twice, **settings).count("b.py") == report(
        format, found
    ).count("b.py")
