"""Which pairs are near-duplicates: against the definition, written out."""

import math
import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from treedot import Forest, Tree, similarity
from treedot.clones.duplicates import near_duplicates
from treedot.clones.listed import groups_of
from treedot.clones.near_duplicates import reach

PARTS = [Tree(f"s{k}", ["x"]) for k in range(80)]
LANGUAGES = ("python", "go")


def some_forest(seed: int, count: int = 60) -> Forest:
    """Return trees of common and rare parts, many of them edited copies of others, with names."""
    rng = random.Random(seed)
    trees, names = [], []
    for _ in range(count):
        if trees and rng.random() < 0.6:
            k = rng.randrange(len(trees))
            kept = [part for part in trees[k].children if rng.random() < rng.choice((0.7, 0.85, 1))]
            trees.append(Tree(rng.choice("ff"), [*kept, *rng.sample(PARTS, rng.choice((0, 3, 6)))]))
            names.append([x if rng.random() < rng.choice((0.5, 1)) else rng.randrange(40) for x in names[k]])
        else:
            trees.append(Tree("f", rng.choices(PARTS[:30], k=5) + rng.sample(PARTS, 12)))
            names.append([rng.randrange(40) for _ in range(6)])
    forest = Forest.from_trees(trees)
    forest.columns.update(
        file=[f"{rng.randrange(9)}.py" for _ in trees],
        start=[10 * i for i in range(count)], end=[10 * i + 8 for i in range(count)],
        blurred=[np.array(some) for some in names], language=rng.choices(LANGUAGES, k=count),
    )  # fmt: skip
    return forest


def productions(tree: Tree) -> set[tuple[str, ...]]:
    found = {(tree.label, *(child.label for child in tree.children))} if tree.children else set()
    return found.union(*(productions(child) for child in tree.children))


def defined(forest: Forest) -> set[tuple[int, int]]:
    """Return the pairs of near-duplicates for a threshold of 0.7, by comparing all trees."""
    trees, columns = list(forest), forest.columns
    has = [productions(tree) for tree in trees]
    distinct = dict(zip(trees, has, strict=True))
    languages = {
        tree: {columns["language"][i] for i, x in enumerate(trees) if x == tree} for tree in distinct
    }

    def bits(production):
        where = {x for tree, some in distinct.items() if production in some for x in languages[tree]}
        n_trees = sum(len(where & languages[tree]) for tree in distinct)
        return math.log2((n_trees + 100) / sum(production in some for some in distinct.values()))

    rare = {production: bits(production) for some in has for production in some}
    best = {tree: float(times > 1) for tree, times in Counter(trees).items()}
    values = {}
    for i, j in combinations(range(len(trees)), 2):
        value, shared = similarity(trees[i], trees[j]), sum(rare[x] for x in has[i] & has[j])
        if value >= 0.7 or (value >= 0.5 and shared >= 30):
            values[i, j] = value, shared
            if trees[i] != trees[j] and (value >= 0.7 or shared >= 40):
                best[trees[i]], best[trees[j]] = max(best[trees[i]], value), max(best[trees[j]], value)
    names = {tree: min((columns["blurred"][i].tolist() for i, x in enumerate(trees) if x == tree), key=repr)
             for tree in distinct}  # fmt: skip

    def is_near(i, j):
        value, shared = values[i, j]
        nearest = [value >= best[trees[k]] for k in (i, j)]
        one, other = (Counter(names[trees[k]]) for k in (i, j))
        agreement = (one & other).total() / (one | other).total()
        return (
            value >= 0.8
            or (value >= 0.75 and shared >= 20)
            or (value >= 0.7 and shared >= 40)
            or (value >= 0.6 and shared >= 40 and all(nearest))
            or (shared >= 40 and any(nearest) and agreement >= 0.5)
            or (shared >= 30 and value + agreement / 2 >= 0.9 - 1e-9)
        )

    return {pair for pair in values if is_near(*pair)}


