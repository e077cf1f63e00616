"""The worked examples of the sparse encoder's docstrings, one small tree throughout."""

import math

import numpy as np
import pytest

from treedot import Tree, read_trees
from treedot.kernels.fragments.cost import fragment_cost
from treedot.vectors import SparseEncoder, SparseSpec
from treedot.vectors.sparse.bounded import (
    FoundFragments,
    find_fragments,
    fragment_key,
    hash_productions,
    key_of,
)
from treedot.vectors.sparse.dictionary import FragmentDictionary
from treedot.vectors.sparse.reference import block

FOREST = read_trees(["(S (A a) (B (C c)))"])
BUDGET = 2
BOUNDED = [  # fragment, cost, base, part, position
    ("(A a)", 0, None, None, -1),
    ("(C c)", 0, None, None, -1),
    ("(B C)", 0, None, None, -1),
    ("(B (C c))", 1, 2, 1, 0),
    ("(S A B)", 0, None, None, -1),
    ("(S (A a) B)", 2, 4, 0, 0),
    ("(S A (B C))", 2, 4, 2, 1),
]
BEYOND = {"(S A (B (C c)))": 3, "(S (A a) (B C))": 4, "(S (A a) (B (C c)))": 5}


def search(memory):
    """Find the bounded fragments of the tree in memory for so many."""
    found = FoundFragments.make(FOREST.n_nodes, memory)
    with np.errstate(over="ignore"):
        keys = SparseEncoder(SparseSpec()).label_keys(FOREST.labels)
        hash_productions(FOREST.arity, FOREST.label, keys, found.stack, found.hash)
        return find_fragments(FOREST.arity, BUDGET, found), found


def test_bounded_fragments_are_found_in_the_order_of_the_worked_example():
    (complete, count), found = search(100)
    assert (complete, count) == (True, len(BOUNDED))
    for k, (text, cost, base, part, position) in enumerate(BOUNDED):
        with np.errstate(over="ignore"):  # compiled code does not look
            assert int(key_of(found.sum[k])) == fragment_key(Tree.parse(text), 0)
        assert found.cost[k] == cost == fragment_cost(Tree.parse(text))
        assert found.position[k] == position
        if position >= 0:
            assert (found.base[k], found.part[k]) == (base, part)


@pytest.mark.parametrize("memory", range(1, len(BOUNDED)))
def test_a_search_in_too_little_memory_is_incomplete(memory):
    assert not search(memory)[0].complete


def test_a_dictionary_rebuilds_the_fragments_of_the_worked_example():
    encoder = SparseEncoder(SparseSpec(budget=BUDGET))
    dictionary = FragmentDictionary.of_parts([(FOREST, encoder.bounded_fragments(FOREST))])
    assert {str(f) for f in dictionary.trees()} == {text for text, *_ in BOUNDED}
    assert dictionary.documents.tolist() == [1] * len(BOUNDED)


def test_blocks_hold_the_tails_of_the_worked_example():
    decay = 0.5
    spec = SparseSpec(2**30, decay, BUDGET, "linear", "blocks", normalize=False, dtype="float64")
    encoder = SparseEncoder(spec)
    row = encoder.encode(FOREST)
    blocks = {text: block(Tree.parse(text), BUDGET, 0) for text in BEYOND}
    assert all(fragment_cost(Tree.parse(text)) == cost for text, cost in BEYOND.items())
    first, second, third = blocks.values()
    assert (first.key, second.key) == tuple(fragment_key(Tree.parse(t), 0) for t in list(BEYOND)[:2])
    assert first.key == third.key
    wanted = {
        first.key: decay * (1 + math.sqrt(decay) * third.vector) / math.sqrt(2),
        second.key: decay * np.ones(2) / math.sqrt(2),
    }
    values = dict(zip(row.indices.tolist(), row.data, strict=True))  # row[:, k] takes memory for all columns
    assert sum(column >= encoder.n_explicit for column in values) == 4 * len(wanted)
    for key, tail in wanted.items():
        at = encoder.encode_fragment(Tree.parse(next(t for t in BEYOND if blocks[t].key == key))).indices
        found = np.array([values[column] for column in at.tolist()]).view(complex)
        assert found == pytest.approx((-1 if key & 1 else 1) * tail, abs=1e-9)
