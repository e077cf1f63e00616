"""The tour: one page, the same in every run apart from times, and its measurements."""

import json
import os
import re

import numpy as np
import pytest

from strategies import random_forest
from treedot import SubsetTreeKernel, read_trees
from treedot.cli.tour import page, scaling
from treedot.cli.tour.growth import crossing_words
from treedot.cli.tour.library import library_root, pieces, standard_library, units
from treedot.cli.tour.plots import Curve, log_plot, scatter
from treedot.cli.tour.scaling import WAYS, Growth, crossing
from treedot.cli.tour.section import END, MEASURED
from treedot.serve.example_questions import questions
from treedot.vectors.fidelity import error_over_floor, floor, spearman

FUNCTIONS = 600
SIZES = [100, 1000, 10_000]


@pytest.fixture(scope="module")
def tours(tmp_path_factory):
    """Return the pages and the printed lines of two runs."""
    found = []
    for name in ("first", "second"):
        lines = []
        path = page.write_tour(tmp_path_factory.mktemp("tour") / name, FUNCTIONS, say=lines.append)
        assert os.listdir(path.parent) == ["index.html"]
        found.append((path, path.read_text(encoding="utf-8"), lines))
    return found


@pytest.mark.slow
def test_two_runs_give_the_same_page_apart_from_times(tours):
    first, second = (re.sub(f"{MEASURED}.*?{END}", "", text, flags=re.DOTALL) for _, text, _ in tours)
    assert first == second
    assert len(first) > 0.8 * len(tours[0][1])


@pytest.mark.slow
def test_the_tour_prints_three_results_and_the_path(tours):
    path, _, lines = tours[0]
    said = "\n".join(lines)
    assert len(said.splitlines()) <= 30
    assert [line[:2] for line in lines if not line.startswith(" ")] == ["1.", "2.", "3.", "Th"]
    assert "accuracy 0.9" in said
    assert lines[-1].endswith(str(path))


@pytest.mark.slow
def test_the_page_holds_everything_and_says_what_each_picture_shows(tours):
    _, text, lines = tours[0]
    links = re.findall(r"(?:src|href)=\"([^\"]*)\"", text)
    assert links
    assert all(link.startswith("#") and f'id="{link[1:]}"' in text for link in links)
    captions = re.findall(r"<figcaption>(.*?)</figcaption></figure>", text, re.DOTALL)
    assert len(captions) == text.count("<figure>") == 8
    assert all(caption.rstrip().endswith(".") for caption in captions)
    assert text.count('<svg class="plot"') == 4
    groups = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["groups"]
    assert [group.get("open", False) for group in groups[:5]] == [True, True, True, False, False]
    assert all(group["members"][0]["place"] in "\n".join(lines) for group in groups[:3])


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_every_screen_in_light_and_dark(tours, browser, width):
    backgrounds = set()
    for scheme in ("light", "dark"):
        opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        problems = []
        opened.on("pageerror", lambda error, problems=problems: problems.append(str(error)))
        opened.goto(tours[0][0].as_uri())
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert opened.locator("details.group[open] .code").count() == 3
        backgrounds.add(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
        opened.close()
        assert problems == []
    assert len(backgrounds) == 2


def test_a_tour_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("midway")

    monkeypatch.setattr(page, "units", fail)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "index.html").write_text("old")
    for name in ("old", "new", "deep/new"):
        with pytest.raises(RuntimeError, match="midway"):
            page.write_tour(tmp_path / name, FUNCTIONS)
    assert os.listdir(tmp_path) == ["old"]
    assert (tmp_path / "old" / "index.html").read_text() == "old"


def growth(number, seconds):
    return Growth(WAYS[number], SIZES, seconds, [100] * len(seconds))


def test_the_crossing_is_where_the_measured_lines_meet():
    exact, dense = growth(0, [0.1, 10.0, 1000.0]), growth(1, [1.0, 10.0**0.5, 10.0])
    at = crossing(exact, dense)
    assert 100 < at < 1000
    assert exact.slope == pytest.approx(2)
    assert dense.slope == pytest.approx(0.5)
    assert crossing_words([exact, dense]).startswith("From about ")


def test_lines_that_do_not_meet_are_reported_as_such():
    fast, slow = growth(0, [0.1, 0.2]), growth(1, [1.0, 2.0, 3.0])
    assert crossing(fast, slow) is None
    assert "do not cross: up to 1,000 trees, the exact Gram matrix" in crossing_words([fast, slow])
    slow, fast = growth(0, [1.0]), growth(1, [0.1, 0.2, 0.3])
    assert crossing(slow, fast) is None
    assert slow.slope is None
    assert "do not cross: already for 100 trees, dense vectors" in crossing_words([slow, fast])