@pytest.mark.parametrize("seed", range(5))
def test_the_pairs_are_those_of_the_definition_and_the_list_shows_all(seed):
    forest = some_forest(seed)
    expected = defined(forest)
    found = near_duplicates(forest, min_nodes=2)
    kinds = zip(found.near.a.tolist(), found.near.b.tolist(), strict=True)
    copies = found.trees.copies
    pairs = {(min(i, j), max(i, j)) for a, b in kinds for i in copies[a] for j in copies[b]}
    pairs |= {pair for some in copies for pair in combinations(some, 2)}
    assert pairs == expected
    lower = {pair for pair in pairs if similarity(forest[pair[0]], forest[pair[1]]) < 0.7}
    assert len(lower) > 2
    groups = groups_of(found)
    shown = {frozenset(found.kind[[i, j]]) for group in groups for i, j in combinations(group.members, 2)}
    for group in groups:
        assert all(partner.member in group.members for partner in group.also)
        shown |= {frozenset(found.kind[[partner.member, partner.tree]]) for partner in group.also}
    assert shown == {frozenset(found.kind[[i, j]]) for i, j in expected}


@pytest.mark.parametrize(("same", "is_near"), [(10, True), (9, True), (8, False), (0, False)])
def test_names_count_although_40_bits_are_not_shared(same, is_near):
    forest = Forest.from_trees([Tree("f", PARTS[:8]), Tree("f", [*PARTS[:6], PARTS[50]])])
    assert similarity(*forest) == pytest.approx(6 / 11)  # so 0.71 of the names must agree
    names = [*range(10)], [*range(same), *range(90, 100 - same)]
    forest.columns["blurred"] = [np.array(some) for some in names]
    assert len(near_duplicates(forest, min_nodes=2).near.a) == is_near


def is_pair(copies: int, further: int, others: int, threshold: float) -> bool:
    """Return whether two trees are near-duplicates that share only these copies of three parts.

    One of them has further parts; the others are trees that make the shared parts rare.
    """
    shared = PARTS[:3] * copies
    pair = [Tree("f", shared), Tree("f", shared + PARTS[3 : 3 + further])]
    forest = Forest.from_trees(pair + [Tree("g", [f"t{k}"]) for k in range(others)])
    found = near_duplicates(forest, min_nodes=2, threshold=threshold)
    return len(found.near.a) == 1


@pytest.mark.parametrize("others", [60, 99, 103, 150])
@pytest.mark.parametrize("further", [16, 18, 19])
def test_a_similarity_of_three_quarters_is_enough_with_20_bits(further, others):
    similar, bits = 60 / (62 + further), 3 * math.log2((others + 102) / 2)
    assert 0.74 < similar < 0.8
    assert 18 < bits < 22
    assert is_pair(20, further, others, threshold=0.7) == (similar >= 0.75 and bits >= 20)


@pytest.mark.parametrize(
    ("copies", "further", "others", "threshold", "limit"),
    [(17, 7, 150, 0.8, 0.85), (2, 12, 0, 0.2, 0.3)],
)
def test_a_similarity_exactly_at_a_limit_is_enough(copies, further, others, threshold, limit):
    assert 3 * copies / (3 * copies + 2 + further) == limit
    assert is_pair(copies, further, others, threshold)
    assert not is_pair(copies, further + 1, others, threshold)


def test_the_lowest_similarity_follows_the_threshold():
    assert reach(0.7) == pytest.approx(0.5)
    assert reach(1) == pytest.approx(1)
    assert all(0 < reach(threshold) <= threshold for threshold in (0.01, 0.3, 0.7, 0.9, 1))


def test_a_minority_language_is_not_rare_because_it_is_one():
    few = [Tree("f", [Tree(f"c{k}", ["x"]) for k in range(9)])] * 2
    many = [Tree("g", [Tree(f"p{k}{i}", ["x"]) for i in range(9)]) for k in range(400)]
    forest = Forest.from_trees([*few, *many])
    (without,) = groups_of(near_duplicates(forest, min_nodes=2))
    forest.columns["language"] = ["c"] * 2 + ["python"] * 400
    (group,) = groups_of(near_duplicates(forest, min_nodes=2))
    assert group.bits == pytest.approx(10 * math.log2(101 / 1), abs=1e-4)
    assert without.bits == pytest.approx(10 * math.log2(501 / 1), abs=1e-4)
