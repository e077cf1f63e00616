"""The k best against sorting everything."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from treedot.search import top_k


@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(1, 12), st.integers(1, 40))
def test_the_best_of_pieces_are_those_of_a_stable_sort(numbers, k, piece):
    line = np.array(numbers, np.float64)
    rows, values = top_k.empty(1, k)
    for start in range(0, line.size, piece):
        assert top_k.keep_best(line[start : start + piece], start, rows[0], values[0])
    rows, values = top_k.ranked(rows, values, k)
    order = np.argsort(-line, kind="stable")[:k]
    missing = k - order.size
    assert rows[0].tolist() == [*order, *[-1] * missing]
    assert values[0].tolist() == [*line[order], *[-np.inf] * missing]


def test_what_is_not_finite_is_noticed():
    for wrong in (np.nan, np.inf, -np.inf):
        rows, values = top_k.empty(1, 2)
        assert not top_k.keep_best(np.array([1.0, 3.0, 2.0, wrong]), 0, rows[0], values[0])
