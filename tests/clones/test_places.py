"""Which trees lie inside of others, against the definition."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treedot import Forest, Tree, find_duplicates
from treedot.clones.places import Places
from treedot.errors import ParameterError

lines = st.integers(1, 8)
spans = st.lists(st.tuples(st.sampled_from("ab"), lines, lines).map(lambda s: (s[0], min(s[1:]), max(s[1:]))))


def places_of(some) -> Places:
    forest = Forest.from_trees([Tree("x")] * len(some))
    forest.columns.update(
        {name: [span[k] for span in some] for k, name in enumerate(("file", "start", "end"))}
    )
    return Places(forest.columns, len(forest))


def is_inside(a, b) -> bool:
    return a[0] == b[0] and b[1] <= a[1] and a[2] <= b[2]


@given(spans)
def test_members_inside_of_others_are_left_out_and_of_equal_ones_all_but_the_first(some):
    def is_left_out(i):
        return any(is_inside(some[i], some[j]) and (some[i] != some[j] or j < i) for j in range(len(some)))

    expected = [i for i in range(len(some)) if not is_left_out(i)]
    assert places_of(some).apart(range(len(some))) == expected


@given(spans, st.data())
def test_groups_that_repeat_an_earlier_one_are_left_out(some, data):
    groups = [data.draw(st.lists(st.integers(0, len(some) - 1), min_size=1)) for _ in some]

    def repeats(group, other):
        parts = [any(is_inside(some[i], some[j]) for j in other) for i in group]
        around = [any(is_inside(some[j], some[i]) for j in other) for i in group]
        return any(parts) and all(map(operator.or_, parts, around))

    expected: list[int] = []
    for number, group in enumerate(groups):
        if not any(repeats(group, groups[other]) for other in expected):
            expected.append(number)
    assert list(places_of(some).not_repeated(groups)) == expected


@given(spans, spans)
def test_trees_overlap_where_one_is_inside_of_the_other(some, others):
    here, there = range(len(some)), range(len(some), len(some) + len(others))
    expected = all(is_inside(a, b) or is_inside(b, a) for a in some for b in others)
    assert places_of(some + others).all_overlap(here, there) == expected


def test_lines_may_be_numbers_in_text_as_in_tables():
    some = [("a", 2, 10), ("a", 9, 10), ("b", 2, 3)]
    assert places_of([(file, str(a), str(b)) for file, a, b in some]).apart(range(3)) == [0, 2]


@pytest.mark.parametrize("place", [("a", "noon", "1"), (["a"], 1, 2), ("a", 1, [2]), ("a", object(), 2)])
def test_what_is_no_place_is_told(place):
    with pytest.raises(ParameterError, match="columns file, start and end must hold a file"):
        places_of([place])


@pytest.mark.parametrize("blurred", [7, [[1], [2, 3]], {"a": 1}])
def test_a_blurred_column_without_lists_is_an_error(blurred):
    forest = Forest.from_trees([Tree("x", ["y"])] * 2)
    forest.columns["blurred"] = [blurred] * 2
    with pytest.raises(ParameterError, match="column blurred must hold a list"):
        find_duplicates(forest, min_nodes=2)
