import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.rivals.label_selection import LabelSelectionKernel

from strategies import ANY_LABEL, corpus, random_forest, trees
from treedot import Forest, SubsetTreeKernel, SubtreeKernel, Tree, read_trees
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.kernels import count_fragments, list_fragments, reference

DECAY = st.sampled_from([0.0, 0.3, 0.4, 1.0])
FORESTS = st.lists(trees(max_leaves=7), min_size=1, max_size=4)
EXACT = 1e-12


def explicit(a, b, decay):
    x, y = list_fragments(a, decay), list_fragments(b, decay)
    return math.fsum(weight * y.get(fragment, 0.0) for fragment, weight in x.items())


@given(trees(max_leaves=6), trees(max_leaves=6), DECAY)
def test_the_reference_counts_shared_fragments(a, b, decay):
    assert reference.subset_tree_kernel(a, b, decay) == pytest.approx(explicit(a, b, decay), rel=EXACT)


@given(FORESTS, FORESTS, DECAY)
def test_pair_and_gram_are_the_reference(first, second, decay):
    kernel = SubsetTreeKernel(decay=decay)
    expected = np.array([[reference.subset_tree_kernel(a, b, decay) for b in second] for a in first])
    assert np.allclose(kernel.gram(first, second), expected, rtol=EXACT, atol=0)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=EXACT)
    both = np.array([[reference.subset_tree_kernel(a, b, decay) for b in first] for a in first])
    assert np.allclose(kernel.gram(first), both, rtol=EXACT, atol=0)
    assert np.allclose(kernel.diagonal(first), np.diagonal(both), rtol=EXACT, atol=0)
    if expected[0, 0] > 0:
        assert kernel.log(first[0], second[0]) == pytest.approx(math.log(expected[0, 0]), abs=EXACT)


@given(trees(ANY_LABEL), trees(ANY_LABEL))
def test_labels_may_be_anything(a, b):
    assert SubsetTreeKernel()(a, b) == pytest.approx(reference.subset_tree_kernel(a, b, 0.4), rel=EXACT)


@given(FORESTS, FORESTS, DECAY)
def test_the_subtree_kernel_is_its_reference(first, second, decay):
    expected = np.array([[reference.subtree_kernel(a, b, decay) for b in second] for a in first])
    assert np.allclose(SubtreeKernel(decay=decay).gram(first, second), expected, rtol=EXACT, atol=0)


def equal_subtrees(a, b, decay, leaves):
    """Return Σ λ^(p-1) over all pairs of equal subtrees; a pair of leaves, if they count, is 1."""
    equal = [x for x in a.postorder() for y in b.postorder() if x == y]
    sizes = [sum(not node.is_leaf for node in x.postorder()) for x in equal]
    return math.fsum(decay ** max(p - 1, 0) for p in sizes if p or leaves)


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("convention", ["paper", "collins-duffy"])
@given(first=FORESTS, second=FORESTS, decay=DECAY)
def test_the_subtree_kernel_has_the_conventions_of_the_subset_tree_kernel(
    convention, leaves, first, second, decay
):
    share = decay if convention == "collins-duffy" else 1.0
    kernel = SubtreeKernel(decay, convention=convention, leaves=leaves)
    expected = np.array([[share * equal_subtrees(a, b, decay, leaves) for b in second] for a in first])
    assert np.allclose(kernel.gram(first, second), expected, rtol=EXACT, atol=0)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=EXACT)
    if expected[0, 0] > 0:
        assert kernel.log(first[0], second[0]) == pytest.approx(math.log(expected[0, 0]), abs=EXACT)
    own = kernel.gram(first)
    rows, columns = np.indices(own.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(first, rows, columns), own.ravel(), rtol=EXACT, atol=0)
    if decay:
        norms = np.sqrt(np.outer(np.diagonal(own), np.diagonal(own)))
        cosines = np.divide(own, norms, out=np.zeros_like(own), where=norms > 0)
        found = SubtreeKernel(decay, normalize=True, convention=convention, leaves=leaves).gram(first)
        assert np.allclose(found, cosines, rtol=EXACT, atol=0)


