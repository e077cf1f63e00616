"""The pages of explanations in a real browser; skipped where there is no Playwright or no Chromium."""

import shutil

import pytest
from sklearn.pipeline import make_pipeline

from strategies import random_forest
from treedot import DualLinearSVC, FragmentVectorizer, Tree, explain, explain_pair

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

HOSTILE = Tree.parse("(S (A </script><img\\x20src=x>) (B &amp;))")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    forest = random_forest(3, 30, 30)
    model = make_pipeline(FragmentVectorizer(), DualLinearSVC()).fit(forest, [k % 2 for k in range(30)])
    large = random_forest(4, 1, 400)[0]
    texts = {
        "small": explain(model, forest[0]).to_html(),
        "large": explain(model, large).to_html(),
        "hostile": explain(model, HOSTILE).to_html(),
        "pair": explain_pair(forest[0], forest[3]).to_html(),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser, pages):
    """Return a function that opens a page at a width; there must be neither errors nor other requests."""
    opened, problems = [], []

    def open_at(name: str, width: int = 1200, **settings):
        page = browser.new_page(viewport={"width": width, "height": 900}, **settings)
        page.on("pageerror", lambda error: problems.append(str(error)))
        address = (pages / f"{name}.html").as_uri()
        page.on("request", lambda request: request.url == address or problems.append(request.url))
        page.goto(address)
        opened.append(page)
        return page

    yield open_at
    for page in opened:
        page.close()
    assert problems == []


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("name", ["small", "large", "hostile", "pair"])
def test_pages_fit_the_screen(open_page, name, width):
    page = open_page(name, width)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_node_that_is_touched_shows_its_number(open_page):
    page = open_page("small", 400)
    node = page.locator(".tree g.for").first
    number = node.locator(".number")
    assert number.evaluate("node => getComputedStyle(node).visibility") == "hidden"
    node.focus()
    assert number.evaluate("node => getComputedStyle(node).visibility") == "visible"
    assert float(number.text_content()) > 0


def test_a_folded_subtree_is_a_link_to_its_own_picture(open_page):
    page = open_page("large")
    link = page.locator(".tree a").first
    target = page.locator(link.get_attribute("href"))
    assert not target.is_visible()
    link.click()
    target.wait_for(state="visible")


def test_labels_stay_text(open_page):
    page = open_page("hostile")
    assert page.locator("img").count() == 0
    assert "</script><img src=x>" in page.locator(".words").inner_text()


def test_the_page_is_dark_where_that_is_wanted(open_page):
    colors = [
        open_page("small", color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert colors == ["rgb(255, 255, 255)", "rgb(20, 23, 26)"]
