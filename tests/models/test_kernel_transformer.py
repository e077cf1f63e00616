"""Exact kernels in pipelines, beside linear models on vectors."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    KernelTransformer,
    SubsetTreeKernel,
    SubtreeKernel,
    Tree,
)
from treedot.errors import ParameterError
from treedot.kernels import BoundedTreeKernel


def labelled():
    """Trees that differ in one small fragment among much else."""
    classes = ["yes", "no", "maybe"] * 20
    rest = random_forest(5, 60, nodes=12)
    trees = [
        Tree("S", [Tree("X", [Tree(kind, ["v"])]), tree]) for kind, tree in zip(classes, rest, strict=True)
    ]
    return Forest.from_trees(trees), classes


def test_a_linear_model_on_vectors_and_an_svm_on_the_exact_kernel_learn_a_fragment():
    forest, classes = labelled()
    linear = make_pipeline(DistributedTreeVectorizer(n_components=2048), LinearSVC(C=10))
    exact = make_pipeline(KernelTransformer(), SVC(kernel="precomputed", C=10))
    assert cross_val_score(linear, forest, classes, cv=3).mean() > 0.9
    assert cross_val_score(exact, forest, classes, cv=3).mean() > 0.9
    assert cross_val_score(exact, [str(t) for t in forest], classes, cv=3).mean() > 0.9


def test_parameters_can_be_searched():
    forest, classes = labelled()
    search = GridSearchCV(
        make_pipeline(DistributedTreeVectorizer(n_components=256), LogisticRegression()),
        {"distributedtreevectorizer__decay": [0.2, 0.4]},
        cv=2,
    )
    assert search.fit(forest, classes).best_score_ > 0.7
    search = GridSearchCV(
        make_pipeline(KernelTransformer(), SVC(kernel="precomputed")),
        [
            {"kerneltransformer__kernel__decay": [0.2, 0.4]},
            {"kerneltransformer__kernel": [SubtreeKernel(), BoundedTreeKernel(budget=2)]},
        ],
        cv=2,
    )
    assert search.fit(forest, classes).best_score_ > 0.5
    kernel = search.set_params(param_grid={"kerneltransformer__kernel__decay": [0.2]}).fit(forest, classes)
    assert kernel.best_estimator_[0].kernel_ == SubsetTreeKernel(0.2, normalize=True)


def test_the_default_kernel_has_parameters_too():
    assert KernelTransformer().get_params()["kernel__decay"] == 0.4
    assert KernelTransformer().get_params(deep=False) == {"kernel": None, "n_jobs": None}
    wanted = SubsetTreeKernel(0.2, normalize=True)
    assert KernelTransformer().set_params(kernel__decay=0.2).kernel == wanted
    for model in (KernelTransformer(), KernelTransformer(kernel=SubtreeKernel())):
        assert model.set_params(kernel=None, kernel__decay=0.2).kernel == wanted
    assert KernelTransformer(kernel=SubtreeKernel()).set_params(kernel=None).kernel is None


def test_the_kernel_transformer_gives_kernels_with_the_training_trees():
    forest = random_forest(1, 8)
    gram = KernelTransformer(kernel=SubsetTreeKernel(decay=0.3))
    assert np.allclose(gram.fit_transform(forest), SubsetTreeKernel(decay=0.3).gram(forest))
    rows = gram.transform(forest[:2])
    assert np.allclose(rows, SubsetTreeKernel(decay=0.3).gram(forest[:2], forest))
    assert len(gram.get_feature_names_out()) == 8


def test_conventions_weightings_and_leaves_are_in_reach_of_pipelines():
    forest = random_forest(1, 8)
    for kernel in (
        SubsetTreeKernel(0.3, convention="collins-duffy", leaves=True),
        SubsetTreeKernel(0.3, normalize=True, weighting="distinct"),
        SubtreeKernel(0.5, normalize=True),
    ):
        assert (KernelTransformer(kernel=kernel).fit_transform(forest) == kernel.gram(forest)).all()
    assert np.diagonal(KernelTransformer().fit_transform(forest)) == pytest.approx(1)


def test_changing_a_kernel_after_the_fit_changes_nothing_before_the_next():
    forest, kernel = random_forest(1, 8), SubsetTreeKernel(0.3)
    model = KernelTransformer(kernel=kernel).fit(forest)
    model.set_params(kernel__decay=0.9)
    assert model.kernel is kernel
    assert (model.transform(forest) == SubsetTreeKernel(0.3).gram(forest, forest)).all()
    assert (model.fit_transform(forest) == SubsetTreeKernel(0.9).gram(forest)).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (SubsetTreeKernel, r"not the class SubsetTreeKernel: pass SubsetTreeKernel\(normalize=True\)"),
        ("subset", r"such as SubsetTreeKernel\(decay=0.4, normalize=True\), not 'subset'"),
        (len, "must be a tree kernel"),
    ],
)
def test_what_is_no_kernel_is_refused_with_an_example(wrong, message):
    with pytest.raises(ParameterError, match=message):
        KernelTransformer(kernel=wrong).fit(["(A b)"])