@given(trees(), trees())
def test_both_kernels_count_the_same_leaves(a, b):
    plain, leaves = (
        [kernel(0.3, leaves=leaves)(a, b) for kernel in (SubtreeKernel, SubsetTreeKernel)]
        for leaves in (False, True)
    )
    assert leaves[0] - plain[0] == pytest.approx(leaves[1] - plain[1], rel=1e-9, abs=1e-9)


@given(FORESTS, DECAY)
def test_a_fragment_can_count_once_per_tree(first, decay):
    kernel = SubsetTreeKernel(decay=decay, weighting="distinct")
    for i, a in enumerate(first):
        for j, b in enumerate(first):
            shared = list_fragments(a).keys() & list_fragments(b).keys()
            sizes = [sum(not n.is_leaf for n in f.postorder()) for f in shared]
            expected = math.fsum(math.sqrt(decay) ** (2 * (p - 1)) for p in sizes)
            assert kernel.gram(first)[i, j] == pytest.approx(expected, rel=1e-9)
    if decay == 1.0:
        assert kernel(first[0], first[0]) == len(list_fragments(first[0]))


@given(trees(), trees(), st.sampled_from([0.3, 1.0]))
def test_conventions_differ_as_documented(a, b, decay):
    plain = SubsetTreeKernel(decay=decay)(a, b)
    assert SubsetTreeKernel(decay=decay, convention="collins-duffy")(a, b) == pytest.approx(decay * plain)
    leaves = sum(x.label == y.label for x in a.postorder() for y in b.postorder() if x.is_leaf and y.is_leaf)
    assert SubsetTreeKernel(decay=decay, leaves=True)(a, b) == pytest.approx(plain + leaves)
    with_leaves = SubsetTreeKernel(decay=decay, convention="collins-duffy", leaves=True)
    assert with_leaves(a, b) == pytest.approx(decay * (plain + leaves))
    if plain + leaves:
        assert with_leaves.log(a, b) == pytest.approx(math.log(decay * (plain + leaves)))


@given(FORESTS)
def test_normalised_kernels_are_cosines(first):
    raw = SubsetTreeKernel().gram(first)
    own = np.sqrt(np.diagonal(raw))
    expected = np.divide(raw, np.outer(own, own), out=np.zeros_like(raw), where=np.outer(own, own) > 0)
    kernel = SubsetTreeKernel(normalize=True)
    assert np.allclose(kernel.gram(first), expected, rtol=1e-12)
    assert np.allclose(kernel.gram(first, first), expected, rtol=1e-12)
    assert kernel(first[0], first[-1]) == pytest.approx(expected[0, -1], rel=1e-12)


def test_tiles_do_not_matter():
    forest = random_forest(0, 30)
    whole = SubsetTreeKernel().gram(forest)
    tiled = SubsetTreeKernel(max_pairs=400)
    assert np.allclose(tiled.gram(forest), whole, rtol=1e-12)
    assert np.allclose(tiled.gram(forest[:7], forest), whole[:7], rtol=1e-12)


@pytest.mark.corpus
def test_real_trees_agree_with_the_reference():
    forest = read_trees(corpus("qc_train.tsv.gz"))[:40]
    expected = [[reference.subset_tree_kernel(a, b, 0.4) for b in forest[:10]] for a in forest]
    assert np.allclose(SubsetTreeKernel().gram(forest, forest[:10]), expected, rtol=EXACT, atol=0)


@pytest.mark.slow
@pytest.mark.large
def test_distinct_labels_make_large_shapes_linear():
    kernel = SubsetTreeKernel()
    deep = "".join(f"(n{k} " for k in range(100_000)) + "x" + ")" * 100_000
    wide = "(n" + "".join(f" x{k}" for k in range(200_000)) + ")"
    families = "(n" + "".join(f" (m{k} x)" for k in range(100_000)) + ")"
    deep, wide, families = (read_trees([tree]) for tree in (deep, wide, families))
    assert kernel(deep, deep) == pytest.approx(sum((1 - 0.4**k) / 0.6 for k in range(1, 50)) + 99_951 / 0.6)
    assert kernel(wide, wide) == 1.0
    normalised = SubsetTreeKernel(normalize=True)
    forest = deep + wide + families
    assert normalised.gram(forest)[2] == pytest.approx([0, 0, 1])
    assert kernel.work(forest) <= forest.n_nodes
    many = SubsetTreeKernel().gram(read_trees(["(a (b c))"] * 2000))
    assert (many == 2.4).all()


