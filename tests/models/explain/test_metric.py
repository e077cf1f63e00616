"""The parts of a learned similarity sum to it, and are what a fragment alone adds."""

import numpy as np
import pytest

from strategies import corpus, random_forest
from treedot import FragmentVectorizer, read_trees
from treedot.errors import ParameterError
from treedot.models import TreeMetric
from treedot.models.explain import explain_metric
from treedot.vectors.metric.triangle import square

FOREST = random_forest(3, 40, 14)
SETTINGS = {
    "hashed": {},
    "dictionary": {"vectorizer": FragmentVectorizer(n_features=None, budget=2)},
    "not normalised": {"vectorizer": FragmentVectorizer(normalize=False, damping="linear")},
}


def metric_of(forest, seed=1, **settings):
    groups = np.random.default_rng(seed).integers(0, 6, len(forest))
    return TreeMetric(n_columns=128, shrinkage=1.0, **settings).fit(forest, groups).metric_


def parts_of(metric, tree):
    """Return the bounded fragments of a tree, and what each adds to the hashed row, before it is scaled."""
    vectorizer = FragmentVectorizer._of_rows(metric.rows)
    found = vectorizer.occurrences(tree)
    parts = np.zeros((found.value.size, 128))
    for k in np.flatnonzero(found.column >= 0):
        column, sign = metric.folding.places(found.column[k : k + 1])
        parts[k, column] = sign * found.value[k]
    return parts


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("pair", [(0, 1), (5, 9), (7, 7)])
def test_every_fragment_adds_what_it_alone_adds_to_the_linear_form(name, pair):
    metric = metric_of(FOREST, **SETTINGS[name])
    a, b = (FOREST[k] for k in pair)
    found = explain_metric(metric, a, b, n_fragments=10**6)
    matrix = square(metric.tiles, 128).astype(float)
    parts = [parts_of(metric, tree) for tree in (a, b)]
    lengths = [np.linalg.norm(part.sum(axis=0)) for part in parts]
    vectors = [(part.sum(axis=0) / p - metric.mean) @ matrix for part, p in zip(parts, lengths, strict=True)]
    norms = [np.linalg.norm(vector) for vector in vectors]
    value = vectors[0] @ vectors[1] / norms[0] / norms[1]
    assert found.value == pytest.approx(value, abs=1e-12)
    for own, other, shares in ((0, 1, found.fragments_a), (1, 0, found.fragments_b)):
        form = matrix @ vectors[other] / norms[other]
        expected = parts[own] @ form / lengths[own] / norms[own]
        listed = [share.value for share in shares]
        assert sorted(listed) == pytest.approx(sorted(expected), abs=1e-12)
        assert (np.diff(np.abs(listed)) <= 1e-15).all()
    for values, mean in ((found.a, found.mean_a), (found.b, found.mean_b)):
        assert values.contribution + mean == pytest.approx(value, abs=1e-12)
        assert values.node_values.sum() == pytest.approx(values.contribution, abs=1e-12)
    products = metric.transform([a]) @ metric.transform([b]).T
    assert found.value == pytest.approx(float(products[0, 0]), abs=1e-6)


def test_a_node_gets_an_equal_share_of_every_occurrence():
    metric = metric_of(FOREST)
    found = explain_metric(metric, FOREST[0], FOREST[1], n_fragments=10**6)
    values = np.zeros(FOREST[0].size)
    for share in found.fragments_a:
        for nodes in share.nodes:
            values[nodes] += share.value / len(share.nodes) / len(nodes)
    assert found.a.node_values == pytest.approx(values, abs=1e-12)


def test_an_explanation_can_be_printed():
    found = explain_metric(metric_of(FOREST), FOREST[0], FOREST[1], n_fragments=3)
    lines = str(found).splitlines()
    assert lines[0] == f"learned similarity {found.value:+.3f}"
    assert len(lines) == 11
    assert str(found.fragments_a[0].fragment) in lines[3]


def test_what_cannot_be_explained_is_refused():
    rows = TreeMetric(shrinkage=1.0).fit(np.eye(4), [0, 0, 1, 1]).metric_
    with pytest.raises(ParameterError, match="learned from trees"):
        explain_metric(rows, FOREST[0], FOREST[1])
    with pytest.raises(ParameterError, match="metric must be a Metric, not TreeMetric"):
        explain_metric(TreeMetric(), FOREST[0], FOREST[1])


@pytest.mark.corpus
def test_parts_sum_to_the_similarity_of_functions_in_bigclonebench():
    trees = read_trees(corpus("bcb_functions.tsv.gz"))[:200]
    metric = TreeMetric(n_columns=512, shrinkage=1.0).fit(trees, trees.columns["clone_class"]).metric_
    vectors = metric.transform(trees[:6])
    for k in range(5):
        found = explain_metric(metric, trees[k], trees[k + 1])
        assert found.value == pytest.approx(float(vectors[k] @ vectors[k + 1]), abs=1e-6)
        assert found.a.contribution + found.mean_a == pytest.approx(found.value, abs=1e-10)
        assert found.b.contribution + found.mean_b == pytest.approx(found.value, abs=1e-10)
