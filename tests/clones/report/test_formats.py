"""Reports of one set of groups in every format: what stands in them, and that odd names do no harm."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from strategies import random_forest
from treedot import Forest, Tree, __version__, find_duplicates
from treedot._pages.printable import printable
from treedot.clones import DuplicateGroup
from treedot.clones.groups import Partner
from treedot.clones.report import duplicates_report, html
from treedot.clones.report.contents import About
from treedot.clones.report.findings import MAX_LINES, MAX_WIDTH
from treedot.clones.report.json_sarif import RELATED
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
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    for member in (member for group in data["groups"] for member in group["members"]):
        member["lines"] = None if member["text"] is None else data["texts"][member["text"]]
    return data["groups"]


def test_text_has_a_line_for_the_group_and_one_for_every_member():
    group = find_duplicates(duplicates())[0]
    assert report("text").splitlines() == [
        f"1. renamed, similarity 1.00, 3 copies, {group.nodes} nodes, score {group.score:.0f}: "
        "2 of 5 lines differ; 1 name renamed (items -> numbers)",
        "  a.py:3-7 count",
        "  lib/b.py:2-6 Sum.of",
        "  lib/c d.py:1-5 count",
    ]


def test_only_text_for_a_terminal_has_colours_and_the_same_words():
    forest = duplicates()
    (group,) = find_duplicates(forest)
    groups = [replace(group, new=(1,))]
    for format in REPORT_FORMATS:
        text = duplicates_report(forest, groups, format, sources=SOURCES.__getitem__)
        coloured = duplicates_report(forest, groups, format, sources=SOURCES.__getitem__, coloured=True)
        assert re.sub(r"\x1b\[\d*m", "", coloured) == text
        assert ("\x1b[31mrenamed\x1b[0m, similarity" in coloured) == (format == "text")
        assert ("\x1b[32m (new)\x1b[0m" in coloured) == (format == "text")


def test_json_says_its_version_and_all_that_is_known():
    group = find_duplicates(duplicates())[0]
    found = json.loads(report("json", title="Mine"))
    assert (found["format"], found["version"], found["title"]) == ("treedot duplicates", 1, "Mine")
    assert found["about"] is None
    assert found["extent"] == {
        "groups": 1,
        "blocks": 0,
        "members": 3,
        "copied": 15,
        "lines": None,
        "files": [{"file": file, "copied": 5, "lines": None} for file in ("a.py", "lib/b.py", "lib/c d.py")],
    }
    assert found["groups"] == [
        {
            "rank": 1,
            "band": "renamed",
            "score": round(group.score, 3),
            "similarity": 1.0,
            "mean_similarity": 1.0,
            "agreement": round(group.agreement, 6),
            "bits": round(group.bits, 3),
            "nodes": group.nodes,
            "shape_only": False,
            "in_tests": False,
            "fingerprint": found["groups"][0]["fingerprint"],
            "difference": {"between": [0, 2], "lines": 5, "different": 2, "renamed": [["items", "numbers"]]},
            "members": [
                {
                    "file": file,
                    "start": start,
                    "end": start + 4,
                    "name": name,
                    "language": "python",
                    "new": False,
                }
                for file, start, name in (
                    ("a.py", 3, "count"),
                    ("lib/b.py", 2, "Sum.of"),
                    ("lib/c d.py", 1, "count"),
                )
            ],
            "also": [],
        }
    ]


def test_sarif_has_what_its_schema_requires_and_one_result_per_group():
    log = json.loads(report("sarif"))
    assert log["version"] == "2.1.0"  # required of a log, with its runs
    (run,) = log["runs"]
    driver = run["tool"]["driver"]  # required of a run, of a tool
    assert driver["name"] == "treedot"  # required of a component
    assert len({rule["id"] for rule in driver["rules"]}) == 5  # required of a rule
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


def alerts(groups, forest, sources=SOURCES):
    """Return the place and the fingerprint of every SARIF result."""
    log = json.loads(duplicates_report(forest, groups, "sarif", sources=sources.__getitem__))
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    prints = [result["partialFingerprints"] for result in log["runs"][0]["results"]]
    assert all(len(each) == 1 for each in prints)
    return [
        (place["artifactLocation"]["uri"], *each.values()) for place, each in zip(places, prints, strict=True)
    ]


def test_a_fingerprint_stays_when_lines_move_and_differs_for_each_alert():
    forest = duplicates()
    (group,) = find_duplicates(forest)
    (before,) = alerts([group], forest)
    forest.columns["start"] = [k + 40 for k in forest.columns["start"]]
    forest.columns["end"] = [k + 40 for k in forest.columns["end"]]
    sources = {file: [""] * 40 + lines for file, lines in SOURCES.items()}
    assert alerts([group], forest, sources) == [before]
    third = replace(group, new=(3,))
    found = alerts([group, third, group], forest, sources)
    assert [file for file, _ in found] == ["a.py", "lib/c%20d.py", "a.py"]
    assert len(set(found)) == 3
    forest.columns["name"] = [""] * 4  # then the lines identify a copy
    assert alerts([group], forest, sources) == alerts([group], forest, SOURCES | sources)
    assert alerts([group], forest, sources) != [before]


def with_partners(count: int) -> str:
    """Return a group of two, the second of which is like further trees that are in no group with it."""
    forest = Forest.from_trees([Tree.parse("(A b)")] * (count + 2))
    files = ["a.py", "b[1].py", *(f"far{k}.py" for k in range(count))]
    forest.columns.update(file=files, start=[1] * len(files), end=[5] * len(files), name=["f"] * len(files))
    also = tuple(Partner(1, k + 2, 0.759) for k in range(count))
    group = DuplicateGroup((0, 1), 0.9, 0.9, None, 60.0, 90, "near", also=also)
    return lambda format: duplicates_report(forest, [group], format, sources=lambda file: [])


@pytest.mark.parametrize("format", ["text", "github"])
def test_text_and_annotations_name_partners_outside_a_group(format):
    assert "b[1].py:1-5 is also like far0.py:1-5" in with_partners(1)(format)


def test_markdown_names_partners_outside_a_group_up_to_a_number():
    assert "\n- b\\[1\\].py:1-5 is also like far0.py:1-5 f (0.75)\n" in with_partners(1)("markdown")
    many = with_partners(23)("markdown")
    assert many.count("is also like") == 20
    assert "\n- and 3 more that are alike\n" in many


def test_alerts_name_partners_outside_a_group_and_have_all_as_related_locations():
    (result,) = json.loads(with_partners(23)("sarif"))["runs"][0]["results"]
    places = "; ".join(f"b\\[1\\].py:1-5 is also like [far{k}.py:1-5]({k + 2})" for k in range(20))
    expected = f"f is also at [b\\[1\\].py:1-5](1). {places}; there are 3 more such places."
    assert result["message"]["text"] == expected
    related = [(place["id"], place["physicalLocation"]) for place in result["relatedLocations"]]
    assert [(k, place["artifactLocation"]["uri"]) for k, place in related] == [
        (1, "b%5B1%5D.py"),
        *((k + 2, f"far{k}.py") for k in range(23)),
    ]
    (issue,) = json.loads(with_partners(23)("gitlab"))
    assert len(issue["other_locations"]) == 24
    assert "is also like far0.py:1-5;" in issue["description"]


def test_a_message_links_only_to_related_locations_that_are_given():
    (result,) = json.loads(with_many_copies())["runs"][0]["results"]
    assert len(result["relatedLocations"]) == RELATED
    assert result["message"]["text"].endswith(" is also like far.py:1-5.")


def with_many_copies() -> str:
    """Return as SARIF a group with so many copies that a partner outside is no related location."""
    n = RELATED + 2
    forest = Forest.from_trees([Tree.parse("(A b)")] * n)
    forest.columns.update(file=["a.py"] * (n - 1) + ["far.py"], start=[1] * n, end=[5] * n, name=["f"] * n)
    also = (Partner(0, n - 1, 0.759),)
    group = DuplicateGroup(tuple(range(n - 1)), 0.9, 0.9, None, 60.0, 90, "near", also=also)
    return duplicates_report(forest, [group], "sarif", sources=lambda file: [])


def test_each_rule_says_what_to_do():
    rules = json.loads(report("sarif"))["runs"][0]["tool"]["driver"]["rules"]
    assert all("treedot: ignore" in rule["help"]["text"] for rule in rules)


def test_gitlab_gets_an_issue_with_a_stable_fingerprint_at_each_first_member():
    (issue,) = json.loads(report("gitlab"))
    (group,) = json.loads(report("json"))["groups"]
    assert issue == {
        "type": "issue",
        "check_name": "duplicate-renamed",
        "description": "count is also at lib/b.py:2-6, lib/c d.py:1-5. 2 of 5 lines differ; "
        "1 name renamed (items -> numbers).",
        "categories": ["Duplication"],
        "severity": "major",
        "fingerprint": group["fingerprint"],
        "location": {"path": "a.py", "lines": {"begin": 3, "end": 7}},
        "other_locations": [
            {"path": "lib/b.py", "lines": {"begin": 2, "end": 6}},
            {"path": "lib/c d.py", "lines": {"begin": 1, "end": 5}},
        ],
    }
    (result,) = json.loads(report("sarif"))["runs"][0]["results"]
    assert [*result["partialFingerprints"].values()] == [group["fingerprint"]]


def test_github_annotates_the_first_groups_and_folds_the_others():
    assert report("github") == (
        "::warning file=a.py,line=3,endLine=7,title=renamed code in 3 places::count is also at lib/b.py:2-6, "
        "lib/c d.py:1-5. 2 of 5 lines differ; 1 name renamed (items -> numbers).\n"
    )
    forest = duplicates()
    forest.columns["file"] = ["50%,a:b.py", "::error::b.py", "a.py", "##[error]c.py"]
    forest.columns["name"] = ["::error::x"] * 4
    groups = find_duplicates(forest) * 13
    lines = duplicates_report(forest, groups, "github", sources=lambda file: []).splitlines()
    assert all(line.startswith("::warning file=50%25%2Ca%3Ab.py,") for line in lines[:10])
    assert (lines[10], lines[-1]) == ("::group::3 more groups", "::endgroup::")
    assert all(line.startswith("|") and "##[" not in line for line in lines[11:-1])
    assert sum(" copies, " in line for line in lines[11:-1]) == 3


@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_new_members_come_first_and_are_compared_with_an_old_one(format):
    forest = duplicates()
    (group,) = find_duplicates(forest)
    text = duplicates_report(forest, [replace(group, new=(1, 3))], format, sources=SOURCES.__getitem__)
    if format == "html":
        (group,) = page_data(text)
        places = [(member["place"], member["new"]) for member in group["members"]]
        assert places == [("lib/b.py:2-6", True), ("lib/c d.py:1-5", True), ("a.py:3-7", False)]
        assert group["other"] == 2
    elif format == "json":
        (group,) = json.loads(text)["groups"]
        places = [(member["file"], member["new"]) for member in group["members"]]
        assert places == [("lib/b.py", True), ("lib/c d.py", True), ("a.py", False)]
        assert group["difference"]["between"] == [0, 2]
    elif format == "gitlab":
        (issue,) = json.loads(text)
        assert [place["path"] for place in (issue["location"], *issue["other_locations"])] == [
            "lib/b.py",
            "lib/c d.py",
            "a.py",
        ]
    elif format == "github":
        assert text.startswith("::warning file=lib/b.py,line=2,endLine=6,")
        assert text.index("lib/c d.py") < text.index("a.py:3-7")
    elif format == "sarif":
        (result,) = json.loads(text)["runs"][0]["results"]
        places = [*result["locations"], *result["relatedLocations"]]
        files = [place["physicalLocation"]["artifactLocation"]["uri"] for place in places]
        assert files == ["lib/b.py", "lib/c%20d.py", "a.py"]
    else:
        lines = [line.strip(" -").replace("`", "") for line in text.rstrip().splitlines()]
        assert lines[-3:] == ["lib/b.py:2-6 Sum.of (new)", "lib/c d.py:1-5 count (new)", "a.py:3-7 count"]


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
    assert not re.search(r"\b(src=|@import|url\()|https?:", page)
    (group,) = page_data(page)
    assert (group["title"], group["band"], group["other"]) == ("count ~ Sum.of", "renamed", 2)
    assert [member["lines"] for member in group["members"]] == [
        ["def count(items):", *BODY],
        ["def of(items):", *BODY],
        SOURCES["lib/c d.py"],
    ]


ODD = "</script><!--<odd>\" onclick='\u2028\x1b[31m`_*|\\ \u202e\udcff\n.py"


@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_odd_names_and_sources_are_escaped(format):
    forest = duplicates()
    forest.columns["file"] = [ODD] * 4
    forest.columns["name"] = [ODD] * 4
    forest.columns["start"], forest.columns["end"] = [1, 2, 3, 4], [1, 2, 3, 4]
    text = report(format, forest, {ODD: [f"{k} {ODD}" for k in range(5)]}, title=ODD)
    text.encode()  # no half of a surrogate pair
    assert not set("\x1b\u202e") & set(text)
    if format == "html":
        scripts = Scripts()
        scripts.feed(text)
        assert scripts.count == 2
        assert page_data(text)[0]["members"][0]["lines"] == [printable(f"0 {ODD}")]
    elif format in ("json", "sarif", "gitlab"):
        assert "\\u001b" in text
        json.loads(text)
    else:
        assert len(text.splitlines()) == {"text": 4, "markdown": 8, "github": 1}[format]


class Scripts(HTMLParser):
    """How many scripts a browser sees."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def handle_starttag(self, tag, attributes):
        self.count += tag == "script"
        assert tag != "odd"
        assert not any(name.startswith("on") for name, _ in attributes)


