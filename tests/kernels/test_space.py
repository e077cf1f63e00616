import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.rivals.fragment_counts import count_known
from paper.rivals.mining import mine

from strategies import ANY_LABEL, random_forest, trees
from treedot import Forest, Tree
from treedot.errors import LimitError
from treedot.kernels import count_fragments, list_fragments
from treedot.kernels.fragments.space import write_out
from treedot.kernels.reference import fragment_counts, fragment_values

FORESTS = st.lists(trees(max_leaves=6), min_size=1, max_size=4)
DECAY = st.sampled_from([0.0, 0.4, 1.0])


def literal_weights(forest, gradient, decay):
    """Return w of every fragment in every problem: the sum over the trees, written out."""
    weights = {}
    for tree, force in zip(forest, gradient, strict=True):
        for fragment, value in fragment_values(tree, decay).items():
            weights[fragment] = weights.get(fragment, 0.0) + value * force
    return weights


def mined(forest, gradient, decay, n_fragments, **settings):
    space, weights, exact = mine(forest, gradient, decay, n_fragments, **settings)
    return dict(zip(space.trees(), weights.T, strict=True)), exact


@given(st.one_of(trees(max_leaves=6), trees(ANY_LABEL, max_leaves=6)), DECAY)
def test_fragments_are_those_of_the_definition(tree, decay):
    expected = fragment_values(tree, decay)
    found = list_fragments(tree, decay)
    assert found.keys() == expected.keys()
    assert all(found[f] == pytest.approx(expected[f], rel=1e-12) for f in expected)
    assert count_fragments(tree) == fragment_counts(tree).total()


@given(FORESTS, FORESTS)
def test_an_index_counts_its_fragments_in_any_trees(known, new):
    index, counts = write_out(Forest.from_trees(known))
    assert len(set(index.trees())) == counts.shape[1]
    for forest, matrix in ((known, counts), (new, count_known(index, Forest.from_trees(new)))):
        for row, tree in zip(matrix.toarray(), forest, strict=True):
            of_tree = fragment_counts(tree)
            assert row.tolist() == [of_tree[fragment] for fragment in index.trees()]


def test_batches_do_not_matter():
    forest = random_forest(0, 30, nodes=12)
    index, counts = write_out(forest)
    for nodes in (1, 20, 10**6):
        assert (count_known(index, forest, batch_nodes=nodes) != counts).nnz == 0
    assert count_known(index, forest[:0]).shape == (0, counts.shape[1])


@pytest.mark.slow
def test_deep_and_wide_fragments_are_written_out():
    deep = Tree.parse("".join(f"(n{k} " for k in range(60)) + "x" + ")" * 60)
    assert len(list_fragments(deep)) == 60 * 61 // 2
    wide = Tree("n", [f"x{k}" for k in range(100_000)])
    assert list_fragments(wide) == {wide: 1.0}


def test_the_limit_is_for_all_trees_together():
    forest = Forest.from_trees([Tree.parse("(a (b c))"), Tree.parse("(a (b d))")])
    assert write_out(forest, max_fragments=6)[1].shape == (2, 5)
    with pytest.raises(LimitError, match="these 2 trees have 6 fragments, more than max_fragments=5"):
        write_out(forest, max_fragments=5)


@given(FORESTS, DECAY, st.integers(0, 99), st.integers(1, 3), st.sampled_from([1, 5, 10**6]))
def test_mining_finds_the_heaviest_fragments(forest, decay, seed, problems, n_fragments):
    gradient = np.random.default_rng(seed).normal(size=(len(forest), problems))
    literal = literal_weights(forest, gradient, decay)
    found, exact = mined(Forest.from_trees(forest), gradient, decay, n_fragments)
    assert exact
    for fragment, weights in found.items():
        assert weights == pytest.approx(literal[fragment], rel=1e-9, abs=1e-12)
    heaviest = sorted((abs(w).max() for w in literal.values()), reverse=True)[:n_fragments]
    assert [abs(w).max() for w in found.values()] == pytest.approx(heaviest, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("decay", [0.2, 0.4, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_top_hundred_are_those_of_full_enumeration(seed, decay):
    forest = random_forest(seed, 40, nodes=12)
    gradient = np.random.default_rng(seed).normal(size=(40, 2))
    literal = literal_weights(forest, gradient, decay)
    top = sorted(literal, key=lambda fragment: -abs(literal[fragment]).max())
    least = abs(literal[top[99]]).max() * (1 - 1e-9)  # where several share the last weight, any will do
    found, exact = mined(forest, gradient, decay, 100)
    assert exact
    assert len(found) == 100
    assert all(abs(literal[fragment]).max() >= least for fragment in found)


@pytest.mark.slow
def test_bounds_on_expansions_and_relevance_leave_out_what_they_say():
    forest = random_forest(3, 30, nodes=12)
    gradient = np.random.default_rng(3).normal(size=(30, 1))
    literal = {f: abs(w[0]) for f, w in literal_weights(forest, gradient, 0.4).items()}
    sizes = {f: sum(not node.is_leaf for node in f.postorder()) for f in literal}
    for expansions in (0, 1, 3):
        found, exact = mined(forest, gradient, 0.4, 10**6, max_expansions=expansions)
        assert exact
        assert found.keys() == {f for f in literal if sizes[f] <= expansions + 1}
    found, exact = mined(forest, gradient, 0.4, 10**6, threshold=0.1)
    assert exact
    assert found.keys() == {f for f, w in literal.items() if w >= 0.1 * max(literal.values())}
    assert len(found) < len(literal)


def test_a_beam_is_greedy_and_says_so():
    forest = random_forest(4, 40, nodes=12)
    gradient = np.random.default_rng(4).normal(size=(40, 1))
    best, _ = mined(forest, gradient, 0.4, 100)
    narrow, exact = mined(forest, gradient, 0.4, 100, beam=5)
    assert not exact
    assert narrow.keys() != best.keys()
    wide, exact = mined(forest, gradient, 0.4, 100, beam=10**6)
    assert exact
    assert wide.keys() == best.keys()
    spent, exact = mined(forest, gradient, 0.4, 1, beam=5)  # nothing left out could have been the heaviest
    assert exact
    assert spent.keys() == set(list(best)[:1])


def test_trees_with_too_many_fragments_to_write_out_are_mined():
    tree = Tree("B", ["x"])
    for _ in range(40):
        tree = Tree("B", [tree, Tree("L", [Tree("M", ["y"]), Tree("N", ["z"])])])
    assert count_fragments(tree) > 10**20
    found, exact = mined(Forest.from_trees([tree]), np.ones((1, 1)), 0.25, 8)
    assert exact
    assert {str(f): w[0] for f, w in found.items()} == {
        "(B B L)": 40, "(L M N)": 40, "(M y)": 40, "(N z)": 40,
        "(B B (L M N))": 20, "(L (M y) N)": 20, "(L M (N z))": 20,
        "(B (B B L) L)": 19.5,
    }  # fmt: skip
