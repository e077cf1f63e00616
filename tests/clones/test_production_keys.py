"""Keys of productions and trees: equal where these are equal, and nowhere else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strategies import all_trees, trees
from treedot import Forest, Tree
from treedot.clones.production_keys import (
    RarestFirst,
    element_keys,
    low_bits,
    n_cells,
    production_keys,
    tree_keys,
)
from treedot.clones.similarity import production_multisets


def test_trees_have_equal_keys_where_they_are_equal_alone():
    some = all_trees(5, "ab")
    keys = tree_keys(Forest.from_trees([*some, *some[::-1]]))
    assert len(np.unique(keys, axis=0)) == len(some)
    assert (keys[: len(some)] == keys[len(some) :][::-1]).all()
    assert len(np.unique(keys[:, 0])) == len(np.unique(keys[:, 1])) == len(some)


@given(st.lists(trees(max_leaves=8), min_size=1, max_size=6))
def test_keys_depend_on_the_trees_alone_and_not_on_those_around_them(some):
    forest = Forest.from_trees(some)
    together = tree_keys(forest)
    for i, tree in enumerate(some):
        alone = Forest.from_trees([Tree("unheard", [Tree("of")]), tree])
        assert (tree_keys(alone)[1] == together[i]).all()
        first, theirs = forest.production[forest.offsets[i] : forest.offsets[i + 1]], alone.production[2:]
        inner = first >= 0
        assert (production_keys(forest)[first[inner]] == production_keys(alone)[theirs[inner]]).all()


def test_different_productions_and_occurrences_have_different_keys():
    forest = Forest.from_trees(all_trees(5, "ab"))
    keys = production_keys(forest)
    assert len(np.unique(keys)) == forest.n_productions
    production = np.repeat(keys, 5)
    elements = element_keys(production, np.tile(np.arange(5), len(keys)))
    assert len(np.unique(elements)) == elements.size
    assert elements.min() >= 0
    assert (elements.reshape(-1, 5) % 2 == [0, 1, 1, 1, 1]).all()


@given(st.lists(st.integers(0, 2**63 - 1), unique=True, min_size=1))
def test_what_is_rare_comes_first_and_no_two_elements_get_one_number(numbers):
    keys = np.array(numbers, np.int64)
    cells = n_cells(len(keys))
    cell = keys >> low_bits(cells)
    counts = np.bincount(cell, minlength=cells)
    found = RarestFirst(counts.astype(np.int32)).numbers(keys)
    assert len(np.unique(found)) == len(keys)
    assert found.min() >= 0
    assert (found % 2 == keys % 2).all()
    assert (np.diff(counts[cell][np.argsort(found)]) >= 0).all()


@given(st.permutations(range(10)))
def test_the_order_of_productions_does_not_depend_on_that_of_the_trees(order):
    some = all_trees(4, "ab")[-10:]
    sets, moved = (production_multisets(Forest.from_trees(x)) for x in (some, [some[k] for k in order]))
    for place, k in enumerate(order):
        mine = sets.elements[sets.bounds[k] : sets.bounds[k + 1]]
        assert (moved.elements[moved.bounds[place] : moved.bounds[place + 1]] == mine).all()
