"""The preference kernel against its definition, and a ranking that it learns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.svm import SVC

from strategies import random_forest, trees
from treedot import Forest, KernelTransformer, SubsetTreeKernel, Tree
from treedot.errors import ParameterError, RangeError, SourceError
from treedot.kernels import (
    ColumnKernel,
    LinearKernel,
    NormalizedKernel,
    PartialTreeKernel,
    PreferenceKernel,
)
from treedot.kernels.reference import partial_tree_kernel, preference_kernel, subset_tree_kernel

PAIR = st.tuples(trees(max_leaves=4), trees(max_leaves=4))


def definition(a, b):
    return subset_tree_kernel(a, b, 0.4) + partial_tree_kernel(a, b, 0.5, 0.3)


KERNEL = PreferenceKernel(SubsetTreeKernel(0.4) + PartialTreeKernel(0.5, mu=0.3))


@pytest.mark.slow
@given(st.lists(PAIR, min_size=1, max_size=3), st.lists(PAIR, min_size=1, max_size=2))
def test_values_are_those_of_the_definition(first, second):
    wanted = np.array([[preference_kernel(x, y, definition) for y in second] for x in first])
    assert KERNEL.gram(first, second) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert KERNEL(first[0], second[0]) == pytest.approx(wanted[0, 0], rel=1e-9, abs=1e-9)
    own = np.array([[preference_kernel(x, y, definition) for y in first] for x in first])
    gram = KERNEL.gram(first)
    assert gram == pytest.approx(own, rel=1e-9, abs=1e-9)
    assert (gram == gram.T).all()
    assert KERNEL.pairs(first, [0, -1], [-1, 0]) == pytest.approx(
        [own[0, -1], own[-1, 0]], rel=1e-9, abs=1e-9
    )
    assert KERNEL.diagonal(first) == pytest.approx(np.diagonal(own), rel=1e-9, abs=1e-9)


def test_tables_of_every_kind_give_the_same_values():
    first, second = random_forest(1, 6), random_forest(2, 6)
    wanted = KERNEL.gram(list(zip(first, second, strict=True)))
    named = clone(KERNEL).set_params(columns=["better", "worse"])
    assert (named.gram({"better": first, "worse": second}) == wanted).all()
    texts = {"better": list(map(str, first)), "worse": list(map(str, second))}
    assert (named.gram(texts) == wanted).all()
    assert (named.gram(texts, n_jobs=2) == wanted).all()


def test_swapped_pairs_have_the_opposite_sign():
    first, second = random_forest(3, 5), random_forest(4, 5)
    both = KERNEL.gram(list(zip(first, second, strict=True)))
    across = KERNEL.gram(list(zip(first, second, strict=True)), list(zip(second, first, strict=True)))
    assert across == pytest.approx(-both, rel=1e-12)


def test_it_is_a_kernel_that_can_be_normalised():
    pairs = list(zip(random_forest(5, 12), random_forest(6, 12), strict=True))
    kernel = NormalizedKernel(PreferenceKernel(SubsetTreeKernel(0.4)))
    gram = kernel.gram(pairs)
    assert np.linalg.eigvalsh(gram).min() > -1e-9
    assert np.diagonal(gram) == pytest.approx(np.ones(12))
    equal = [(a, a) for a, _ in pairs]
    assert (kernel.gram(equal) == 0).all()


def test_it_learns_to_rank():
    rng = np.random.default_rng(0)
    sizes = rng.permutation(24)  # the longer list of children is better
    lists = Forest.from_trees([Tree("L", ["x"] * (size + 1)) for size in sizes.tolist()])
    i, j = rng.integers(24, size=(2, 120))
    i, j = i[i != j], j[i != j]
    examples = {"first": lists[i], "second": lists[j]}
    kernel = PreferenceKernel(PartialTreeKernel(1.0, mu=1.0, max_length=1), ["first", "second"])
    gram, better = KernelTransformer(kernel=kernel).fit_transform(examples), sizes[i] > sizes[j]
    half = gram.shape[0] // 2
    machine = SVC(kernel="precomputed", C=100).fit(gram[:half, :half], better[:half])
    assert machine.score(gram[half:, :half], better[half:]) > 0.95


def test_what_is_no_pair_of_trees_is_refused():
    for columns in ("ab", [0], [0, 1, 2], [0, None]):
        with pytest.raises(ParameterError, match="two names or two positions"):
            PreferenceKernel(SubsetTreeKernel(), columns)
    with pytest.raises(ParameterError, match="must be a kernel"):
        PreferenceKernel(3)
    with pytest.raises(ParameterError, match="kernel of trees"):
        PreferenceKernel(LinearKernel()).gram([(1, 2)])
    with pytest.raises(ParameterError, match="kernel of trees"):
        PreferenceKernel(ColumnKernel(SubsetTreeKernel(), "a"), ["a", "b"]).gram(
            {"a": ["(A b)"], "b": ["(A b)"]}
        )
    with pytest.raises(SourceError, match="do not form pairs"):
        PreferenceKernel(SubsetTreeKernel(), ["a", "b"]).gram({"a": ["(A b)"], "b": ["(A b)", "(A c)"]})
    with pytest.raises(SourceError, match="no column"):
        PreferenceKernel(SubsetTreeKernel(), ["a", "c"]).gram({"a": ["(A b)"], "b": ["(A b)"]})


def test_values_beyond_floats_are_refused():
    class Huge(SubsetTreeKernel):
        def gram(self, X, Y=None, *, n_jobs=None):
            return np.full((2, 2), 1.5e308)

    with pytest.raises(RangeError, match="normalise its kernel"):
        PreferenceKernel(Huge()).gram([("(A b)", "(A c)")])
