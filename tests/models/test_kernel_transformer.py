"""Exact kernels in pipelines, beside linear models on vectors."""

from collections import defaultdict

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
    read_trees,
)
from treedot.errors import ParameterError
from treedot.kernels import BoundedTreeKernel, ColumnKernel, LinearKernel, PartialTreeKernel, RouteKernel


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
    own = {
        "kernel": None, "n_landmarks": None, "landmarks": "examples", "random_state": 0, "n_jobs": None,
    }  # fmt: skip
    assert KernelTransformer().get_params(deep=False) == own
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


SOME_KERNELS = [
    SubsetTreeKernel(0.4, normalize=True),
    SubsetTreeKernel(0.4),
    SubtreeKernel(0.5, normalize=True),
    BoundedTreeKernel(0.4, budget=2, normalize=True),
    PartialTreeKernel(0.4, normalize=True),
    RouteKernel(0.4, normalize=True),
    SubtreeKernel(0.5, normalize=True) + 2 * PartialTreeKernel(0.4, normalize=True),
    SubsetTreeKernel(0.4, normalize=True) * SubtreeKernel(0.4, normalize=True),
]


@pytest.mark.parametrize("kernel", SOME_KERNELS, ids=repr)
def test_features_of_all_training_trees_as_landmarks_have_the_kernels_as_dot_products(kernel):
    forest, others = random_forest(3, 40, 14), random_forest(4, 10, 14)
    model = KernelTransformer(kernel=kernel, n_landmarks=40)
    rows, wanted = model.fit_transform(forest), kernel.gram(forest)
    assert np.abs(rows @ rows.T - wanted).max() <= 1e-12 * len(forest) * wanted.max()
    across = kernel.gram(others, forest)
    assert np.abs(model.transform(others) @ rows.T - across).max() <= 1e-6 * max(across.max(), wanted.max())
    more = KernelTransformer(kernel=kernel, n_landmarks=1000).fit_transform(forest)
    assert (more == rows).all()


def test_dot_products_with_a_landmark_are_exact_and_the_others_never_exceed_the_norms():
    forest, kernel = random_forest(3, 60, 14), SubsetTreeKernel(0.4, normalize=True)
    model = KernelTransformer(kernel=kernel, n_landmarks=20).fit(forest)
    rows, wanted, chosen = model.transform(forest), kernel.gram(forest), model.landmark_indices_
    products = rows @ rows.T
    assert products[:, chosen] == pytest.approx(wanted[:, chosen], abs=1e-8)
    assert (np.diagonal(products) <= 1 + 1e-8).all()
    left_out = np.linalg.eigvalsh(wanted - products)  # a projection leaves a positive semi-definite rest
    assert left_out.min() > -1e-8


def test_more_landmarks_approximate_the_kernel_better():
    forest, kernel = random_forest(9, 120, 12), SubsetTreeKernel(0.4, normalize=True)
    wanted = kernel.gram(forest)

    def error(n_landmarks, seed):
        model = KernelTransformer(kernel=kernel, n_landmarks=n_landmarks, random_state=seed)
        rows = model.fit_transform(forest)
        return np.sqrt(np.mean((rows @ rows.T - wanted) ** 2))

    errors = np.array([[error(n, seed) for n in (5, 20, 60, 110)] for seed in range(12)])
    assert (np.diff(errors.mean(axis=0)) < 0).all()
    assert (errors[:, -1] < 0.3 * errors[:, 0]).all()
    assert errors[:, :3].std(axis=0).min() > 0  # seeds choose other landmarks


def test_a_linear_model_of_few_landmarks_learns_what_the_kernel_does():
    forest, classes = labelled()
    linear = make_pipeline(KernelTransformer(n_landmarks=30), LinearSVC(C=10))
    exact = make_pipeline(KernelTransformer(), SVC(kernel="precomputed", C=10))
    found = [
        cross_val_score(linear.set_params(kerneltransformer__random_state=seed), forest, classes, cv=3).mean()
        for seed in range(5)
    ]
    assert np.mean(found) > cross_val_score(exact, forest, classes, cv=3).mean() - 0.05


def test_landmarks_are_chosen_uniformly_and_the_same_for_a_seed():
    forest = random_forest(3, 12, 8)
    chosen = [
        KernelTransformer(n_landmarks=4, random_state=seed).fit(forest).landmark_indices_
        for seed in range(300)
    ]
    assert all(len(set(each.tolist())) == 4 and (np.diff(each) > 0).all() for each in chosen)
    often = np.bincount(np.concatenate(chosen), minlength=12)
    assert (np.abs(often - 100) < 5 * np.sqrt(300 * (1 / 3) * (2 / 3))).all()
    again = KernelTransformer(n_landmarks=4, random_state=7).fit(forest)
    assert (again.landmark_indices_ == chosen[7]).all()
    assert list(again.trees_) == [forest[int(k)] for k in chosen[7]]


def frequent_subtrees(forest):
    """The distinct subtrees by definition, the most frequent first, without those with one parent subtree."""
    above = defaultdict(list)

    def visit(tree, parent):
        for child in tree.children:
            visit(child, tree)
        above[tree].append(parent)

    for tree in forest:
        visit(tree, None)
    kept = [tree for tree, parents in above.items() if None in parents or len(set(parents)) > 1]
    return sorted(kept, key=lambda tree: -len(above[tree]))


