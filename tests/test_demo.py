import re

import numpy as np
import pytest

from strategies import random_forest
from treedot import SubsetTreeKernel, demo
from treedot.vectors.fidelity import error_over_floor, floor, spearman


def test_the_demo_finds_similar_functions_and_writes_a_page(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo, "COMPARED", 40)
    monkeypatch.setattr(demo, "SIZE", 1024)
    lines = []
    page = demo.run(tmp_path / "out", 120, say=lines.append)
    text = page.read_text()
    assert "<img" in text
    assert not re.search(r"(src|href)=.(?!data:)", text)  # self-contained
    assert "Spearman" in "\n".join(lines)
    assert sum(".py:" in line for line in lines) == 10


def test_similar_pairs_are_different_functions_of_some_size():
    forest = demo.standard_library(300)
    assert forest.sizes.min() >= 30
    found, _ = demo.most_similar(forest)
    assert len(found) == 10
    assert all(pair["a"] != pair["b"] and pair["exact"] < 1 for pair in found)
    exact = [pair["exact"] for pair in found]
    assert max(abs(pair["exact"] - pair["estimate"]) for pair in found) < 0.3
    assert exact[0] > 0.5


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
