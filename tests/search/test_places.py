"""Which trees lie inside of others, against the definition."""

from hypothesis import given
from hypothesis import strategies as st

from treedot import Forest, Tree
from treedot.search.places import Places

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
def test_groups_inside_of_one_before_are_left_out(some, data):
    groups = [data.draw(st.lists(st.integers(0, len(some) - 1), min_size=1)) for _ in some]
    expected: list[int] = []
    for number, group in enumerate(groups):
        if not any(
            all(any(is_inside(some[i], some[j]) for j in groups[other]) for i in group) for other in expected
        ):
            expected.append(number)
    assert list(places_of(some).not_inside_others(groups)) == expected


@given(spans, spans)
def test_trees_overlap_where_one_is_inside_of_the_other(some, others):
    here, there = range(len(some)), range(len(some), len(some) + len(others))
    expected = all(is_inside(a, b) or is_inside(b, a) for a in some for b in others)
    assert places_of(some + others).all_overlap(here, there) == expected
