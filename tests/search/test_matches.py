"""Matches are ordered by both measures, and those below the threshold are left out."""

import numpy as np
import pytest

from strategies import random_forest
from treedot import Forest, FragmentVectorizer, TreeIndex, similarity
from treedot.errors import ParameterError
from treedot.readers import CodeSettings, parse_code
from treedot.search.matches import find_matches


def code(name, seed):
    rng = np.random.default_rng(seed)
    lines = [f"    {name}{i} = {name}.load({rng.integers(9)}, [{name}{i}] + b)" for i in range(3 + seed % 5)]
    loop = f"    for {name} in b:\n        if {name} > {seed}:\n            c.append({name})"
    return "\n".join([f"def {name}_{seed}(b):", *lines, *([loop] * (seed % 3)), "    return b\n"])


@pytest.fixture
def index(tmp_path):
    text = "\n\n".join(code(name, seed) for name in ("row", "word", "tree") for seed in range(8))
    forest = parse_code(text, "python")
    reading = {"identifiers": "keep", "literals": "keep"}
    return TreeIndex.build(forest, tmp_path / "x", idf=True, reading=reading), forest


def blurred(forest):
    source = "\n".join(code(*name.rsplit("_", 1)[:1], int(name.rsplit("_", 1)[1])) for name in forest)
    return parse_code(source, "python", settings=CodeSettings(identifiers="blur", literals="blur"))


def test_both_measures_are_those_of_their_definitions(index):
    found, forest = index
    names = forest.columns["name"]
    structure = blurred(names)
    rows = FragmentVectorizer(n_features=2**30, idf=True).fit(forest).transform(forest)
    used = np.unique(rows.indices)
    dense = rows[:, used].toarray()
    products = dense @ dense.T
    matches = find_matches(found, forest[:4], 24, threshold=0)
    for query, mine in enumerate(matches):
        for match in mine:
            assert match.cosine == pytest.approx(products[query, match.row], abs=1e-5)
            assert match.similarity == similarity(structure[[query]], structure[[match.row]])
        order = [2 * match.cosine + match.similarity for match in mine]
        assert order == sorted(order, reverse=True)
        assert mine[0].row == query


def test_the_threshold_applies_to_the_better_measure(index):
    found, forest = index
    every = find_matches(found, forest[:3], 24, threshold=0)
    chosen = find_matches(found, forest[:3], 24, threshold=0.8)
    assert chosen == [[m for m in mine if max(2 * m.cosine, m.similarity) >= 0.8] for mine in every]
    assert any(match.cosine < 0.4 for mine in chosen for match in mine)
    assert find_matches(found, forest[:3], 24) == [[m for m in mine if m.likeness >= 0.55] for mine in every]
    assert [len(mine) for mine in find_matches(found, forest[:3], 2, threshold=0)] == [2, 2, 2]
    with pytest.raises(ParameterError, match="threshold"):
        find_matches(found, forest[:1], threshold=1.5)


def test_trees_that_are_not_code_have_no_threshold(tmp_path):
    forest = random_forest(0, 30)
    index = TreeIndex.build(forest, tmp_path / "x")
    (mine,) = find_matches(index, forest[:1], 30)
    assert min(match.likeness for match in mine) < 0.6
    assert find_matches(index, Forest.from_trees([])) == []
