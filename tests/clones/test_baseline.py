"""What is known and what is new, as code is copied, moved and edited."""

import json

import numpy as np
import pytest

from strategies import random_forest
from treedot import Forest, Tree, similarity
from treedot.clones.baseline import read_baseline, unit_names, write_baseline
from treedot.clones.duplicates import near_duplicates
from treedot.clones.identities import unit_keys, units_of
from treedot.clones.new_duplicates import new_duplicates
from treedot.errors import SourceError

A, B, C = random_forest(3, 3, 80)
PARTS = [Tree(f"s{k}", ["x"]) for k in range(60)]
LEFT, MIDDLE, RIGHT = (Tree("f", PARTS[k : k + 40]) for k in (0, 6, 12))  # only the middle is like both


def units(*places, names=()):
    """Return trees with their places: (tree, file, name), one unit after another."""
    forest = Forest.from_trees([tree for tree, _, _ in places])
    forest.columns.update(
        file=[file for _, file, _ in places],
        name=[name for _, _, name in places],
        start=[10 * k + 1 for k in range(len(places))],
        end=[10 * k + 9 for k in range(len(places))],
        blurred=[np.array(names[k] if names else [1, 2, 3]) for k in range(len(places))],
    )
    return forest


def new_in(forest, known, **how):
    found = near_duplicates(forest)
    new = new_duplicates(found, known=known, units=units_of(forest, forest.columns["name"]), **how)
    return [group.members for group in new]


def written(path, forest, version=3):
    """Return a baseline of what is in a forest now; version 2 has no pairs below the threshold."""
    found = near_duplicates(forest)
    write_baseline(
        path, forest, found if version == 3 else found.not_below_threshold(), forest.columns["name"]
    )
    path.write_text(path.read_text().replace('"treedot_baseline": 3', f'"treedot_baseline": {version}'))
    return read_baseline(path)


def version_1(path, *groups):
    """Return a baseline as the first version wrote it, of groups of (file, name, content)."""
    members = [[dict(zip(("file", "name", "content"), m, strict=True)) for m in group] for group in groups]
    path.write_text(json.dumps({"treedot_baseline": 1, "groups": members}))
    return read_baseline(path)


@pytest.fixture(params=[1, 2, 3])
def known(tmp_path, request):
    forest = units((A, "a.py", "f"), (A, "b.py", "f"), (B, "c.py", "g"), (C, "d.py", "h"))
    if request.param == 1:
        content = unit_keys(forest, 0)[0]
        found = version_1(tmp_path / "known.json", [("a.py", "f", content), ("b.py", "f", content)])
    else:
        found = written(tmp_path / "known.json", forest, request.param)
    assert found.version == request.param
    assert new_in(forest, found) == []
    assert new_in(forest, None) == [(0, 1)]
    return found


def test_moved_and_renamed_functions_are_known(known):
    assert new_in(units((A, "x.py", "f"), (A, "b.py", "other")), known) == []


@pytest.mark.parametrize("file", ["b.py", "x.py"])
def test_an_edited_copy_is_known_in_its_place_and_in_another_one_if_it_is_gone_from_its_own(known, file):
    forest = units((A, "a.py", "f"), (A, file, "f"), names=[[1, 2, 3], [1, 2, 4]])
    assert new_in(forest, known) == []
    forest = units((A, "a.py", "f"), (A, "b.py", "f"), (A, "x.py", "f"), names=[[1, 2, 3]] * 2 + [[1, 2, 4]])
    assert new_in(forest, known) == [(0, 1, 2)]


@pytest.mark.parametrize("names", [[[2], [1]], [[3], [1]], [[1], [2]]])
@pytest.mark.parametrize("file", ["a.js", "y.js"])
def test_of_members_without_names_those_that_moved_do_not_take_the_place_of_others(names, file, tmp_path):
    known = written(tmp_path / "x", units((A, "a.js", ""), (A, "a.js", ""), names=[[1], [2]]))
    assert new_in(units((A, file, ""), (A, "x.js", ""), names=names), known) == []
    assert len(new_in(units((A, file, ""), *[(A, "x.js", "")] * 2, names=[*names, [5]]), known)) == 1


def test_a_third_copy_is_new(known):
    assert new_in(units((A, "a.py", "f"), (A, "b.py", "f"), (A, "x.py", "f")), known) == [(0, 1, 2)]
    assert new_in(units((A, "a.py", "f"), (A, "b.py", "f"), (A, "a.py", "f")), known) == [(0, 1, 2)]


def test_copies_of_something_else_are_new(known):
    forest = units((A, "a.py", "f"), (A, "b.py", "f"), (B, "c.py", "g"), (B, "e.py", "g"))
    assert new_in(forest, known) == [(2, 3)]


