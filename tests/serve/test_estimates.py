import math

import numpy as np
import pytest

from strategies import random_forest
from treedot import DistributedTreeVectorizer, SubsetTreeKernel
from treedot.errors import LimitError, ParameterError
from treedot.serve import estimates
from treedot.serve.comparing import Pair
from treedot.serve.decoding import ReadBack
from treedot.serve.estimates import SEEDS, Estimates
from treedot.serve.fields import COMPARE, COMPONENTS, read_fields

BIRD = "(S (NP (DT the) (NN bird)) (VP (VBZ sees) (NP (DT the) (NN tree))))"
CAT = "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN bird))))"


def estimated(a, b, **settings):
    fields = read_fields(COMPARE, {"a": a, "b": b, **settings})
    return Estimates.of(Pair.of(fields), fields)


@pytest.mark.parametrize("composition", ["mixed", "product", "convolution"])
def test_estimates_are_dot_products_of_vectors(composition):
    found = estimated(BIRD, CAT, components=512, composition=composition, decay=0.3)
    assert [one.components for one in found.ladder] == [256, 512]
    for one in found.ladder:
        for seed in (0, SEEDS - 1):
            vectorizer = DistributedTreeVectorizer(
                n_components=one.components, decay=0.3, composition=composition, random_state=seed
            )
            a, b = vectorizer.transform([BIRD, CAT]).astype(float)
            assert one.values[seed] == pytest.approx(a @ b)


@pytest.mark.parametrize(("composition", "most"), [("mixed", 3), ("product", 6), ("convolution", 3)])
def test_estimates_close_in_on_the_exact_kernel(composition, most):
    found = estimated(BIRD, CAT, components=COMPONENTS[-1], composition=composition)
    exact = SubsetTreeKernel(0.4, normalize=True)(BIRD, CAT)
    assert found.exact == exact
    errors = [math.sqrt(np.mean((np.array(one.values) - exact) ** 2)) for one in found.ladder]
    slope = np.polyfit(np.log([one.components for one in found.ladder]), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35  # a root would be -0.5; 20 seeds scatter by 0.05, products by more
    for one in found.ladder:
        assert abs(one.mean - exact) < 4 * one.error / math.sqrt(SEEDS)
        assert one.expected_error / 2 < one.error < most * one.expected_error


def read_back(a, b, **settings):
    fields = read_fields(COMPARE, {"a": a, "b": b, **settings})
    return ReadBack.of(Pair.of(fields), fields)


def test_both_trees_are_read_back_with_a_certificate():
    found = read_back(BIRD, CAT, components=1024)
    assert [str(one.tree) for one in found.found] == [BIRD, CAT]
    assert found.is_same == [True, True]
    assert all(one.is_certified for one in found.found)


def test_a_tree_that_is_too_large_for_its_vector_has_no_certificate():
    a, b = map(str, random_forest(0, 2, nodes=400))
    found = read_back(a, b, components=256)
    assert not any(one.is_certified for one in found.found)


def test_what_cannot_be_read_back_is_refused():
    with pytest.raises(ParameterError, match="decay=0"):
        read_back(BIRD, CAT, decay=0)
    with pytest.raises(LimitError, match="not read back"):
        read_back(f"(A {'b ' * 1100})", CAT)


def test_trees_of_one_node_have_no_kernel():
    found = estimated("(A)", "(A)", components=256)
    assert found.exact == 0
    assert set(found.ladder[0].values) == {0.0}


def test_estimates_that_would_take_too_long_are_refused(monkeypatch):
    monkeypatch.setattr(estimates, "MAX_SECONDS", estimates.MAX_SECONDS / 10)
    a, b = map(str, random_forest(0, 2, nodes=90))
    with pytest.raises(LimitError, match="smaller d"):
        estimated(a, b, components=COMPONENTS[-1], composition="convolution")
    assert estimated(a, b, components=256, composition="convolution").ladder


def test_the_page_and_the_interface_show_the_same(site):
    fields = {"a": BIRD, "b": CAT, "components": 512}
    found = site.post("/api/estimates", json=fields).json()
    assert found["exact"] == pytest.approx(estimated(BIRD, CAT).exact)
    page = site.get("/estimates", params=fields).text
    assert page.count("<circle") == 2 * SEEDS
    assert f"{found['estimates'][-1]['mean']:.4f}" in page
    found = site.post("/api/decode", json=fields).json()
    assert found["a"]["tree"] == BIRD
    assert found["b"]["is_certified"]
    assert site.get("/decode", params=fields).text.count("the same tree") == 2
