"""Kernels are values: they show, compare, pickle and clone by their parameters."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest
from paper.rivals.label_selection import LabelSelectionKernel
from sklearn.base import BaseEstimator, clone

from strategies import SimilarTags
from treedot import PartialTreeKernel, SubsetTreeKernel, SubtreeKernel, kernels
from treedot.errors import LimitError, ParameterError
from treedot.kernels import BoundedTreeKernel, RouteKernel, SmoothedPartialTreeKernel
from treedot.kernels.tree_kernel import MAX_PAIRS, TreeKernel

KERNELS = [
    SubsetTreeKernel(),
    SubsetTreeKernel(
        0.7,
        normalize=True,
        convention="collins-duffy",
        leaves=True,
        weighting="distinct",
        algorithm="FTK",
        max_pairs=9,
    ),
    SubtreeKernel(1, leaves=True),
    BoundedTreeKernel(0.25, budget=200, max_pairs=12_345),
    LabelSelectionKernel(["NP", "DT"], decay=0.3, normalize=True),
    PartialTreeKernel(0.3, mu=0.5, gaps="span", terminal_factor=5, max_length=3, normalize=True),
    SmoothedPartialTreeKernel(SimilarTags(), decay=0.3, mu=0.5, threshold=0.2, normalize=True),
    RouteKernel(0.3, start="root"),
]


@pytest.mark.parametrize(("name", "leaves"), [("svm-light-tk", ""), ("kelp", ", leaves=True")])
def test_a_convention_of_subtrees_names_the_one_of_subset_trees(name, leaves):
    with pytest.raises(ParameterError, match=f"use convention='collins-duffy'{leaves}$"):
        SubsetTreeKernel(convention=name)


def test_every_kernel_is_tested_here():
    public = {getattr(kernels, name) for name in kernels.__all__ if name.endswith("TreeKernel")}
    public |= {kernels.RouteKernel, kernels.SubtreeKernel}
    tested = {type(kernel) for kernel in KERNELS}
    assert tested == public - {TreeKernel} | {
        LabelSelectionKernel
    }  # for the paper's tables, and not exported
    assert all(issubclass(kind, TreeKernel) for kind in tested)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(
    "copied",
    [
        clone,
        copy.copy,
        copy.deepcopy,
        lambda kernel: pickle.loads(pickle.dumps(kernel)),
        lambda k: eval(repr(k)),
    ],
    ids=["clone", "copy", "deepcopy", "pickle", "repr"],
)
def test_copies_are_equal_and_compute_the_same(kernel, copied):
    twin = copied(kernel)
    assert twin is not kernel
    assert twin == kernel
    assert twin.get_params() == kernel.get_params()
    trees = ["(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))"]
    assert (twin.gram(trees) == kernel.gram(trees)).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_parameters_are_those_of_the_constructor(kernel):
    params = kernel.get_params()
    assert list(params) == list(inspect.signature(type(kernel)).parameters)
    assert type(kernel)(**params) == kernel
    for name, value in params.items():  # a clone is checked by identity
        assert getattr(type(kernel)(**params), name) is value


def test_a_kernel_shows_its_decay_and_what_is_not_the_default():
    assert repr(SubsetTreeKernel()) == "SubsetTreeKernel(decay=0.4)"
    assert repr(SubsetTreeKernel(normalize=True)) == "SubsetTreeKernel(decay=0.4, normalize=True)"
    assert repr(BoundedTreeKernel(1, budget=2)) == "BoundedTreeKernel(decay=1.0, budget=2)"
    labels = repr(LabelSelectionKernel({"NP", "DT", "VP"}))
    assert labels == "LabelSelectionKernel(labels=['DT', 'NP', 'VP'], decay=0.4)"


def test_kernels_of_other_types_or_parameters_are_different():
    assert SubsetTreeKernel() != SubtreeKernel()
    assert SubsetTreeKernel() != SubsetTreeKernel(0.5)
    assert SubsetTreeKernel() != "SubsetTreeKernel(decay=0.4)"
    assert LabelSelectionKernel(["A", "B"]) == LabelSelectionKernel(("B", "A"))
    assert SubsetTreeKernel(np.float64(0.5)) == SubsetTreeKernel(0.5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(SubsetTreeKernel())


def test_parameters_are_set_as_the_constructor_takes_them():
    kernel = SubsetTreeKernel(0.4, max_pairs=1000)
    assert kernel.set_params(decay=1, leaves=True) is kernel
    assert kernel == SubsetTreeKernel(1.0, leaves=True, max_pairs=1000)
    assert kernel.set_params() == SubsetTreeKernel(1.0, leaves=True, max_pairs=1000)
    assert BoundedTreeKernel().set_params(budget=np.int64(3)).get_params() == {
        "decay": 0.4,
        "normalize": False,
        "budget": 3,
        "max_pairs": MAX_PAIRS,
    }


@pytest.mark.parametrize("params", [{"decay": 2}, {"leaves": "yes", "decay": 0.1}, {"budget": 4}])
def test_impossible_parameters_are_refused_and_nothing_changes(params):
    kernel = SubsetTreeKernel(0.3)
    with pytest.raises(ParameterError):
        kernel.set_params(**params)
    name, value = next(iter(params.items()))
    with pytest.raises(ParameterError):
        setattr(kernel, name, value)
    assert kernel == SubsetTreeKernel(0.3)


def test_a_parameter_is_set_as_an_attribute():
    kernel = BoundedTreeKernel()
    kernel.budget = np.int64(7)
    kernel.decay = 1
    assert kernel == BoundedTreeKernel(1.0, budget=7)
    with pytest.raises(ParameterError, match="has no parameter 'decays'"):
        kernel.decays = 0.5


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_parameters_but_the_first_are_named(kernel):
    first, *others = inspect.signature(type(kernel)).parameters.values()
    assert first.kind == first.POSITIONAL_OR_KEYWORD
    assert {parameter.kind for parameter in others} == {first.KEYWORD_ONLY}


class Holder(BaseEstimator):
    def __init__(self, kernel=None):
        self.kernel = kernel


def test_an_estimator_reaches_the_parameters_of_a_kernel_it_holds():
    holder = Holder(BoundedTreeKernel(normalize=True))
    assert holder.get_params()["kernel__budget"] == 4
    other = clone(holder).set_params(kernel__decay=0.2, kernel__budget=2)
    assert other.kernel == BoundedTreeKernel(0.2, normalize=True, budget=2)
    assert holder.kernel == BoundedTreeKernel(normalize=True)
    assert repr(other) == "Holder(kernel=BoundedTreeKernel(decay=0.2, normalize=True, budget=2))"


def test_thousands_of_labels_are_cut_off_where_a_kernel_is_printed():
    assert len(repr(LabelSelectionKernel([f"label{k}" for k in range(5000)]))) < 500


CHAIN = "(A " * 30 + ")" * 30
DENSE = "compare the vectors of DistributedTreeVectorizer"
SMALLER = "compare smaller trees"


@pytest.mark.parametrize(
    ("kernel", "instead"),
    [
        (SubsetTreeKernel(max_pairs=2), DENSE),
        (SubsetTreeKernel(max_pairs=2, algorithm="FTK"), DENSE),
        (SubsetTreeKernel(max_pairs=2, algorithm="TK"), DENSE),
        (BoundedTreeKernel(budget=3, max_pairs=2), "compare the rows of FragmentVectorizer with budget=3"),
        (PartialTreeKernel(max_pairs=2), f"{DENSE} with kernel='partial'"),
        (PartialTreeKernel(max_pairs=2, terminal_factor=2), SMALLER),
        (SmoothedPartialTreeKernel({"a": [1, 2]}, max_pairs=2), f"{DENSE} with kernel='smoothed'"),
        (SubtreeKernel(convention="kelp", max_pairs=2), SMALLER),
        (LabelSelectionKernel(["A"], max_pairs=2), SMALLER),
    ],
    ids=repr,
)
def test_a_limit_names_vectors_that_have_the_kernel_and_no_others(kernel, instead):
    for compare in (lambda: kernel(CHAIN, CHAIN), lambda: kernel.gram([CHAIN])):
        with pytest.raises(LimitError, match=rf"raise max_pairs \(8 bytes each\), or {re.escape(instead)}$"):
            compare()