@pytest.mark.large
def test_too_many_matching_pairs_are_refused_before_any_work():
    deep = "(n " * 100_000 + "x" + ")" * 100_000
    with pytest.raises(LimitError, match=r"9999800002 matching pairs.*max_pairs=134217728"):
        SubsetTreeKernel()(deep, deep)
    with pytest.raises(LimitError, match="matching pairs"):
        SubsetTreeKernel().gram([deep, "(a b)"])
    with pytest.raises(LimitError, match="matching pairs"):
        SubsetTreeKernel(max_pairs=3)("(a (a (a b)))", "(a (a (a b)))")


def balanced(label, leaves):
    nodes = [Tree(label, ["x"]) for _ in range(leaves)]
    while len(nodes) > 1:
        nodes = [
            Tree(label, nodes[k : k + 2]) if k + 1 < len(nodes) else nodes[k] for k in range(0, len(nodes), 2)
        ]
    return nodes[0]


@pytest.mark.slow
@pytest.mark.large
def test_huge_kernels_are_refused_or_answered_in_logarithms():
    huge, cousin, small = balanced("B", 2500), balanced("B", 2490), Tree.parse("(B x)")
    kernel = SubsetTreeKernel(decay=1.0)
    with pytest.raises(RangeError, match=r"log\(a, b\)"):
        kernel(huge, huge)
    with pytest.raises(RangeError, match="trees 1 and 1"):
        kernel.gram([huge, small])
    self_kernel = kernel.log(huge, huge)
    assert self_kernel > 1000
    normalised = SubsetTreeKernel(decay=1.0, normalize=True)
    matrix = normalised.gram([huge, cousin, small])
    assert np.isfinite(matrix).all()
    assert matrix[0, 0] == matrix[1, 1] == matrix[2, 2] == 1
    expected = math.exp(kernel.log(huge, cousin) - (self_kernel + kernel.log(cousin, cousin)) / 2)
    assert matrix[0, 1] == pytest.approx(expected, rel=1e-9)
    assert normalised(huge, cousin) == pytest.approx(expected, rel=1e-9)
    assert normalised.log(huge, cousin) == pytest.approx(math.log(expected), rel=1e-9)
    assert normalised.gram([huge, "(x)"])[0, 1] == normalised(huge, "(x)") == 0
    assert normalised.gram([huge], [small, cousin])[0, 1] == pytest.approx(expected, rel=1e-9)


@given(FORESTS, st.booleans())
def test_norms_are_roots_of_self_kernels(first, normalize):
    norms = SubsetTreeKernel(normalize=normalize).norms(first)
    assert norms == pytest.approx(np.sqrt(SubsetTreeKernel().diagonal(first)), rel=EXACT)


@pytest.mark.slow
@pytest.mark.large
def test_norms_are_finite_where_self_kernels_are_not():
    kernel, huge = SubsetTreeKernel(decay=1.0), balanced("B", 1300)
    with pytest.raises(RangeError, match="trees 2 and 2 "):
        kernel.diagonal(["(a b)", huge])
    assert np.log(kernel.norms([huge, "(a b)"])) == pytest.approx([kernel.log(huge, huge) / 2, 0], rel=1e-12)
    assert kernel.norms([balanced("B", 5000)])[0] == math.inf


@pytest.mark.slow
def test_scaled_arithmetic_agrees_with_integers_beyond_floats():
    tree = Tree("N", ["x"])
    for k in range(260):
        tree = Tree("N", [tree, Tree(f"L{k}", [Tree(f"M{i}", ["y"]) for i in range(4)])])
    nodes = [node for node in tree.postorder() if not node.is_leaf]
    by_production = {}
    for node in nodes:
        by_production.setdefault(reference.production(node), []).append(node)
    delta = {}
    for a in nodes:
        for b in by_production[reference.production(a)]:
            below = zip(a.children, b.children, strict=True)
            delta[id(a), id(b)] = math.prod(1 + delta.get((id(c), id(d)), 0) for c, d in below)
    exact = sum(delta.values())
    assert exact > 10**308
    assert SubsetTreeKernel(decay=1.0).log(tree, tree) == pytest.approx(math.log(exact), rel=1e-14)


