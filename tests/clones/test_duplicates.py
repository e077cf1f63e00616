"""Groups of near-duplicates: which trees are in them, in which order, and what is said of them."""

import dataclasses
import math
import random
import sys
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import examples, random_forest, trees
from treedot import Forest, Tree, find_duplicates, similarity
from treedot.clones import DuplicateGroup
from treedot.clones.groups import COMMON_BITS
from treedot.clones.near_duplicates import ENOUGH_BITS, MARGIN
from treedot.clones.places import PLACE
from treedot.errors import ParameterError


def with_places(forest: Forest, places: list[tuple[str, int, int]]) -> Forest:
    file, start, end = zip(*places, strict=True)
    forest.columns.update(file=list(file), start=list(start), end=list(end))
    return forest


def changed(tree: Tree, label: str) -> Tree:
    """Return the tree with another label in its last child's place."""
    return Tree(tree.label, [*tree.children[:-1], Tree(label, tree.children[-1].children)])


def large(seed: int) -> Tree:
    return random_forest(seed, 1, 80)[0]


@settings(max_examples=examples(50))
@given(st.lists(trees(max_leaves=12), max_size=10), st.sampled_from([0.3, 0.6, 0.9]))
def test_every_two_members_of_a_group_are_similar_and_no_similar_pair_is_left_apart(some, threshold):
    groups = find_duplicates(Forest.from_trees(some), threshold=threshold, min_nodes=2)
    grouped = [i for group in groups for i in group.members]
    assert len(grouped) == len(set(grouped))
    for group in groups:
        values = [similarity(some[i], some[j]) for i in group.members for j in group.members if i < j]
        assert min(values) == group.similarity >= threshold
    alone = [i for i, tree in enumerate(some) if i not in grouped and tree.children]
    for i in alone:
        assert all(similarity(some[i], some[j]) < threshold + MARGIN for j in alone if i != j)


def test_equal_trees_are_identical_and_edited_ones_near():
    tree = large(3)
    forest = Forest.from_trees([tree, *random_forest(5, 20, 80), tree, changed(tree, "other")])
    (group,) = find_duplicates(forest)
    assert group.members == (0, 21, 22)
    assert 0.8 < group.similarity < 1
    assert group.band == "near"
    (group,) = find_duplicates(forest[:22])
    assert (group.members, group.similarity, group.band) == ((0, 21), 1.0, "identical")
    assert group.nodes == forest.sizes[0]


def test_names_tell_identical_trees_from_renamed_ones():
    forest = Forest.from_trees([large(3)] * 2)
    forest.columns["blurred"] = [np.array([1, 2, 2, 3]), np.array([1, 2, 3, 4])]
    (group,) = find_duplicates(forest)
    assert group.band == "renamed"
    assert group.agreement == 3 / 5
    forest.columns["blurred"] = [np.array([1, 2]), np.array([1, 2])]
    assert find_duplicates(forest)[0].band == "identical"
    forest.columns["blurred"] = [np.array([1, 2]), np.array([2, 1])]  # a = b is not b = a
    assert find_duplicates(forest)[0].band == "renamed"
    forest.columns["blurred"] = [np.array([1, 2]), None]
    assert find_duplicates(forest)[0].agreement is None


def test_trees_with_the_same_parts_in_another_order_are_not_equal():
    (group,) = find_duplicates(
        [Tree("f", [Tree(x, STATEMENTS[:10]), Tree(x, STATEMENTS[10:])]) for x in "g"]
        + [Tree("f", [Tree(x, STATEMENTS[10:]), Tree(x, STATEMENTS[:10])]) for x in "g"],
        min_nodes=5,
    )
    assert (group.similarity, group.band) == (1.0, "near")


def everywhere(children: list[Tree], count: int) -> list[Tree]:
    """Return trees that have these children, and many others that no other tree has."""
    others = [[Tree(f"y{k}.{i}", ["x"]) for i in range(2 * len(children))] for k in range(count)]
    return [Tree(f"h{k}", [*children, *others[k]]) for k in range(count)]


STATEMENTS = [Tree(f"s{k}", ["x"]) for k in range(20)]


def test_what_is_rare_comes_first_and_what_is_everywhere_last():
    common = [Tree("f", STATEMENTS), Tree("g", STATEMENTS)]
    rare = large(3)
    groups = find_duplicates([*common, *everywhere(STATEMENTS, 400), rare, rare])
    assert [group.members for group in groups] == [(402, 403), (0, 1)]
    assert groups[0].bits > COMMON_BITS > groups[1].bits