@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_where_nothing_was_found_the_report_says_so(format):
    text = report(format, random_forest_with_places())
    if format == "gitlab":
        assert json.loads(text) == []
    elif format in ("json", "sarif"):
        assert json.loads(text).get("groups", []) == []
    else:
        assert re.search("no near-duplicates", text, re.I)


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
    (result,) = json.loads(report("sarif", forest, sources))["runs"][0]["results"]
    assert "20.py:1-2](20) and 979 more places" in result["message"]["text"]
    assert len(result["relatedLocations"]) == 999


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


ABOUT = About(
    project="Shop & co",
    root="/home/me/shop",
    date="2031-02-03",
    paths=("src", "lib"),
    settings={"threshold": "0.7"},
    left_out={"minified": 2, "generated": 1},
    lines={"a.py": 7, "lib/b.py": 6, "lib/c d.py": 5, "lib/e.py": 32},
    units="4 functions in 4 files",
)


def test_the_page_opens_with_the_run_and_the_extent_of_all_groups():
    forest = duplicates()
    groups = find_duplicates(forest) * 3
    page = duplicates_report(forest, groups, "html", sources=SOURCES.__getitem__, top=2, about=ABOUT)
    opening = page[page.index("<body>") : page.index("What the words")].replace("/<wbr>", "/")
    words = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", opening))
    for shown in (
        "Near-duplicates in Shop &amp; co",
        "/home/me/shop",
        "src, lib",
        "2031-02-03",
        "threshold 0.7",
        "4 functions in 4 files",
        "1 generated, 2 minified",
        "3 groups with 3 members; the first 2 are listed",
        "15 lines in copies, 30.0% of 50",
        "3 files of 4 with copies",
        "lib/c d.py 5 100% 3",
    ):
        assert shown in words
    assert len(page_data(page)) == 2
    assert page == duplicates_report(forest, groups, "html", sources=SOURCES.__getitem__, top=2, about=ABOUT)


