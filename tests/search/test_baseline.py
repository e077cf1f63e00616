"""What is known and what is new, as code is copied, moved and edited."""

import numpy as np
import pytest

from strategies import random_forest
from treedot import Forest, SourceError, find_duplicates
from treedot.search.baseline import Member, content_key, new_groups, read_baseline, write_baseline

A, B, C = random_forest(3, 3, 80)


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


def new_in(forest, known):
    return [group.members for group in new_groups(forest, find_duplicates(forest), known)]


@pytest.fixture
def known(tmp_path):
    forest = units((A, "a.py", "f"), (A, "b.py", "f"), (B, "c.py", "g"), (C, "d.py", "h"))
    write_baseline(tmp_path / "known.json", forest, find_duplicates(forest))
    found = read_baseline(tmp_path / "known.json")
    assert new_in(forest, found) == []
    assert new_in(forest, []) == [(0, 1)]
    return found


def test_moved_and_renamed_functions_are_known(known):
    assert new_in(units((A, "x.py", "f"), (A, "b.py", "other")), known) == []


def test_an_edited_copy_in_its_old_place_is_known(known):
    names = [[1, 2, 3], [1, 2, 4]]
    assert new_in(units((A, "a.py", "f"), (A, "b.py", "f"), names=names), known) == []
    assert new_in(units((A, "a.py", "f"), (A, "x.py", "f"), names=names), known) == [(0, 1)]


@pytest.mark.parametrize("names", [[[2], [1]], [[3], [1]], [[1], [2]]])
def test_of_members_without_names_those_that_moved_do_not_take_the_place_of_others(names):
    forest = units((A, "a.js", ""), (A, "a.js", ""), names=[[1], [2]])
    known = [[Member("a.js", "", content_key(forest, i)) for i in (0, 1)]]
    assert new_in(units((A, "a.js", ""), (A, "x.js", ""), names=names), known) == []
    assert new_in(units((A, "x.js", ""), (A, "y.js", ""), names=[[3], [1]]), known) == [(0, 1)]


def test_a_third_copy_is_new(known):
    assert new_in(units((A, "a.py", "f"), (A, "b.py", "f"), (A, "x.py", "f")), known) == [(0, 1, 2)]
    assert new_in(units((A, "a.py", "f"), (A, "b.py", "f"), (A, "a.py", "f")), known) == [(0, 1, 2)]


def test_copies_of_something_else_are_new(known):
    forest = units((A, "a.py", "f"), (A, "b.py", "f"), (B, "c.py", "g"), (B, "e.py", "g"))
    assert new_in(forest, known) == [(2, 3)]


def test_members_of_two_known_groups_are_new_together():
    forest = units((A, "a.py", "f"), (A, "b.py", "f"))
    key = content_key(forest, 0)
    known = [[Member("a.py", "f", key), Member("x.py", "f", "?")], [Member("b.py", "f", key)]]
    assert new_in(forest, known) == [(0, 1)]


def test_the_key_of_a_tree_depends_on_its_content_alone():
    forest = units((A, "a.py", "f"), (B, "b.py", "g"))
    alone = units((B, "x.py", "y"))
    assert content_key(forest, 1) == content_key(alone, 0) != content_key(forest, 0)
    alone.columns["blurred"] = [np.array([1, 2, 4])]
    assert content_key(alone, 0) != content_key(forest, 1)


def test_the_file_does_not_depend_on_the_order_of_the_trees(tmp_path):
    places = [(A, "a.py", "f"), (A, "b.py", "f"), (B, "c.py", "g"), (B, "d.py", "h")]
    for name, some in (("x", places), ("y", places[::-1])):
        forest = units(*some)
        write_baseline(tmp_path / name, forest, find_duplicates(forest))
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"treedot_baseline": 2, "groups": []}', '{"treedot_baseline": 1}', "[" * 100_000,
     '{"treedot_baseline": 1, "groups": [[{"file": 1, "name": "f", "content": "x"}]]}',
     '{"treedot_baseline": 1, "groups": [[{"files": 1}]]}', '{"treedot_baseline": 1, "groups": 3}'],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(SourceError, match=r"known\.json is no baseline"):
        read_baseline(tmp_path / "known.json")


def test_a_missing_file_is_told_with_how_to_make_it(tmp_path):
    with pytest.raises(SourceError, match="--write-baseline"):
        read_baseline(tmp_path / "known.json")
