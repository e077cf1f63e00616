"""Complete linkage against joining the two most similar groups by hand."""

from itertools import combinations, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from treedot.clones.linkage import Linked, complete_linkage
from treedot.clones.similarity import SimilarPairs

PAIRS = st.dictionaries(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] < pair[1]),
    st.sampled_from([0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
)


def linked(pairs: list[tuple[int, int, float]]) -> list[Linked]:
    table = np.array(pairs).reshape(-1, 3)
    return complete_linkage(SimilarPairs(*table[:, :2].astype(int).T, table[:, 2]))


def by_hand(pairs: dict[tuple[int, int], float]) -> list[tuple[list[int], float]]:
    groups = {x: ([x], 1.0) for pair in pairs for x in pair}
    while True:
        choices = []
        for a, b in combinations(sorted(groups), 2):
            across = [pairs.get((min(x, y), max(x, y))) for x, y in product(groups[a][0], groups[b][0])]
            if None not in across:
                choices.append((-min(across), a, b))
        if not choices:
            return [(sorted(m), s) for _, (m, s) in sorted(groups.items()) if len(m) > 1]
        negative, a, b = min(choices)
        groups[a] = (groups[a][0] + groups.pop(b)[0], -negative)


@given(PAIRS, st.randoms())
def test_groups_are_those_of_the_definition_in_any_order_of_the_pairs(pairs, chance):
    listed = [(a, b, s) for (a, b), s in pairs.items()]
    chance.shuffle(listed)
    assert [tuple(group) for group in linked(listed)] == by_hand(pairs)


@given(PAIRS)
def test_every_two_members_are_a_pair_at_least_as_similar_as_the_group_says(pairs):
    for members, similarity in linked([(a, b, s) for (a, b), s in pairs.items()]):
        assert min(pairs[pair] for pair in combinations(members, 2)) == similarity
