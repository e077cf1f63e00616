"""A real browser walks through every page; any message of an error on its console fails."""

import re

import pytest

from components import component
from treedot.cli import main
from treedot.serve.topics.status import EXAMPLES

pytestmark = pytest.mark.slow

expect = component("chromium").expect
FUNCTION = (
    "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return total\n"
)
SCREENS = ((400, "light"), (1400, "light"), (1600, "dark"))


@pytest.fixture(scope="module")
def address(start):
    with start() as client:
        yield str(client.base_url).rstrip("/")


@pytest.fixture(params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def page(browser, request):
    """A page of a browser, which must not report an error."""
    width, scheme = request.param
    opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems = []
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    yield opened
    opened.close()
    assert not problems


def settled(page):
    page.wait_for_load_state()
    expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=30_000)


def fits(page):
    """Return whether the page is not wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_every_example_of_the_first_page_opens_with_its_result(page, address):
    page.goto(address)
    assert fits(page)
    for example in EXAMPLES:
        page.goto(address)
        page.get_by_role("link", name=example.title).click()
        settled(page)
        expect(page.locator(".ladder circle")).to_have_count(60, timeout=30_000)
        assert page.locator("[data-tree] svg").count() >= 2
        assert fits(page)


def test_pages_are_light_or_dark_as_the_browser_is(page, address):
    page.goto(f"{address}/compare")
    shown = page.evaluate(
        "['body', 'textarea', 'button'].map((name) => getComputedStyle(document.querySelector(name)))"
        ".map((style) => [style.color, style.backgroundColor])"
    )
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    for text, back in (map(luminance, pair) for pair in shown[:2]):
        assert (text > back) == is_dark
    for text, back in (map(luminance, pair) for pair in shown):
        assert (max(text, back) + 0.05) / (min(text, back) + 0.05) > 4.5  # the contrast that WCAG AA asks for


def luminance(colour):
    """Return the relative luminance of a colour such as ``rgb(20, 23, 26)``."""
    values = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_pointing_at_a_fragment_marks_it_in_both_trees(page, address):
    page.goto(address)
    page.get_by_role("link", name=EXAMPLES[0].title).click()
    settled(page)
    box = page.locator(".box").first
    box.hover()
    assert page.locator("[data-tree=a] .marked").count() == 2
    assert page.locator("[data-tree=b] .marked").count() == 2
    page.locator(".box").nth(1).focus()
    assert page.locator("[data-tree=b] .marked").count() == 1
    page.locator("[data-tree=a] [data-node='0']").hover()
    assert page.locator("[data-tree=b] .marked").count() == 1


def test_a_change_of_the_form_changes_the_result_and_the_link(page, address):
    page.goto(address)
    page.get_by_role("link", name=EXAMPLES[0].title).click()
    settled(page)
    before = page.locator(".facts").first.inner_text()
    page.locator("[name=decay]").fill("0.9")
    page.wait_for_url("**decay=0.9**")
    settled(page)
    assert page.locator(".facts").first.inner_text() != before
    page.get_by_role("radio", name="512").press("ArrowRight")
    page.get_by_role("radio", name="512").check(force=True)
    page.wait_for_url("**components=512**")
    expect(page.locator(".ladder circle")).to_have_count(40, timeout=30_000)
    shown = page.locator("[data-part=result]").inner_text()
    page.goto(page.url)  # the link holds the state
    settled(page)
    assert page.locator("[data-part=result]").inner_text() == shown
    page.locator("[name=a]").fill("(A (b")
    page.get_by_role("alert").wait_for()


def test_editing_the_tree_changes_the_decision(page, address):
    page.goto(address)
    page.get_by_role("link", name="see it decide").click()
    settled(page)
    assert "person" in page.locator(".says").inner_text()
    assert page.locator("[data-tree] .for").count() > 2
    tree = page.locator("[name=tree]")
    tree.fill(tree.input_value().replace("(WHNP (WP Who))", "(WHADVP (WRB Where))"))
    expect(page.locator(".says")).not_to_contain_text("person", timeout=30_000)
    assert fits(page)


def test_an_edit_counts_however_late_the_script_comes(page, address):
    page.route("**/serve.js", lambda route: (page.wait_for_timeout(1000), route.continue_()))
    page.goto(f"{address}/compare?a=(A b)&b=(A b)", wait_until="commit")
    page.locator("[name=b]").fill("(A c)")
    page.wait_for_url("**b=%28A+c%29**")
    assert page.locator("[name=b]").input_value() == "(A c)"


def test_trees_are_read_back_when_asked(page, address):
    page.goto(address)
    page.get_by_role("link", name=EXAMPLES[0].title).click()
    settled(page)
    page.get_by_role("link", name="Read both trees back").click()
    expect(page.get_by_text("the same tree")).to_have_count(2, timeout=30_000)
    assert page.url.startswith(f"{address}/compare")


def test_pages_are_used_without_a_mouse(page, address):
    page.goto(f"{address}/compare")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "a"


def test_results_follow_the_typing_and_open_side_by_side(page, start, tmp_path):
    (tmp_path / "module.py").write_text(FUNCTION + "\n\n" + FUNCTION.replace("+=", "-="))
    assert main(["index", str(tmp_path / "module.py"), "-o", str(tmp_path / "code.index")]) == 0
    with start(index=str(tmp_path / "code.index")) as client:
        page.goto(f"{client.base_url}/search")
        page.locator("[name=text]").fill(FUNCTION.replace("value", "number"))
        expect(page.locator(".results li")).to_have_count(2, timeout=30_000)
        expect(page.get_by_text("2 names renamed")).to_have_count(2)
        page.get_by_text("Side by side").nth(1).click()
        expect(page.locator(".code tbody tr")).to_have_count(5)
        expect(page.locator(".code td.changed mark").first).to_be_visible()
        expect(page.locator("[data-tree] svg")).to_have_count(2, timeout=30_000)
        page.locator("[data-tree=a] [data-node='0']").hover()
        assert page.locator("[data-tree=b] .marked").count() == 1
        assert fits(page)
