"""The page of a report in a real browser."""

import json

import pytest

from strategies import random_forest
from treedot import Forest, find_duplicates
from treedot.clones.groups import DuplicateGroup, Partner
from treedot.clones.report import duplicates_report
from treedot.clones.report.contents import About

pytestmark = pytest.mark.slow

GROUPS = 450
LEFT = ["def area(width):", "    # of a square", "    return width * width", "", "# end"]
RIGHT = ["def area(height):", "    return height * height", "    print('</script>')", "", "# end"]
ABOUT = About("shop", "/home/me/my shop", "2031-02-03", lines={"a.py": 5, "b.py": 5})
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
    members += [(k, f"{'lib/' * (k % 2)}{name}/{name}{k}.py") for k in range(1, GROUPS) for name in "ab"]
    forest = Forest.from_trees([trees[k] for k, _ in members])
    forest.columns.update(
        file=[file for _, file in members],
        start=[1] * len(members),
        end=[5] * len(members),
        name=[f"function{k}" for k, _ in members],
        language=["java" if k % 3 == 1 else "python" for k, _ in members],
    )
    groups = sorted(find_duplicates(forest, threshold=1), key=lambda group: group.members)
    assert len(groups) == GROUPS
    return duplicates_report(forest, groups, "html", sources=lambda file: LINES.get(file, LEFT), about=ABOUT)


@pytest.fixture
def open_page(browser, address):
    """Return a function that opens the report at a width; there must be neither errors nor requests."""
    opened = []

    def open_at(width: int = 1200, fragment: str = "", at: str = address, **settings):
        page = browser.new_page(viewport={"width": width, "height": 900}, **settings)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: request.url == at or problems.append(request.url))
        page.goto(at + fragment)
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
    page.keyboard.press("j")  # in a field it is a letter
    assert shown(page) == []
    page.keyboard.press("Backspace")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_selector("#group-8[open] table")
    page.keyboard.press("Enter")
    page.wait_for_selector("#group-8:not([open])")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "text"


def test_keys_and_buttons_open_the_next_and_the_previous_group_below_the_bar(open_page):
    page = open_page()
    for key, place in (("j", 1), ("n", 2), ("j", 3), ("k", 2), ("p", 1), ("p", 1)):
        page.keyboard.press(key)
        page.wait_for_selector(f"#group-{place}[open] table")
        assert page.evaluate("[...document.querySelectorAll('.group[open]')].length") == 1
        is_below = """(place) => document.getElementById(`group-${place}`).getBoundingClientRect().top >=
          document.querySelector(".bar").getBoundingClientRect().bottom - 1"""
        page.wait_for_function(is_below, arg=place)
    page.get_by_role("button", name="next").click()
    page.wait_for_selector("#group-2[open] table")
    page.goto(page.url.partition("#")[0] + "#group-200")  # the last one that is listed so far
    page.wait_for_selector("#group-200[open] table")
    page.keyboard.press("j")
    page.wait_for_selector("#group-201[open] table")


def test_the_bar_stays_while_the_groups_are_scrolled(open_page):
    page = open_page(fragment="#group-100")
    assert page.evaluate("document.querySelector('.bar').getBoundingClientRect().top") == 0
    assert page.get_by_label("File or name").is_visible()


def test_groups_are_filtered_sorted_and_listed_page_by_page(open_page):
    page = open_page()
    groups = json.loads(page.locator("#data").text_content())["groups"]
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


def test_groups_are_filtered_by_language_by_folder_and_by_what_they_must_not_have(open_page):
    page = open_page()
    groups = json.loads(page.locator("#data").text_content())["groups"]

    def ranks(wanted) -> list[str]:
        return [f"group-{group['rank']}" for group in groups if wanted(group)][:200]

    page.get_by_label("Language").select_option("java")
    assert shown(page) == ranks(lambda group: group["language"] == "java")
    page.get_by_label("Not", exact=True).fill("B7 c.py")
    assert shown(page) == ranks(
        lambda group: group["language"] == "java" and "b7" not in str(group["members"])
    )
    page.get_by_label("Language").select_option("")
    page.get_by_label("Not", exact=True).fill("function7")
    page.get_by_label("Folder", exact=True).fill("lib/a")
    in_lib = [group for group in groups if "lib/a/" in str(group["members"])]
    assert shown(page) == ranks(lambda group: group in in_lib and "function7" not in str(group))
    assert page.get_by_role("status").inner_text() == f"{len(in_lib) - 6} of {GROUPS}"


