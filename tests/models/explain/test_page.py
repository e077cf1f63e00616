"""The pages of explanations and evaluations in a real browser."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from strategies import random_forest
from treedot import FragmentVectorizer, Tree, explain, explain_pair
from treedot.models import DualLinearSVC
from treedot.models.evaluation import evaluate
from treedot.models.evaluation_report import EvaluationReport, Mistake, as_page

pytestmark = pytest.mark.slow

CLASSES = np.array([f"a class with number {k}" for k in range(50)])
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
        "evaluation": as_page(
            EvaluationReport(
                "m", evaluate(CLASSES, CLASSES, CLASSES[::-1]), [Mistake(1, "a", "b", 2.0, str(large))]
            )
        ),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


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
@pytest.mark.parametrize("name", ["small", "large", "hostile", "pair", "evaluation"])
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


def test_a_mistake_opens_to_show_its_tree(open_page):
    page = open_page("evaluation")
    tree = page.locator(".mistake .tree").first
    assert not tree.is_visible()
    page.locator(".mistake summary").first.click()
    tree.wait_for(state="visible")


def test_a_wide_tree_shrinks_a_little_before_it_scrolls(open_page):
    widths = [
        open_page("large", width).evaluate(
            "(({clientWidth, scrollWidth}) => [clientWidth, scrollWidth])(document.querySelector('.tree'))"
        )
        for width in (1200, 400)
    ]
    assert widths[1][0] < widths[1][1] <= widths[0][1]


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
