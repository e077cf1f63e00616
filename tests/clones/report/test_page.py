"""The page of a report in a real browser."""

import json

import pytest

from strategies import random_forest
from treedot import Forest, find_duplicates
from treedot.clones.report import duplicates_report

pytestmark = pytest.mark.slow

GROUPS = 450
LEFT = ["def area(width):", "    # of a square", "    return width * width", "", "# end"]
RIGHT = ["def area(height):", "    return height * height", "    print('</script>')", "", "# end"]
THIRD = ["def size(a):", "    return a", "    return height * height"]
LINES = {"a.py": LEFT, "b.py": RIGHT, "c.py": THIRD}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report(), encoding="utf-8")
    return path.as_uri()


def report() -> str:
    """Return a page of many groups; the first has three members, of every other there are two."""
    trees = list(random_forest(3, GROUPS, 90))
    members = [(0, "a.py"), (0, "b.py"), (0, "c.py")]
    members += [(k, f"{name}{k}.py") for k in range(1, GROUPS) for name in "ab"]
    forest = Forest.from_trees([trees[k] for k, _ in members])
    forest.columns.update(
        file=[file for _, file in members],
        start=[1] * len(members),
        end=[5] * len(members),
        name=[f"function{k}" for k, _ in members],
    )
    groups = sorted(find_duplicates(forest, threshold=1), key=lambda group: group.members)
    assert len(groups) == GROUPS
    return duplicates_report(forest, groups, "html", sources=lambda file: LINES.get(file, LEFT))


@pytest.fixture
def open_page(browser, address):
    """Return a function that opens the report at a width; there must be neither errors nor requests."""
    opened = []

    def open_at(width: int = 1200, fragment: str = "", **settings):
        page = browser.new_page(viewport={"width": width, "height": 900}, **settings)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url))
        page.goto(address + fragment)
        problems.remove(address)
        opened.append(page)
        return page

    problems: list[str] = []
    yield open_at
    for page in opened:
        page.close()
    assert problems == []


def cells(page) -> list[list[str]]:
    """Return the rows of the first group: words that are marked in stars, a star before whole lines."""
    page.locator("#group-1 table").wait_for()  # a browser tells that a group was opened some time later
    return page.evaluate("""() => {
      const text = (node) => (node.nodeName === "MARK" ? `**${node.textContent}**` : node.textContent);
      const star = (node) => (node.className === "only" ? "*" : "");
      const cell = (node) => star(node) + [...node.childNodes].map(text).join("");
      const cells = (row) => [...row.querySelectorAll("td:not(.number)")].map(cell);
      return [...document.querySelectorAll("#group-1 tbody tr")].map(cells);
    }""")


def shown(page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('.group')].map((group) => group.id)")


def test_two_sources_are_aligned_and_differences_marked_down_to_words(open_page):
    page = open_page()
    assert page.locator("#group-1 table").count() == 0  # nothing is drawn before it is opened
    page.locator("#group-1 summary").click()
    assert cells(page) == [
        ["def area(**width**):", "def area(**height**):"],
        ["*    # of a square", ""],
        ["    return **width** * **width**", "    return **height** * **height**"],
        ["", "*    print('</script>')"],
        ["", ""],
        ["# end", "# end"],
    ]
    numbers = page.locator("#group-1 tr:nth-child(3) td.number").all_inner_texts()
    assert numbers == ["3", "2"]


def test_any_two_of_several_members_can_be_chosen(open_page):
    page = open_page(fragment="#group-1")
    page.get_by_label("Right").select_option(label="c.py:1-5 function0")
    assert cells(page)[0] == ["def **area**(**width**):", "def **size**(**a**):"]
    page.get_by_label("Left").select_option("2")
    assert cells(page) == [[line, line] for line in THIRD]


def test_equal_lines_are_aligned_before_similar_ones(open_page):
    page = open_page()
    pairs = page.evaluate("""rows(
      ["add(list, 'a')", "add(bar, 'v')", "add(bar, 'h')"],
      ["add(pane, 'p')", "# why", "add(list, 'a')", "add(bar, 's')"],
    )""")
    assert pairs == [[None, 0], [None, 1], [0, 2], [1, None], [2, 3]]


def test_the_keyboard_is_enough(open_page):
    page = open_page()
    page.get_by_label("File or name").focus()
    page.keyboard.type("function7 b7.py")
    page.wait_for_function("document.querySelectorAll('.group').length === 1")
    for _ in range(4):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#group-8[open] table")


def test_groups_are_filtered_sorted_and_listed_page_by_page(open_page):
    page = open_page()
    groups = json.loads(page.locator("#data").text_content())
    assert len(shown(page)) == 200
    page.get_by_role("button", name="Show more").click()
    assert shown(page) == [f"group-{k}" for k in range(1, 401)]
    page.get_by_role("button", name="Show more").click()
    assert len(shown(page)) == GROUPS
    assert not page.get_by_role("button", name="Show more").is_visible()
    scores = sorted((group["score"] for group in groups), reverse=True)
    page.get_by_label("Lowest score").fill(str(scores[9]))
    assert len(shown(page)) == sum(score >= scores[9] for score in scores)
    assert page.get_by_role("status").inner_text() == f"{len(shown(page))} of {GROUPS}"
    page.get_by_label("Order").select_option("score")
    by_id = {f"group-{group['rank']}": group for group in groups}
    assert [by_id[name]["score"] for name in shown(page)] == scores[: len(shown(page))]
    page.get_by_label("Band").select_option("identical")
    page.get_by_label("Lowest score").fill("0")
    page.get_by_label("Order").select_option("file")
    files = [by_id[name]["members"][0]["place"] for name in shown(page)]
    assert files == sorted(group["members"][0]["place"] for group in groups)[:200]


def test_a_link_to_a_group_opens_it_wherever_it_stands(open_page):
    page = open_page(fragment="#group-440")
    assert page.locator("#group-440").get_attribute("open") is not None
    assert page.evaluate("document.querySelector('#group-440').getBoundingClientRect().top") < 900


@pytest.mark.parametrize("width", [320, 400, 720, 1200])
def test_nothing_is_wider_than_the_screen(open_page, width):
    page = open_page(width, "#group-1")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.querySelector('#group-1 .wide').scrollWidth") <= width


def test_on_a_phone_what_both_have_is_there_once(open_page):
    page = open_page(400, "#group-1")
    visible = page.locator("#group-1 tbody td:not(.number):visible").all_inner_texts()
    assert [text.strip() for text in visible if text.strip()] == [
        "def area(width):",
        "def area(height):",
        "# of a square",
        "return width * width",
        "return height * height",
        "print('</script>')",
        "# end",
    ]


def test_the_page_is_dark_where_people_want_that(open_page):
    background = "getComputedStyle(document.body).backgroundColor"
    assert open_page(color_scheme="light").evaluate(background) == "rgb(255, 255, 255)"
    assert open_page(color_scheme="dark").evaluate(background) == "rgb(20, 23, 26)"
