"""What was found among trees is kept: the same again, or nothing."""

import sqlite3
from importlib import import_module

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies import random_forest
from treedot import Forest
from treedot.cli import main
from treedot.clones import duplicates, similar_trees
from treedot.clones.baseline import write_baseline
from treedot.clones.duplicates import find_duplicates, near_duplicates
from treedot.clones.listed import groups_of
from treedot.readers.code import parse_cache
from treedot.readers.code.parse_cache import ParseCache, keeping_parsed


@pytest.fixture
def searched(monkeypatch):
    """The thresholds of all searches."""
    thresholds = []
    search = duplicates.similar_pairs

    def watched(multisets, threshold, n_jobs=None, *, counted):
        thresholds.append(threshold)
        return search(multisets, threshold, n_jobs, counted=counted)

    monkeypatch.setattr(duplicates, "similar_pairs", watched)
    return thresholds


def some_forest(seed=0, trees=12):
    """Return generated trees, some of them equal, with places that overlap."""
    forest = random_forest(seed, trees, 12)
    forest = Forest.concat([forest, forest[: trees // 3]])
    n = len(forest)
    forest.columns.update(
        file=[f"{i % 3}.py" for i in range(n)], start=[i // 6 for i in range(n)],
        end=[i // 6 + 1 for i in range(n)], blurred=[np.arange(i % 4) for i in range(n)],
        name=[f"f{i}" for i in range(n)],
    )  # fmt: skip
    return forest


def find(forest, folder, **how):
    with keeping_parsed(ParseCache(folder)):
        return near_duplicates(forest, **how)


def spoil(folder, change):
    with sqlite3.connect(folder / parse_cache.FILE) as database:
        rows = database.execute("SELECT key, entry FROM found ORDER BY key").fetchall()
        for key, entry in change(rows):
            database.execute("UPDATE found SET entry = ? WHERE key = ?", (entry, key))
    database.close()


@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.3, 0.7, 1.0]), st.integers(2, 6))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_kept_search_gives_the_same_without_searching(tmp_path, searched, seed, threshold, min_nodes):
    forest = some_forest(seed)
    how = {"threshold": threshold, "min_nodes": min_nodes}
    plain = near_duplicates(forest, **how)
    find(forest, tmp_path, **how)
    before = len(searched)
    again = find(forest, tmp_path, **how)
    assert len(searched) == before
    assert groups_of(again) == groups_of(plain)
    assert list(again.partners()) == list(plain.partners())
    for found, name in ((plain, "plain"), (again, "again")):
        write_baseline(tmp_path / name, forest, found, forest.columns["name"])
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "again").read_bytes()


def test_only_trees_in_pairs_or_with_copies_are_kept():
    forest = some_forest()
    found = near_duplicates(forest, threshold=0.3, min_nodes=2)
    in_pairs = set(found.near.a) | set(found.near.b) | set(found.too_common.a) | set(found.too_common.b)
    for k, copies in enumerate(found.trees.copies):
        assert k in in_pairs or len(copies) > 1 or (found.kind == k).sum() == 1
    assert len(found.trees.copies) < len(forest)


def test_other_trees_or_settings_are_searched(tmp_path, searched):
    forest = some_forest()
    others = [
        (forest, {}), (forest, {"threshold": 0.71}), (forest, {"min_nodes": 41}), (forest[1:], {}),
        (Forest(forest.label, forest.arity, forest.offsets, [f"{x}'" for x in forest.labels]), {}),
    ]  # fmt: skip
    for _ in range(2):
        for trees, how in others:
            find(trees, tmp_path, **how)
    assert len(searched) == len(others)


def test_places_are_not_kept(tmp_path, searched):
    """They may change while the trees stay the same."""
    forest = Forest.concat([random_forest(1, 1, 12)] * 2)
    forest.columns.update(file=["a", "a"], start=[1, 5], end=[4, 9])
    assert len(groups_of(find(forest, tmp_path, min_nodes=2))) == 1
    forest.columns.update(file=["a", "a"], start=[1, 1], end=[9, 9])
    assert groups_of(find(forest, tmp_path, min_nodes=2)) == []
    assert len(searched) == 1


@pytest.mark.parametrize("place", [0, 17, 30, -1])
def test_a_damaged_entry_is_ignored_and_replaced(tmp_path, searched, place):
    forest = some_forest()
    first = find(forest, tmp_path, threshold=0.3, min_nodes=2)

    def damaged(rows):
        for key, entry in rows:
            spoiled = bytearray(entry)
            spoiled[place] ^= 1
            yield key, bytes(spoiled)

    spoil(tmp_path, damaged)
    for _ in range(2):
        again = find(forest, tmp_path, threshold=0.3, min_nodes=2)
        assert groups_of(again) == groups_of(first)
    assert len(searched) == 2


def test_an_entry_of_other_trees_is_ignored(tmp_path, searched):
    forests = [some_forest(0), some_forest(1)]
    first = [groups_of(find(forest, tmp_path, threshold=0.3, min_nodes=2)) for forest in forests]
    spoil(tmp_path, lambda rows: [(rows[0][0], rows[1][1]), (rows[1][0], rows[0][1])])
    assert [groups_of(find(forest, tmp_path, threshold=0.3, min_nodes=2)) for forest in forests] == first
    assert len(searched) == 4


def test_the_size_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(parse_cache, "MAX_FOUND", 6_000)
    for seed in range(12):
        find(some_forest(seed), tmp_path, threshold=0.3, min_nodes=2)
    with sqlite3.connect(tmp_path / parse_cache.FILE) as database:
        entries, size = database.execute("SELECT COUNT(*), SUM(LENGTH(entry)) FROM found").fetchone()
    database.close()
    assert 0 < entries < 12
    assert size <= 6_000


def test_reached_limits_are_reported_again(tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("treedot.clones.similarity"), "MAX_SIMILAR", 1)
    counts = []
    for _ in range(2):
        find(some_forest(trees=30), tmp_path, threshold=0.01, min_nodes=2, on_limit=counts.append)
    assert counts[0] > 0
    assert counts == counts[:1] * 2


def test_python_keeps_nothing(monkeypatch, searched):
    monkeypatch.setattr(similar_trees, "_written", None)
    find_duplicates(some_forest(), min_nodes=2)
    find_duplicates(some_forest(), min_nodes=2)
    assert len(searched) == 2


def test_a_second_run_of_dups_finds_the_same_without_searching(tmp_path, monkeypatch, searched, capsys):
    monkeypatch.setenv("TREEDOT_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "source"
    source.mkdir()
    body = "def f{0}(values, x):\n    total = {0}\n    for y in values:\n        total += x * y\n"
    for k in range(3):
        (source / f"m{k}.py").write_text(body.format(k))
    outputs = []
    for _ in range(2):
        assert main(["dups", str(source), "--min-nodes", "10"]) == 0
        outputs.append(capsys.readouterr())
    assert outputs[0] == outputs[1]
    assert "1 group of 3 functions" in outputs[0].err
    assert len(searched) == 1
    (source / "m3.py").write_text(body.format(3).replace("*", "-"))
    assert main(["dups", str(source), "--min-nodes", "10"]) == 0
    assert "among 4 functions" in capsys.readouterr().err
    assert len(searched) == 2