def test_what_was_not_measured_is_expected_by_the_exponent():
    exact, dense = growth(0, [1.0]), growth(1, [1.0, 2.0, 3.0])
    assert exact.beyond(exact.seconds) == [(1000, 100.0), (10_000, 10_000.0)]
    assert exact.at_most(exact.seconds) == 10_000
    assert not exact.is_complete
    assert dense.beyond(dense.seconds) == []
    assert dense.at_most(dense.seconds) == 3
    assert dense.is_complete


def test_measuring_stops_where_a_step_takes_too_long_or_too_much_memory(monkeypatch):
    monkeypatch.setattr(scaling, "SIZES", (2, 4, 8, 16))
    ways = (
        WAYS[0]._replace(work=lambda forest: len(forest) ** 2 * 10**7),
        WAYS[1]._replace(work=lambda forest: len(forest) * 10**9),
    )
    monkeypatch.setattr(scaling, "WAYS", ways)
    steps = []
    found = scaling.growths(random_forest(0, 16), lambda: steps.append(1))
    assert [one.trees for one in found] == [[2, 4, 8], [2, 4, 8, 16]]
    assert len(steps) == 8
    monkeypatch.setattr(scaling, "PATIENCE", -1.0)
    assert [one.trees for one in scaling.growths(random_forest(0, 5), lambda: None)] == [[2], [2]]


def test_a_plot_draws_expected_values_dashed_and_keeps_names_apart():
    measured = Curve("dense", "dense vectors", [(100, 1.0), (1000, 10.0)], [])
    expected = Curve("exact", "exact Gram matrix", [(100, 0.9)], [(1000, 11.0)])
    plot = log_plot("Time", [measured, expected], "trees", str, mark=300)
    assert plot.count('class="beyond"') == plot.count('class="mark"') == 1
    names = re.findall(r'y="([\d.]+)"[^>]*class="name">(dense|exact)', plot)
    heights = {name: float(height) for height, name in names}
    assert heights["dense"] - heights["exact"] > 30
    assert "nan" not in log_plot("One point", [expected._replace(beyond=[])], "trees", str)


def test_points_that_cover_each_other_are_drawn_once():
    plot = scatter("Points", np.array([0.5, 0.5, 0.2]), np.array([0.5, 0.5001, 0.3]), "x", "y")
    assert plot.count("h0") == 2


def test_the_questions_of_the_package_are_those_of_the_documentation():
    assert questions() == read_trees("docs/examples/questions.tsv")
    assert len(questions()) == 300


@pytest.mark.slow
def test_the_functions_of_the_tour_are_always_the_same_ones():
    root = library_root()
    forest = standard_library(root, 300)
    assert forest.sizes.min() >= 30
    assert len(set(map(str, forest))) == len(forest) == 300
    some, more = units(root, 100), units(root, 150)
    assert some.sizes.min() >= 40
    assert some == more[:100]
    assert some.columns["file"] == more.columns["file"][:100]


def test_pieces_are_different_subtrees_of_moderate_size():
    forest = random_forest(0, 50, nodes=120)
    found = pieces(forest, 30)
    texts = [str(tree) for tree in found]
    assert len(set(texts)) == len(texts) == 30
    assert found.sizes.min() >= 10
    assert found.sizes.max() <= 100
    assert all(any(text in str(tree) for tree in forest) for text in texts)
    assert found == pieces(forest, 30)


@pytest.mark.slow
def test_the_floor_is_what_a_random_projection_does():
    forest = random_forest(0, 12, nodes=12)
    exact = SubsetTreeKernel(decay=0.5).gram(forest)
    roots = np.linalg.cholesky(exact + 1e-9 * np.eye(12))
    errors = []
    for seed in range(400):
        projection = np.random.default_rng(seed).normal(size=(12, 200)) / np.sqrt(200)
        vectors = roots @ projection
        errors.append(vectors @ vectors.T - exact)
    measured = np.sqrt(np.mean(np.square(errors), axis=0))
    assert np.allclose(measured / floor(exact, 200), np.ones((12, 12)), atol=0.5)
    off = ~np.eye(12, dtype=bool)
    assert np.allclose((measured / floor(exact, 200))[off], 1, atol=0.2)
    assert error_over_floor(exact, exact, 10) == 0
    assert spearman(exact, exact * 3) == pytest.approx(1)