def test_files_and_squares_of_the_opening_filter_the_list(open_page):
    page = open_page()
    page.get_by_role("button", name="a/a10.py", exact=True).click()
    assert page.get_by_label("File or name").input_value() == "a/a10.py"
    assert shown(page) == ["group-11"]
    page.get_by_label("File or name").fill("")
    page.get_by_role("button", name="lib/a and lib/b:").first.click()
    assert page.get_by_label("Folder", exact=True).input_value() == "lib/a/ + lib/b/"
    assert shown(page) == [f"group-{k}" for k in range(2, 402, 2)]
    squares = page.locator(".folders td button")
    assert {square.get_attribute("aria-label") for square in squares.all()} == {
        f"{one} and {other}: {text}"
        for pair, text in {
            ("*", "*"): "5 lines in 1 group",
            ("a", "b"): "1,120 lines in 224 groups",
            ("lib/a", "lib/b"): "1,125 lines in 225 groups",
        }.items()
        for one, other in (pair, pair[::-1])
    }
    page.get_by_role("button", name="* and *:").click()
    assert shown(page) == ["group-1"]


def test_places_are_links_to_the_editor_that_is_chosen_and_the_choice_is_kept(open_page):
    page = open_page(fragment="#group-1")
    link = page.locator("#group-1 a.place").first
    assert link.get_attribute("href") == "vscode://file/home/me/my%20shop/a.py:1"
    page.get_by_label("Open files in").select_option("PyCharm")
    assert link.get_attribute("href") == "pycharm://open?file=/home/me/my%20shop/a.py&line=1"
    page.get_by_label("Folder of the sources").fill("C:\\work\\a&b#c/")
    assert link.get_attribute("href") == "pycharm://open?file=/C:%5Cwork%5Ca%26b%23c/a.py&line=1"
    page.get_by_label("Folder of the sources").fill("/srv")
    page.reload()
    assert link.get_attribute("href") == "pycharm://open?file=/srv/a.py&line=1"
    page.get_by_label("Open files in").select_option("no editor")
    assert link.get_attribute("href") is None


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


def test_partners_outside_a_group_and_tests_are_on_the_page(open_page, tmp_path):
    forest = Forest.from_trees(list(random_forest(3, 5, 90)))
    files = ["a.py", "b.py", "tests/test_a.py", "tests/test_b.py", "far.py"]
    forest.columns.update(file=files, start=[1] * 5, end=[5] * 5, name=["f", "g", "h", "i", "distant"])
    groups = [
        DuplicateGroup((0, 1), 0.9, 0.9, None, 60.0, 90, "near", also=(Partner(1, 4, 0.759),)),
        DuplicateGroup((2, 3), 0.9, 0.9, None, 60.0, 90, "near", is_in_tests=True),
    ]
    path = tmp_path / "also.html"
    text = duplicates_report(forest, groups, "html", sources=lambda file: LEFT, about=ABOUT)
    path.write_text(text, encoding="utf-8")
    page = open_page(at=path.as_uri(), fragment="#group-1")
    assert page.locator("#group-1 li").inner_text() == "b.py:1-5 is also like far.py:1-5 distant (0.75)"
    assert page.locator("#group-1 li a").nth(1).get_attribute("href").endswith("far.py:1")
    page.get_by_label("File or name").fill("distant")
    assert shown(page) == ["group-1"]
    page.get_by_label("File or name").fill("")
    page.locator("select[name=tests]").select_option("in tests")
    assert shown(page) == ["group-2"]
    page.locator("select[name=tests]").select_option("not in tests")
    assert shown(page) == ["group-1"]


HOSTILE = "a\"><img src=x onerror=alert(1)>/'&#<script>alert(2)</script>\u202e?.py"


def test_hostile_names_and_sources_stay_text(open_page, browser, tmp_path):
    tree = random_forest(3, 1, 90)[0]
    forest = Forest.from_trees([tree] * 3)
    forest.columns.update(
        file=[HOSTILE, HOSTILE, "b/c.py"], start=[1, 7, 1], end=[5, 11, 5], name=[HOSTILE] * 3
    )
    groups = find_duplicates(forest, threshold=1)
    about = About(HOSTILE, f"/{HOSTILE}", HOSTILE, (HOSTILE,), {HOSTILE: HOSTILE}, {HOSTILE: 1}, {}, HOSTILE)
    lines = [HOSTILE] * 11
    path = tmp_path / "hostile.html"
    text = duplicates_report(forest, groups, "html", sources=lambda file: lines, title=HOSTILE, about=about)
    path.write_text(text, encoding="utf-8")
    page = open_page(at=path.as_uri(), fragment="#group-1")
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    link = page.locator("#group-1 a.place").first.get_attribute("href")
    assert link.startswith("vscode://file/")
    assert not set('"<>#?') & set(link)
    page.locator(".opening button").first.click()
    assert shown(page) == ["group-1"]
    page.get_by_label("Folder", exact=True).fill('a"><img src=x onerror=alert(1)>/')
    assert shown(page) == ["group-1"]
    assert cells(page)[0][0] == HOSTILE.replace("\u202e", "\\u202e")


def test_the_page_is_dark_where_people_want_that(open_page):
    background = "getComputedStyle(document.body).backgroundColor"
    assert open_page(color_scheme="light").evaluate(background) == "rgb(255, 255, 255)"
    assert open_page(color_scheme="dark").evaluate(background) == "rgb(20, 23, 26)"