def test_a_similarity_just_above_the_threshold_needs_something_rare_in_common():
    tree = Tree("f", STATEMENTS)
    other = Tree("g", [*STATEMENTS[:18], Tree("u", ["x"]), Tree("v", ["x"])])
    assert 0.7 < similarity(tree, other) < 0.8
    (group,) = find_duplicates([tree, other])
    assert group.bits >= ENOUGH_BITS
    assert find_duplicates([tree, other, *everywhere(STATEMENTS, 400)]) == []


def test_functions_inside_functions_are_not_duplicates_of_each_other():
    tree = large(3)
    around = Tree("outer", [tree])
    forest = with_places(
        Forest.from_trees([around, tree, around, tree]),
        [("a.py", 1, 9), ("a.py", 2, 9), ("b.py", 5, 13), ("b.py", 6, 13)],
    )
    (group,) = find_duplicates(forest)
    assert group.members == (0, 2)
    assert find_duplicates(forest[:2]) == []


def test_what_is_like_the_function_around_it_is_still_a_duplicate_of_others():
    statements = [Tree(f"s{k}", ["x"]) for k in range(60)]
    inner = Tree("f", statements[:50])
    around = Tree("f", [*statements[:53], Tree("t", ["x"])])
    copy = Tree("f", statements[8:50])
    forest = with_places(
        Forest.from_trees([around, inner, copy]), [("a.py", 1, 60), ("a.py", 2, 51), ("b.py", 1, 42)]
    )
    (group,) = find_duplicates(forest, threshold=0.8)
    assert group.members == (1, 2)
    assert group.similarity == similarity(inner, copy)


def test_members_that_are_left_out_do_not_count_for_the_similarity():
    statements = [Tree(f"s{k}", ["x"]) for k in range(60)]
    around, inner = Tree("f", statements), Tree("f", statements[:50])
    forest = with_places(
        Forest.from_trees([around, inner, around, inner]),
        [("a.py", 1, 60), ("a.py", 2, 51), ("b.py", 1, 60), ("b.py", 2, 51)],
    )
    (group,) = find_duplicates(forest)
    assert (group.members, group.similarity, group.band) == ((0, 2), 1.0, "identical")


def test_of_trees_on_the_same_lines_one_is_told():
    forest = Forest.from_trees([large(3)] * 3)
    (group,) = find_duplicates(with_places(forest, [("a.js", 1, 1), ("a.js", 1, 1), ("b.js", 4, 9)]))
    assert group.members == (0, 2)


def test_trees_whose_places_are_not_known_are_taken_as_apart():
    forest = with_places(Forest.from_trees([large(3)] * 2), [("a.js", 1, 1), (None, None, None)])
    assert [group.members for group in find_duplicates(forest)] == [(0, 1)]


def test_a_copy_elsewhere_of_what_lies_inside_duplicates_is_told():
    tree = large(3)
    around = Tree("outer", [*large(4).children, tree])
    forest = with_places(
        Forest.from_trees([around, tree, around, tree, tree]),
        [("a.py", 1, 9), ("a.py", 2, 9), ("b.py", 5, 13), ("b.py", 6, 13), ("c.py", 1, 3)],
    )
    assert {group.members for group in find_duplicates(forest)} == {(0, 2), (1, 3, 4)}


def test_a_function_like_another_and_like_its_part_is_listed_once():
    statements = [Tree(f"s{k}", ["x"]) for k in range(60)]
    around, part, copy = (Tree("f", statements[start:end]) for start, end in ((0, 60), (0, 50), (2, 52)))
    forest = with_places(
        Forest.from_trees([around, part, copy]), [("a.py", 1, 61), ("a.py", 2, 51), ("b.py", 1, 50)]
    )
    assert [len(find_duplicates(forest[[k, 2]])) for k in (0, 1)] == [1, 1]
    assert [group.members for group in find_duplicates(forest)] == [(1, 2)]


def test_the_score_of_a_group_is_that_of_its_mean_pair():
    parts = [Tree(f"s{k}", ["x"]) for k in range(60)]
    a, b, c = (Tree("f", parts[first : first + 50]) for first in (0, 1, 4))
    (group,) = find_duplicates([a, a, b, c])
    pairs = [similarity(x, y) for x, y in combinations([a, a, b, c], 2)]
    assert group.similarity == min(pairs)
    assert group.mean_similarity == pytest.approx(np.mean(pairs))
    size = 1.25 * math.sqrt(group.bits * group.nodes)  # trees without a place are in several files
    assert group.score == pytest.approx(size * group.mean_similarity**1.5 / math.sqrt(3))


