"""Reports of one set of groups in every format: what stands in them, and that odd names do no harm."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from strategies import random_forest
from treedot import Forest, Tree, find_duplicates
from treedot.clones.report import duplicates_report
from treedot.clones.report.findings import MAX_LINES, MAX_WIDTH
from treedot.clones.report.text import COMMENT_SIZE
from treedot.errors import ParameterError
from treedot.parameters import REPORT_FORMATS

BODY = ["    total = 0", "    for item in items:", "        total += item", "    return total"]
SOURCES = {
    "a.py": ["import os", "", "def count(items):", *BODY],
    "lib/b.py": ["class Sum:", "  def of(items):", *("  " + line for line in BODY)],
    "lib/c d.py": ["def count(numbers):", *(line.replace("items", "numbers") for line in BODY)],
}


def duplicates() -> Forest:
    """Return three copies, one of them renamed, and a tree that is like none."""
    tree, other = random_forest(3, 2, 80)
    forest = Forest.from_trees([tree, tree, other, tree])
    forest.columns.update(
        file=["a.py", "lib/b.py", "a.py", "lib/c d.py"],
        start=[3, 2, 1, 1],
        end=[7, 6, 1, 5],
        name=["count", "Sum.of", "", "count"],
        language=["python"] * 4,
        blurred=[np.array([1, 2]), np.array([1, 2]), np.array([3]), np.array([1, 4])],
    )
    return forest


def report(format: str, forest: Forest | None = None, sources=SOURCES, **settings) -> str:
    forest = duplicates() if forest is None else forest
    return duplicates_report(forest, find_duplicates(forest), format, sources=sources.__getitem__, **settings)


def page_data(page: str) -> list[dict]:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_text_has_a_line_for_the_group_and_one_for_every_member():
    group = find_duplicates(duplicates())[0]
    assert report("text").splitlines() == [
        f"1. renamed, similarity 1.00, 3 copies, {group.nodes} nodes, score {group.score:.0f}: "
        "2 of 5 lines differ; 1 name renamed (items -> numbers)",
        "  a.py:3-7 count",
        "  lib/b.py:2-6 Sum.of",
        "  lib/c d.py:1-5 count",
    ]


def test_json_says_its_version_and_all_that_is_known():
    group = find_duplicates(duplicates())[0]
    found = json.loads(report("json", title="Mine"))
    assert (found["format"], found["version"], found["title"]) == ("treedot duplicates", 1, "Mine")
    assert found["groups"] == [
        {
            "rank": 1,
            "band": "renamed",
            "score": round(group.score, 3),
            "similarity": 1.0,
            "agreement": round(group.agreement, 6),
            "bits": round(group.bits, 3),
            "nodes": group.nodes,
            "shape_only": False,
            "difference": {"between": [0, 2], "lines": 5, "different": 2, "renamed": [["items", "numbers"]]},
            "members": [
                {"file": "a.py", "start": 3, "end": 7, "name": "count", "language": "python"},
                {"file": "lib/b.py", "start": 2, "end": 6, "name": "Sum.of", "language": "python"},
                {"file": "lib/c d.py", "start": 1, "end": 5, "name": "count", "language": "python"},
            ],
        }
    ]


def test_sarif_has_what_its_schema_requires_and_one_result_per_group():
    log = json.loads(report("sarif"))
    assert log["version"] == "2.1.0"  # required of a log, with its runs
    (run,) = log["runs"]
    driver = run["tool"]["driver"]  # required of a run, of a tool
    assert driver["name"] == "treedot"  # required of a component
    assert len({rule["id"] for rule in driver["rules"]}) == 4  # required of a rule
    (result,) = run["results"]
    assert result["message"]["text"] == (  # required of a result
        "count is also at [lib/b.py:2-6](1), [lib/c d.py:1-5](2). "
        "2 of 5 lines differ; 1 name renamed (items -> numbers)."
    )
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "duplicate-renamed"
    (place,) = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "a.py"},
        "region": {"startLine": 3, "endLine": 7},
    }
    assert [(place["id"], place["message"]["text"]) for place in result["relatedLocations"]] == [
        (1, "Sum.of"),
        (2, "count"),
    ]
    uris = [place["physicalLocation"]["artifactLocation"]["uri"] for place in result["relatedLocations"]]
    assert uris == ["lib/b.py", "lib/c%20d.py"]


def test_markdown_lists_the_groups_and_stays_within_the_limit_of_a_comment():
    text = report("markdown", title="Copies")
    assert text.startswith("### Copies\n\n**1.** renamed, similarity 1.00, 3 copies")
    assert "\n- `lib/b.py:2-6` `Sum.of`\n" in text
    forest = duplicates()
    groups = find_duplicates(forest) * 1000
    text = duplicates_report(forest, groups, "markdown", sources=SOURCES.__getitem__)
    assert COMMENT_SIZE * 0.9 < len(text) <= COMMENT_SIZE
    shown = text.count("copies")
    assert f"<summary>{shown - 10} more groups</summary>" in text
    assert text.endswith(f"\n{1000 - shown} groups are not shown.\n")


def test_the_page_holds_the_sources_and_asks_for_nothing():
    page = report("html", title="Mine & yours")
    assert "<title>Mine &amp; yours</title>" in page
    assert not re.search(r"\b(src|href|@import|url\()", page)
    (group,) = page_data(page)
    assert (group["title"], group["band"], group["other"]) == ("count ~ Sum.of", "renamed", 2)
    assert [member["lines"] for member in group["members"]] == [
        ["def count(items):", *BODY],
        ["def of(items):", *BODY],
        SOURCES["lib/c d.py"],
    ]


ODD = "</script><!--<b>\u2028\x1b[31m`_*|\\ \udcff\n.py"


@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_odd_names_and_sources_are_escaped(format):
    forest = duplicates()
    forest.columns["file"] = [ODD] * 4
    forest.columns["name"] = [ODD] * 4
    forest.columns["start"], forest.columns["end"] = [1, 2, 3, 4], [1, 2, 3, 4]
    text = report(format, forest, {ODD: [f"{k} {ODD}" for k in range(5)]}, title=ODD)
    text.encode()  # no half of a surrogate pair
    assert "\x1b" not in text
    if format == "html":
        scripts = Scripts()
        scripts.feed(text)
        assert scripts.count == 2
        assert page_data(text)[0]["members"][0]["lines"] == [f"0 {ODD}".rstrip()]
    elif format in ("json", "sarif"):
        assert "\\u001b" in text
        json.loads(text)
    else:
        assert len(text.splitlines()) == {"text": 4, "markdown": 8}[format]


class Scripts(HTMLParser):
    """How many scripts a browser sees."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def handle_starttag(self, tag, attributes):
        self.count += tag == "script"
        assert tag != "b"


