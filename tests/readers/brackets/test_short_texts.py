"""Short texts are scanned in arrays that each thread keeps: one text leaves no trace in the next."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from strategies import random_forest
from treedot import Forest, Tree
from treedot.readers import read_trees
from treedot.readers.brackets.reader import read_cell


def texts(seed, number=30):
    """Return generated trees in brackets, of many sizes, with invalid texts and labels in common."""
    found = []
    for k in range(number):
        found.append(str(random_forest(seed + k, 1, 1 + 7 * (k % 6))[0]))
        found += ["(A (B", "(A b) (C d)", f"(L{'x' * (k % 5) * 9} a)"]
    return found


@given(st.integers(0, 10**6))
def test_a_text_after_others_is_read_as_by_itself(seed):
    for text in texts(seed, 8):
        cell = read_cell(text)
        assert cell is None or cell == Forest.from_trees([Tree.parse(text)])
        if cell is None:
            assert text in ("(A (B", "(A b) (C d)")


def test_results_stay_as_they_are_when_the_next_text_is_read():
    cells = [read_cell(text) for text in texts(1)]
    again = [read_cell(text) for text in texts(1)]
    assert cells == again


def test_threads_read_short_texts_at_the_same_time():
    given_texts = [text for text in texts(5) if text not in ("(A (B", "(A b) (C d)")]
    plain = [read_trees([text]) for text in given_texts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert list(pool.map(read_cell, given_texts)) == plain