@given(trees(max_leaves=5))
def test_fragments_are_counted_as_they_are_enumerated(tree):
    assert count_fragments(tree) == sum(list_fragments(tree).values())


def test_too_many_fragments_are_refused():
    with pytest.raises(LimitError, match=r"about 2\^\d+ fragments"):
        list_fragments(balanced("B", 200))
    with pytest.raises(LimitError, match="more than max_fragments=3"):
        list_fragments(Tree.parse("(a (b c) (d e))"), max_fragments=3)


@pytest.mark.parametrize(
    "settings",
    [{"decay": 2}, {"decay": math.nan}, {"convention": "other"}, {"weighting": "heavy"}, {"max_pairs": 1.5}],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ParameterError):
        SubsetTreeKernel(**settings)
    if "weighting" not in settings:
        with pytest.raises(ParameterError):
            SubtreeKernel(**settings)


def test_the_limit_counts_distinct_subtrees_where_nodes_are_too_many():
    tree = "(A" + " (B x)" * 200 + ")"
    kernel = SubsetTreeKernel(0.1, max_pairs=1000)
    expected = reference.subset_tree_kernel(Tree.parse(tree), Tree.parse(tree), 0.1)
    for value in (kernel(tree, tree), kernel.gram([tree])[0, 0], kernel.gram([tree, tree])[0, 1]):
        assert value == pytest.approx(expected, rel=EXACT)
    assert kernel.diagonal([tree, tree]) == pytest.approx([expected] * 2, rel=EXACT)


def test_one_tree_means_one(tmp_path):
    (tmp_path / "two.mrg").write_text("(a b)\n(c d)\n")
    with pytest.raises(ParameterError, match="expected one tree, found 2"):
        SubsetTreeKernel()(tmp_path / "two.mrg", "(a b)")
    with pytest.raises(ParameterError, match="at least 1"):
        SubsetTreeKernel(max_pairs=-1)


def test_leaves_alone_share_nothing():
    kernel = SubsetTreeKernel()
    assert kernel("(a)", "(a)") == 0
    assert kernel.log("(a)", "(a)") == -math.inf
    assert SubsetTreeKernel(normalize=True)("(a)", "(a)") == 0
    assert kernel.gram(Forest.from_trees([]), ["(a b)"]).shape == (0, 1)


def families(*counts):
    """Return a tree A of many equal children, B b and then others."""
    return "(A" + "".join(f" (B {word})" * count for word, count in zip("bc", counts, strict=False)) + ")"


@pytest.mark.large
def test_logarithms_count_distinct_subtrees():
    a, b = families(12_000), families(11_990, 10)  # 144 million matching pairs of nodes, few of subtrees
    kernel = SubsetTreeKernel(0.4)

    def log_of(expanded, pairs):
        return float(np.logaddexp(expanded * math.log1p(0.4), math.log(pairs)))

    own_a, own_b = log_of(12_000, 12_000**2), log_of(12_000, 11_990**2 + 10**2)
    both = log_of(11_990, 12_000 * 11_990)
    assert kernel.log(a, a) == pytest.approx(own_a, rel=EXACT)
    assert kernel.log(b, b) == pytest.approx(own_b, rel=EXACT)
    assert kernel.log(a, b) == pytest.approx(both, rel=EXACT)
    expected = math.exp(both - (own_a + own_b) / 2)
    normalised = SubsetTreeKernel(0.4, normalize=True)
    assert normalised(a, b) == pytest.approx(expected, rel=1e-9)
    assert normalised.gram([a], [b])[0, 0] == pytest.approx(expected, rel=1e-9)
    assert normalised.pairs([a, b], [0], [1])[0] == pytest.approx(expected, rel=1e-9)
    assert LabelSelectionKernel(["A", "B"], decay=0.4).log(a, b) == pytest.approx(both, rel=EXACT)
    assert kernel.log_norms([a, b]) == pytest.approx([own_a / 2, own_b / 2], rel=EXACT)
    # Where pairs of subtrees are many times as heavy as their root, their numbers count.
    few = SubsetTreeKernel(0.0).log(a, b)
    assert few == pytest.approx(math.log(12_000 * 11_990 + 1), rel=EXACT)
