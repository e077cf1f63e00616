"""Trees that are made alike are found together, and what is like none is left alone."""

import numpy as np
import pytest
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score

from strategies import random_forest
from treedot import Forest, FragmentVectorizer, Tree, cluster_trees, dot_products
from treedot.errors import ParameterError
from treedot.search import clusters as module

TAGS = ("div", "span", "ul", "li", "a", "p", "section", "table", "td", "img", "nav", "form")


def grown(random, depth):
    children = [grown(random, depth - 1) for _ in range(random.integers(1, 4))] if depth else []
    return Tree(str(random.choice(TAGS)), children)


def pages(templates, each, noise, seed=0):
    """Return pages of some templates, each with 0 to 50 items, and pages of none; and their templates."""
    random = np.random.default_rng(seed)
    made, truth = [], []
    for number in range(templates):
        head, item, foot = grown(random, 4), grown(random, 3), grown(random, 3)
        for _ in range(each):
            extra = [Tree("p")] * int(random.integers(0, 3))
            items = Tree("main", [item] * int(random.integers(0, 51)))
            made.append(Tree("html", [Tree("body", [head, *extra, items, foot])]))
            truth.append(number)
    made += [Tree("html", [Tree("body", [grown(random, 5) for _ in range(3)])]) for _ in range(noise)]
    return made, truth + [-1] * noise


@pytest.mark.parametrize(("templates", "each", "noise"), [(6, 20, 15), (4, 60, 20)])
def test_pages_of_one_template_are_one_cluster(templates, each, noise):
    made, truth = pages(templates, each, noise)
    found = cluster_trees(made)
    assert adjusted_rand_score(truth, found.labels) >= 0.95
    assert len(found.sizes) == templates


@pytest.mark.parametrize(("templates", "noise"), [(1, 0), (1, 10), (0, 30)])
def test_everything_may_be_one_cluster_or_none(templates, noise):
    made, truth = pages(templates, 30, noise)
    found = cluster_trees(made)
    assert len(found.sizes) == templates
    assert np.mean(found.labels == truth) >= 0.95  # a page without items may be like no other


def test_clusters_are_those_of_hdbscan_on_all_distances():
    forest = random_forest(3, 60, 12)
    forest = Forest.from_trees([Tree("top", [Tree("a", [Tree("b")]), tree]) for tree in forest])
    rows = FragmentVectorizer().transform(forest).astype(float)
    cosines = np.zeros((63, 63))
    cosines[:3, :3] = 1
    cosines[3:, 3:] = dot_products(rows)
    distances = np.maximum(np.sqrt(np.clip(2 - 2 * cosines, 0, None)), module.CLOSEST)
    np.fill_diagonal(distances, 0)
    expected = HDBSCAN(min_cluster_size=3, metric="precomputed", copy=True).fit_predict(distances)
    expected[expected == expected[0]] = -1
    found = cluster_trees(forest, min_size=3, threshold=0).labels
    assert adjusted_rand_score(expected[3:], found) == 1
    assert ((expected[3:] < 0) == (found < 0)).all()


def test_equal_trees_are_a_cluster_without_spread_however_many():
    found = cluster_trees(["(A (B b))"] * 40 + ["(C d)", "(E f)"])
    assert found.labels.tolist() == [0] * 40 + [-1, -1]
    assert found.sizes.tolist() == [40]
    assert found.medoids.tolist() == [0]
    assert found.spreads == pytest.approx([0], abs=1e-6)


def test_the_medoid_is_most_like_the_others_and_the_spread_says_how_much():
    made, _ = pages(3, 15, 0, seed=4)
    found = cluster_trees(made)
    cosines = dot_products(FragmentVectorizer().transform(made).astype(float))
    assert sorted(found.sizes, reverse=True) == found.sizes.tolist()
    for number, medoid in enumerate(found.medoids):
        members = np.flatnonzero(found.labels == number)
        assert found.sizes[number] == members.size
        means = cosines[np.ix_(members, members)].mean(axis=1)
        assert means.max() == pytest.approx(means[members == medoid][0], abs=1e-5)
        assert found.spreads[number] == pytest.approx(1 - means.max(), abs=1e-5)


def test_clusters_do_not_depend_on_threads_or_on_the_width_of_rows():
    made, _ = pages(3, 12, 8)
    plain = cluster_trees(made)
    for other in (
        cluster_trees(made, n_jobs=3),
        cluster_trees(Forest.from_trees(made), vectorizer=FragmentVectorizer(n_features=2**30)),
    ):
        assert other.labels.tolist() == plain.labels.tolist()
        assert other.medoids.tolist() == plain.medoids.tolist()


@pytest.mark.parametrize("trees", [[], ["(A b)"], ["(A b)"] * 4, [Tree("a")] * 3])
def test_fewer_trees_than_make_a_cluster_are_in_none(trees):
    found = cluster_trees(trees)
    assert found.labels.tolist() == [-1] * len(trees)
    assert found.sizes.size == found.medoids.size == found.spreads.size == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_size": 1}, "min_size must be at least 2"),
        ({"threshold": 1.5}, "threshold must be a number from 0 to 1"),
        ({"vectorizer": FragmentVectorizer(normalize=False)}, "normalize=True"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        cluster_trees(["(A b)"], **settings)