def test_a_copy_of_one_member_of_a_known_pair_is_new_where_no_group_holds_it(tmp_path):
    assert similarity(LEFT, MIDDLE) == similarity(MIDDLE, RIGHT) > 0.7 > similarity(LEFT, RIGHT)
    known = written(tmp_path / "known.json", units((LEFT, "a.py", "f"), (MIDDLE, "b.py", "g")))
    assert new_in(units((LEFT, "a.py", "f"), (MIDDLE, "b.py", "g")), known) == []
    three = units((LEFT, "a.py", "f"), (MIDDLE, "b.py", "g"), (RIGHT, "c.py", "h"))
    assert new_in(three, known) == [(1, 2)]
    assert new_in(three, written(tmp_path / "renewed.json", three)) == []
    two = units((MIDDLE, "b.py", "g"), (RIGHT, "c.py", "h"), (LEFT, "a.py", "f"))
    known = written(tmp_path / "known.json", two[:2])
    assert new_in(two, known) == [(0, 2)]


@pytest.mark.parametrize("changed", [(0,), (1,), (2,), (0, 2), ()])
def test_a_changed_tree_is_shown_with_its_best_partner_in_a_group_or_not(changed):
    three = units((LEFT, "a.py", "f"), (MIDDLE, "b.py", "g"), (RIGHT, "c.py", "h"))
    pairs = new_in(three, None, changed=[i in changed for i in range(3)])
    assert {i for pair in pairs for i in pair} >= set(changed)
    assert all(pair in ((0, 1), (1, 2)) and set(pair) & set(changed) for pair in pairs)
    assert len(pairs) == len(set(changed) & {0, 2}) or changed == (1,)


def test_a_new_pair_of_trees_without_names_is_not_known_by_their_file(tmp_path):
    known = written(tmp_path / "known.json", units((A, "a.js", ""), (A, "a.js", "")))
    assert new_in(units((B, "a.js", ""), (B, "a.js", "")), known) == [(0, 1)]
    four = units((A, "a.js", ""), (A, "a.js", ""), (B, "a.js", ""), (B, "a.js", ""))
    assert new_in(four, known) == [(2, 3)]


@pytest.mark.parametrize("was", [2, 1])
def test_a_new_pair_of_trees_with_repeated_names_is_not_known_by_them(tmp_path, was):
    both = (A, "a.py", "f"), (A, "b.py", "f")
    known = written(tmp_path / "known.json", units(*both * was))
    assert new_in(units(*both * was), known) == []
    other = (B, "a.py", "f"), (B, "b.py", "f")
    assert new_in(units(*both, *other), known) == [(2, 3)]
    if was == 2:  # a name that was repeated says nothing now either
        assert new_in(units(*other), known) == [(0, 1)]


def test_version_1_does_not_know_trees_by_empty_or_repeated_names(tmp_path):
    a, b = (unit_keys(units((tree, "a.js", "")), 0)[0] for tree in (A, C))
    known = version_1(tmp_path / "known.json", [("a.js", "", a), ("a.js", "", a)], [("a.js", "", b)] * 2)
    four = units((A, "a.js", ""), (A, "a.js", ""), (B, "a.js", ""), (B, "a.js", ""))
    assert new_in(four, known) == [(2, 3)]
    assert new_in(units((A, "a.js", ""), (A, "a.js", "")), known) == []


def test_one_edited_member_without_a_name_is_known_by_its_file_and_its_partner(tmp_path):
    known = written(tmp_path / "known.json", units((LEFT, "a.js", ""), (MIDDLE, "a.js", "")))
    edited, far = Tree("f", [*PARTS[2:40], Tree("t", ["y"])]), Tree("f", PARTS[16:56])
    assert new_in(units((edited, "a.js", ""), (MIDDLE, "a.js", "")), known) == []
    assert new_in(units((edited, "x.js", ""), (MIDDLE, "a.js", "")), known) == [(0, 1)]
    assert new_in(units((edited, "a.js", ""), (far, "a.js", "")), known) == []  # these are not alike
    assert new_in(units((B, "a.js", ""), (B, "a.js", "")), known) == [(0, 1)]
    three = units((LEFT, "a.js", ""), (edited, "a.js", ""), (MIDDLE, "a.js", ""))
    assert len(new_in(three, known)) == 1


def test_a_renamed_member_is_known_and_a_renamed_copy_is_new(tmp_path):
    names = [[1, 2], [3, 2]]
    known = written(tmp_path / "known.json", units((A, "a.py", "f"), (A, "b.py", "g"), names=names))
    for file in ("a.py", "x.py"):
        assert new_in(units((A, file, "h"), (A, "b.py", "g"), names=[[4, 2], [3, 2]]), known) == []
        three = units((A, "a.py", "f"), (A, "b.py", "g"), (A, file, "h"), names=[*names, [4, 2]])
        assert new_in(three, known) == [(0, 1, 2)]