@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_where_nothing_was_found_the_report_says_so(format):
    text = report(format, random_forest_with_places())
    if format in ("json", "sarif"):
        assert json.loads(text).get("groups", []) == []
    else:
        assert re.search("no near-duplicates|0 groups", text, re.I)


@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_no_trees_have_no_places_and_a_report(format):
    assert report(format, Forest.from_trees([])) == report(format, random_forest_with_places())


def random_forest_with_places() -> Forest:
    forest = random_forest(5, 2, 80)
    forest.columns.update(file=["a.py", "a.py"], start=[1, 2], end=[1, 2])
    return forest


def test_sources_that_cannot_be_read_are_left_out():
    for format in REPORT_FORMATS:
        text = report(format, sources=dict.fromkeys(SOURCES, ()))
        assert "lines differ" not in text
        assert "lib/b.py" in text


def test_every_file_is_read_once():
    read = []
    forest = duplicates()
    forest.columns["file"] = ["a.py"] * 4
    duplicates_report(forest, find_duplicates(forest), "text", sources=lambda file: read.append(file) or [])
    assert read == ["a.py"]


def test_of_a_long_member_the_first_lines_are_shown():
    forest = duplicates()
    forest.columns["end"] = [MAX_LINES + 50] * 4
    page = report("html", forest, {file: [f"x = {k}" for k in range(3000)] for file in SOURCES})
    lines = page_data(page)[0]["members"][0]["lines"]
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "… 48 more lines"


def test_of_a_long_line_the_beginning_is_shown():
    page = report("html", sources={file: ["x" * 10_000_000] * 7 for file in SOURCES})
    assert page_data(page)[0]["members"][0]["lines"] == ["x" * MAX_WIDTH + "…"] * 5


def test_of_many_members_a_comment_lists_the_first_and_a_list_all():
    tree = random_forest(3, 1, 80)[0]
    forest = Forest.from_trees([tree] * 1000)
    forest.columns.update(file=[f"{k}.py" for k in range(1000)], start=[1] * 1000, end=[2] * 1000)
    sources = {f"{k}.py": () for k in range(1000)}
    text = report("markdown", forest, sources)
    assert text.count("- `") == 20
    assert "\n- and 980 more\n" in text
    assert len(report("text", forest, sources).splitlines()) == 1001


def test_a_file_is_an_address_where_its_path_is_absolute_and_no_scheme_where_it_has_a_colon():
    forest = duplicates()
    forest.columns["file"] = ["/src/a b.py", "c:d.py", "", "e.py"]
    log = json.loads(report("sarif", forest, {"/src/a b.py": [], "c:d.py": [], "e.py": []}))
    assert re.findall(r"'uri': '([^']*)'", str(log)) == [
        "file:///src/a%20b.py",
        "c%3Ad.py",
        "e.py",
    ]


def test_trees_without_places_and_unknown_formats_are_refused():
    tree = random_forest(3, 1, 80)[0]
    forest = Forest.from_trees([tree, tree, Tree("a", ["b"])])
    with pytest.raises(ParameterError, match="no column 'file'"):
        report("text", forest)
    with pytest.raises(ParameterError, match="format must be one of 'text', 'json'"):
        report("pdf")
