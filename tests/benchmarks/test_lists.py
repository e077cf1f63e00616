from benchmarks.lists import Place, is_same, merged, n_pairs, seen_after, touches, with_tests_last
from benchmarks.rivals import Reported, in_order

A, B, C, D = (Place(f"{name}.py", 1, 10) for name in "abcd")


def test_groups_that_share_a_place_are_joined_at_the_first_one():
    assert merged([[A, B], [C, D], [B._replace(start=2), D._replace(start=8)]]) == [
        [A, B, D._replace(start=8)],
        [C, D],
    ]
    assert merged([[A, B], [C, D], [B, C]]) == [[A, B, C, D]]


def test_a_place_between_two_that_are_the_same_does_not_part_them():
    inside = Place("a.py", 2, 3)
    assert n_pairs(merged([[A, B], [inside, C], [A._replace(start=3), D]])) == 3


def test_places_are_the_same_if_half_of_each_is_shared():
    assert is_same(A, A._replace(end=20))
    assert not is_same(A, A._replace(end=21))
    assert touches(A, A._replace(end=21))
    assert not touches(A, A._replace(start=10, end=12))
    assert not touches(A, B)


def test_groups_in_tests_come_last():
    test = [Place("tests/a.py", 1, 5), Place("tests/b.py", 1, 5)]
    mixed = [test[0], A]
    files = ["a.py", "b.py", "tests/a.py", "tests/b.py"]
    assert with_tests_last([test, mixed, [A, B]], files) == [mixed, [A, B], test]


def test_a_copy_is_seen_after_the_pairs_up_to_its_group():
    groups = [[A, B, C], [C, D]]
    assert seen_after(groups, [(A, C), (D, C), (A, D)], is_same) == [2, 3, None]


def test_reports_are_read_in_several_orders():
    small, large = Reported([A, B], 5, 0.9), Reported([C, D], 9, 0.8)
    assert in_order([small, large], "as reported") == [[A, B], [C, D]]
    assert in_order([small, large], "size") == [[C, D], [A, B]]
    assert in_order([small, large], "similarity") == [[A, B], [C, D]]