def test_two_known_trees_that_became_alike_are_new_together(tmp_path):
    before = units((A, "a.py", "f"), (A, "b.py", "f"), (B, "c.py", "g"), (B, "d.py", "g"))
    known = written(tmp_path / "known.json", before)
    after = units((A, "a.py", "f"), (B, "b.py", "f"), (B, "c.py", "g"), (B, "d.py", "g"))
    assert new_in(after, known) == [(1, 2, 3)]


@pytest.mark.parametrize("version", [2, 3])
def test_pairs_below_the_threshold_are_known_since_version_3_and_not_shown_before(tmp_path, version):
    trees = (LEFT, "a.py", "f"), (RIGHT, "b.py", "g")
    forest = units(*trees)
    assert 0.5 < similarity(LEFT, RIGHT) < 0.7
    known = written(tmp_path / "known.json", forest, version)
    assert new_in(forest, known) == []
    assert new_in(forest, None) == [(0, 1)]
    none = written(tmp_path / "none.json", units((A, "a.py", "f")), version)
    assert new_in(forest, none) == ([(0, 1)] if version == 3 else [])


def test_members_of_two_groups_of_version_1_are_new_together(tmp_path):
    forest = units((A, "a.py", "f"), (A, "b.py", "f"))
    key = unit_keys(forest, 0)[0]
    known = version_1(tmp_path / "known.json", [("a.py", "f", key), ("x.py", "f", "?")], [("b.py", "f", key)])
    assert new_in(forest, known) == [(0, 1)]


def test_an_unchanged_pair_is_known_when_other_code_makes_its_common_parts_rare(tmp_path):
    tree, other = Tree("f", PARTS[:20]), Tree("g", [*PARTS[:18], Tree("u", ["x"]), Tree("v", ["x"])])
    common = [
        Tree(f"h{k}", [*PARTS[:20], *(Tree(f"y{k}.{i}", ["x"]) for i in range(40))]) for k in range(400)
    ]
    others = [(some, f"{k}.py", "f") for k, some in enumerate(common)]
    pair = (tree, "a.py", "f"), (other, "b.py", "g")
    assert new_in(units(*pair, *others), None) == []
    known = written(tmp_path / "known.json", units(*pair, *others))
    assert new_in(units(*pair), None) == [(0, 1)]
    assert new_in(units(*pair), known) == []
    edited = Tree("g", [*PARTS[:19], Tree("u", ["x"])])
    assert new_in(units(pair[0], (edited, "b.py", "g")), known) == [(0, 1)]


def test_the_keys_of_a_tree_depend_on_its_content_and_nothing_else():
    forest = units((A, "a.py", "f"), (B, "b.py", "g"))
    alone = units((B, "x.py", "y"))
    assert unit_keys(forest, 1) == unit_keys(alone, 0) != unit_keys(forest, 0)
    alone.columns["blurred"] = [np.array([1, 2, 4])]
    content, tree = unit_keys(alone, 0)
    assert content != unit_keys(forest, 1)[0]
    assert tree == unit_keys(forest, 1)[1]


def test_whole_files_are_known_by_the_names_of_the_files():
    forest = units((A, "a.py", ""), (B, "b.py", ""))
    assert unit_names(forest, "file") == ["a.py", "b.py"]
    assert unit_names(forest, "function") == ["", ""]


def test_the_file_does_not_depend_on_the_order_of_the_trees(tmp_path):
    places = [(A, "a.py", "f"), (A, "b.py", "f"), (LEFT, "c.py", "g"), (MIDDLE, "c.py", "g")]
    for name, some in (("x", places), ("y", places[::-1])):
        written(tmp_path / name, units(*some))
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"treedot_baseline": 0, "groups": []}', '{"treedot_baseline": 1}', "[" * 100_000,
     '{"treedot_baseline": 2, "groups": []}', '{"treedot_baseline": [2], "trees": []}',
     '{"treedot_baseline": 2, "trees": [{"tree": "a", "near": ["b"], "too_common": [], "members": []}]}',
     '{"treedot_baseline": 2, "trees": [{"tree": 1, "near": [], "too_common": [], "members": []}]}',
     '{"treedot_baseline": 1, "groups": [[{"file": 1, "name": "f", "content": "x"}]]}',
     '{"treedot_baseline": 1, "groups": [[{"files": 1}]]}', '{"treedot_baseline": 1, "groups": 3}'],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(SourceError, match=r"known\.json is not a baseline"):
        read_baseline(tmp_path / "known.json")


def test_a_missing_file_is_told_with_how_to_make_it(tmp_path):
    with pytest.raises(SourceError, match="--write-baseline"):
        read_baseline(tmp_path / "known.json")


def test_a_baseline_of_a_newer_version_is_refused_as_such(tmp_path):
    (tmp_path / "b.json").write_text('{"treedot_baseline": 99}')
    with pytest.raises(SourceError, match=r"is a baseline of version 99, .* update treedot"):
        read_baseline(tmp_path / "b.json")
