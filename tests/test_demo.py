import re
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from strategies import random_forest
from treedot import FragmentVectorizer, SubsetTreeKernel, demo, dot_products
from treedot.vectors.fidelity import error_over_floor, floor, spearman

ROOT = Path(sysconfig.get_paths()["stdlib"])


def test_the_demo_finds_similar_functions_and_writes_a_page(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo, "COMPARED", 40)
    monkeypatch.setattr(demo, "SIZE", 1024)
    lines = []
    page = demo.run(tmp_path / "out", 120, say=lines.append)
    text = page.read_text()
    assert text.count("<img") == 2
    assert text.count("<pre>") == 20
    assert "<mark>" in text
    assert not re.search(r"(src|href)=.(?!data:)", text)  # self-contained
    assert "Spearman" in "\n".join(lines)
    assert sum(".py:" in line for line in lines) == 10
    assert sum("sparse rows, dense rest" in line for line in lines) == len(demo.DECAYS)


def test_similar_pairs_are_different_functions_of_some_size():
    forest = demo.standard_library(ROOT, 300)
    assert forest.sizes.min() >= 30
    assert len(set(map(str, forest))) == len(forest)
    pairs = demo.search(forest).pairs
    assert len({i for pair in pairs for i in (pair.a, pair.b)}) == 2 * len(pairs) == 20
    assert all(pair.exact < 1 for pair in pairs)
    assert pairs[0].cosine > 0.5
    rows = FragmentVectorizer(n_features=2**30).transform(forest)
    assert dot_products(rows)[np.triu_indices(len(forest), 1)].max() == pytest.approx(pairs[0].cosine)


def test_differences_of_two_functions_are_marked():
    a = ["def f(x):", "    return x + 1", "    # end"]
    b = ["def g(x):", "    return x + 1"]
    assert demo._marked(a, b) == (
        "def <mark>f</mark>(x):\n    return x + 1\n<mark>    # end</mark>",
        "def <mark>g</mark>(x):\n    return x + 1",
    )
    assert demo._marked(["a < b"], ["a < c"])[0] == "a &lt; <mark>b</mark>"


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