def test_a_square_of_the_picture_filters_by_its_two_folders():
    page = report("html")
    squares = re.findall(r'title="([^"]*)"[^>]*data-filter="folder" data-value="([^"]*)"', page)
    assert sorted(set(squares)) == [
        ("* and lib: 5 lines in 1 group", "* + lib/"),
        ("lib and *: 5 lines in 1 group", "lib/ + *"),
        ("lib and lib: 5 lines in 1 group", "lib/ + lib/"),
    ]


def test_json_says_what_was_searched_without_the_date_and_the_folder():
    forest = duplicates()
    text = duplicates_report(
        forest, find_duplicates(forest) * 2, "json", sources=SOURCES.__getitem__, top=1, about=ABOUT
    )
    found = json.loads(text)
    assert found["about"] == {
        "project": "Shop & co",
        "paths": ["src", "lib"],
        "treedot": __version__,
        "settings": {"threshold": "0.7"},
        "compared": "4 functions in 4 files",
        "left_out": {"generated": 1, "minified": 2},
    }
    assert (found["extent"]["groups"], found["extent"]["lines"], len(found["groups"])) == (2, 50, 1)
    assert not re.search("2031|/home", text)


def test_equal_sources_are_on_the_page_once_and_only_up_to_a_limit(monkeypatch):
    trees = list(random_forest(3, 20, 80))
    forest = Forest.from_trees([tree for tree in trees for _ in "ab"])
    forest.columns.update(file=[f"{k // 2}.py" for k in range(40)], start=[1, 9] * 20, end=[8, 16] * 20)
    sources = {f"{k}.py": [f"line {j % 8} of {k:02}" for j in range(16)] for k in range(20)}
    groups = find_duplicates(forest, threshold=1)
    page = duplicates_report(forest, groups, "html", sources=sources.__getitem__)
    assert page.count("line 3 of 07") == 1
    assert "The page holds the sources of" not in page
    monkeypatch.setattr(html, "MAX_CHARACTERS", 500)  # of 96 each
    page = duplicates_report(forest, groups, "html", sources=sources.__getitem__)
    assert "The page holds the sources of 5 of 20 groups" in page
    held = [[member["lines"] is not None for member in group["members"]] for group in page_data(page)]
    assert held == [[True] * 2] * 5 + [[False] * 2] * 15
    assert all(member["place"] for group in page_data(page) for member in group["members"])
