import json
import os
import re
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from strategies import random_forest
from treedot import SubsetTreeKernel
from treedot.cli import demo_page
from treedot.vectors.fidelity import error_over_floor, floor, spearman

pytestmark = pytest.mark.slow

ROOT = Path(sysconfig.get_paths()["stdlib"])


def test_the_demo_finds_near_duplicates_and_writes_one_page(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo_page, "COMPARED", 40)
    monkeypatch.setattr(demo_page, "SIZE", 1024)
    lines = []
    page = demo_page.write_demo(tmp_path / "out", 600, say=lines.append)
    said = "\n".join(lines)
    first = page.read_text(encoding="utf-8")
    groups = json.loads(re.search(r'id="data">(.*?)</script>', first, re.DOTALL)[1])
    printed = [group for group in groups if f"{group['rank']}. {group['facts']}" in said]
    assert printed == groups[:10] != []
    for member in groups[0]["members"]:
        assert f"  {member['place']} {member['name']}\n" in said
        assert any(f"def {member['name'].split('.')[-1]}(" in line for line in member["lines"])
    assert os.listdir(page.parent) == ["index.html"]
    assert first.count("<img") == 2
    assert re.findall(r"(?:src|href)=.((?!data:)[^\"']*)", first) == []
    assert "Spearman" in said
    assert sum("sparse rows, dense rest" in line for line in lines) == len(demo_page.DECAYS)


def test_the_functions_of_the_demo_are_always_the_same_ones():
    forest = demo_page.standard_library(ROOT, 300)
    assert forest.sizes.min() >= 30
    assert len(set(map(str, forest))) == len(forest) == 300
    some, more = demo_page.units(ROOT, 100), demo_page.units(ROOT, 150)
    assert some.sizes.min() >= 40
    assert some == more[:100]
    assert some.columns["file"] == more.columns["file"][:100]


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