@pytest.mark.parametrize("kernel", SOME_KERNELS, ids=repr)
@pytest.mark.parametrize("wanted", [1, 7, 10_000])
def test_subtrees_as_landmarks_are_the_most_frequent_ones_that_the_kernel_sees(kernel, wanted):
    forest = random_forest(3, 25, 14)
    every = [tree for tree in frequent_subtrees(forest) if kernel(tree, tree) > 0]
    model = KernelTransformer(kernel=kernel, n_landmarks=wanted, landmarks="subtrees").fit(forest)
    assert list(model.trees_) == every[:wanted]
    assert not hasattr(model, "landmark_indices_")


def test_few_landmarks_among_many_subtrees_are_found_in_few_steps(monkeypatch):
    forest = read_trees([f"(S (A a{k % 3000}) (B a{k % 3000}))" for k in range(3003)])
    calls, diagonal = [], SubsetTreeKernel.diagonal
    monkeypatch.setattr(
        SubsetTreeKernel,
        "diagonal",
        lambda self, *given, **more: calls.append(1) or diagonal(self, *given, **more),
    )
    model = KernelTransformer(kernel=SubsetTreeKernel(), n_landmarks=4, landmarks="subtrees").fit(forest)
    assert [str(tree) for tree in model.trees_] == [f"(S (A a{k}) (B a{k}))" for k in range(4)]
    assert len(calls) < 10


@pytest.mark.parametrize("kernel", SOME_KERNELS, ids=repr)
def test_features_of_subtrees_are_the_plain_ones_and_exact_if_all_subtrees_are_landmarks(kernel):
    forest, others = random_forest(3, 25, 14), random_forest(4, 10, 14)
    model = KernelTransformer(kernel=kernel, n_landmarks=10, landmarks="subtrees")
    rows = model.fit_transform(forest)
    assert (rows == model.transform(forest)).all()
    inverse = np.linalg.pinv(kernel.gram(model.trees_), rcond=1e-12, hermitian=True)
    across, own = kernel.gram(others, model.trees_), kernel.gram(forest, model.trees_)
    plain = across @ inverse @ own.T
    assert np.abs(model.transform(others) @ rows.T - plain).max() <= 1e-6 * max(1, np.abs(plain).max())
    rows, wanted = model.set_params(n_landmarks=10_000).fit_transform(forest), kernel.gram(forest)
    assert np.abs(rows @ rows.T - wanted).max() <= 1e-12 * len(model.trees_) * wanted.max()


def test_subtrees_are_landmarks_only_for_kernels_of_trees():
    frame = {"text": ["(A b)", "(A c)"], "words": [1.0, 2.0]}
    kernel = ColumnKernel(SubsetTreeKernel(normalize=True), "text") + ColumnKernel(LinearKernel(), "words")
    with pytest.raises(ParameterError, match="needs a kernel of trees"):
        KernelTransformer(kernel=kernel, n_landmarks=1, landmarks="subtrees").fit(frame)


@pytest.mark.parametrize("n_landmarks", [None, 1])
def test_unknown_landmarks_are_refused_with_any_number_of_them(n_landmarks):
    with pytest.raises(ParameterError, match="landmarks must be one of 'examples', 'subtrees'"):
        KernelTransformer(n_landmarks=n_landmarks, landmarks="leaves").fit(["(A b)"])


def test_trees_without_fragments_have_no_subtrees_as_landmarks():
    assert KernelTransformer(n_landmarks=2, landmarks="subtrees").fit_transform(["(A)", "(B)"]).shape == (
        2,
        0,
    )


def test_landmarks_may_be_rows_of_a_table():
    pandas = pytest.importorskip("pandas")
    texts = [str(tree) for tree in random_forest(3, 12, 8)]
    frame = pandas.DataFrame({"text": texts, "words": np.arange(12.0)})
    kernel = ColumnKernel(SubsetTreeKernel(normalize=True), "text") + ColumnKernel(LinearKernel(), "words")
    model = KernelTransformer(kernel=kernel, n_landmarks=5)
    wanted = model.fit_transform(frame)
    assert wanted.shape == (12, 5)
    columns = frame.to_dict("list")
    rows = frame.to_dict("records")
    for table in (columns, rows, {"text": texts, "words": frame["words"].to_numpy()}):
        assert KernelTransformer(kernel=kernel, n_landmarks=5).fit_transform(table) == pytest.approx(wanted)
    pyarrow = pytest.importorskip("pyarrow")
    assert model.fit_transform(pyarrow.table(columns)) == pytest.approx(wanted)


def test_equal_landmarks_and_trees_without_fragments_give_finite_features():
    twice = ["(A b)", "(A b)", "(A c)", "(A b)"]
    rows = KernelTransformer(n_landmarks=4).fit_transform(twice)
    assert rows @ rows.T == pytest.approx(SubsetTreeKernel(normalize=True).gram(twice))
    assert not KernelTransformer(n_landmarks=2).fit_transform(["(A)", "(B)"]).any()


def test_a_fit_without_landmarks_forgets_those_of_the_fit_before():
    forest = random_forest(1, 8)
    model = KernelTransformer(n_landmarks=3).fit(forest).set_params(n_landmarks=None).fit(forest)
    assert (model.transform(forest) == model.kernel_.gram(forest, forest)).all()
    assert not hasattr(model, "landmark_indices_")


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "some"])
def test_a_number_of_landmarks_is_at_least_one(wrong):
    with pytest.raises(ParameterError, match="n_landmarks must be"):
        KernelTransformer(n_landmarks=wrong).fit(["(A b)"])