@pytest.mark.parametrize(("similarity", "enough"), [(0.79, 50), (0.8, 30)])
def test_functions_that_share_few_names_need_rare_constructs_fewer_if_they_are_near(similarity, enough):
    def is_shape_only(bits, agreement):
        return DuplicateGroup((0, 1), similarity, similarity, agreement, bits, 90, "near").is_shape_only

    assert is_shape_only(enough - 1, 0.4)
    assert not is_shape_only(enough, 0.4)
    assert not is_shape_only(enough - 1, 0.5)
    assert not is_shape_only(enough - 1, None)


def by_content(groups, contents):
    """Return groups in their order, with the contents of their members in place of their numbers."""
    return [
        (
            sorted(contents[i] for i in g.members),
            [(contents[p.member][0], contents[p.tree], p.similarity) for p in g.also],
            dataclasses.replace(g, members=(), also=()),
        )
        for g in groups
    ]


def test_of_equally_similar_pairs_the_same_one_is_joined_in_any_order():
    a, b, c = (Tree("f", [Tree(f"s{k}", ["x"]) for k in range(first, first + 30)]) for first in (0, 5, 10))
    assert similarity(a, b) == similarity(b, c) > 0.6 > similarity(a, c)
    found = {
        tuple(
            tuple(sorted(str(some[i]) for i in group.members))
            for group in find_duplicates(some, threshold=0.6)
        )
        for some in permutations([a, b, c])
    }
    assert len(found) == 1
    assert len(found.pop()) == 2  # the one that is joined, and the third tree with its nearest


def alike(seed: int, count: int) -> Forest:
    """Return trees of many ties: parts of few lists, some equal, some inside of others or on one line."""
    rng = random.Random(seed)
    parts = [Tree(f"s{k}", ["x"]) for k in range(60)]
    some = []
    for _ in range(count):
        first, size = 3 * rng.randrange(12), rng.choice((16, 16, 20))
        some.append(Tree(rng.choice("fg"), parts[first : first + size]))
    forest = with_places(
        Forest.from_trees(some),
        [(rng.choice("ab"), line, line + rng.choice((0, 3))) for line in rng.choices(range(count), k=count)],
    )
    forest.columns["blurred"] = [np.array(rng.choices(range(4), k=6)) for _ in some]
    return forest


@pytest.mark.parametrize("limits", [(10_000, 500), (4, 500), (10_000, 2)])
@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_the_trees_changes_their_numbers_and_nothing_else(seed, limits, monkeypatch):
    for name, limit in zip(("MAX_COMPARED", "MAX_SIMILAR"), limits, strict=True):
        monkeypatch.setattr(sys.modules["treedot.clones.similarity"], name, limit)
    forest, rng, met = alike(seed, 40), random.Random(seed), []
    places = zip(*(forest.columns[name] for name in PLACE), strict=True)
    contents = [
        (str(tree), names.tolist(), place)
        for tree, names, place in zip(forest, forest.columns["blurred"], places, strict=True)
    ]
    expected = by_content(find_duplicates(forest, threshold=0.6, min_nodes=5, on_limit=met.append), contents)
    assert len(expected) > 3
    for _ in range(5):
        order = rng.sample(range(len(forest)), len(forest))
        found = find_duplicates(forest[order], threshold=0.6, min_nodes=5, on_limit=met.append)
        assert by_content(found, [contents[k] for k in order]) == expected
    assert len(set(met)) == (limits != (10_000, 500))


def test_of_too_many_trees_that_are_alike_some_pairs_are_left_out_and_that_is_told(monkeypatch):
    trees = [Tree("f", [*STATEMENTS, Tree(f"t{k}", ["x"])]) for k in range(30)]
    told = []
    (group,) = find_duplicates(trees, on_limit=told.append)
    assert (len(group.members), told) == (30, [])
    monkeypatch.setattr(sys.modules["treedot.clones.similarity"], "MAX_SIMILAR", 5)
    groups = find_duplicates(trees, on_limit=told.append)
    assert told == [24]
    assert max(len(group.members) for group in groups) <= 6
    for group in groups:
        assert group.similarity == similarity(trees[group.members[0]], trees[group.members[1]])


def test_small_trees_are_left_out_and_numbers_are_those_of_all_trees():
    tree = large(3)
    groups = find_duplicates(Forest.from_trees([Tree("a", ["b"]), tree, Tree("a", ["b"]), tree]))
    assert [group.members for group in groups] == [(1, 3)]


@pytest.mark.parametrize(
    "settings", [{"threshold": 0}, {"threshold": 1.2}, {"min_nodes": 1}, {"threshold": "a"}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        find_duplicates(["(a b)"], **settings)


def test_no_trees_have_no_duplicates():
    assert find_duplicates(Forest.from_trees([])) == []
