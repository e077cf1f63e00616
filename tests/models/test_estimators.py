"""Every estimator that treedot exports keeps the same rules; they are found by introspection."""

import inspect
import pickle

import numpy as np
import pytest
from paper.rivals.label_selection_transformer import LabelSelectionTransformer
from paper.rivals.mined_fragment_vectorizer import MinedFragmentVectorizer
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import treedot
from strategies import random_forest
from treedot import Forest, Vectors, models, vectors
from treedot.errors import ParameterError
from treedot.vectors import DenseSpec

KINDS = [
    kind
    for kind in (getattr(package, name) for package in (vectors, models) for name in package.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator)
]
KINDS += [LabelSelectionTransformer, MinedFragmentVectorizer]  # for the paper's tables, and not exported

# Smaller than by default, and what else an estimator can be; one that is not named here is as it is made.
VARIANTS = {
    "DistributedTreeVectorizer": [
        {"n_components": 256},
        {"n_components": 256, "kernel": "partial"},
        {
            "n_components": 256,
            "kernel": "smoothed",
            "similarity": treedot.kernels.WordVectors({"a": [1.0, 2.0]}),
        },
    ],
    "FragmentVectorizer": [
        {"n_features": 1024},
        {"n_features": None},
        {"n_features": 1024, "idf": True},
        {"n_features": 1024, "rest": "dense", "rest_size": 256},
    ],
    "KernelTransformer": [{}, {"n_landmarks": 10}, {"n_landmarks": 10, "landmarks": "subtrees"}],
    "DualLinearSVC": [{"tol": 1e-16}],  # as precise as the checks of weights ask for
    "MinedFragmentVectorizer": [{"n_fragments": 20}],
    "TreeClassifier": [{"decay": 0.4, "C": 1.0}, {"decay": (0.2, 0.4), "cv": 3}],
    "TreeMetric": [{"n_columns": 64, "shrinkage": 1.0}],
    "TreeRegressor": [{"decay": 0.4, "alpha": 1.0}, {"decay": (0.2, 0.4), "cv": 3}],
}
ESTIMATORS = [kind(**options) for kind in KINDS for options in VARIANTS.get(kind.__name__, [{}])]
ON_ROWS = [estimator for estimator in ESTIMATORS if get_tags(estimator).input_tags.two_d_array]
ON_TABLES = [estimator for estimator in ESTIMATORS if type(estimator).__name__ == "PairTransformer"]
ON_TREES = [estimator for estimator in ESTIMATORS if estimator not in (*ON_ROWS, *ON_TABLES)]
ONLY_ON_TREES = [estimator for estimator in ON_TREES if type(estimator).__name__ != "TreeMetric"]

# Scikit-learn's checks that need no data. The others give a matrix to ``fit``, which is no tree.
WITHOUT_DATA = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]

TRANSFORMERS = [estimator for estimator in ON_TREES if hasattr(estimator, "transform")]
CLASSIFIERS = [estimator for estimator in ON_TREES if is_classifier(estimator)]
REGRESSORS = [estimator for estimator in ON_TREES if is_regressor(estimator)]

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
every_tree_estimator = pytest.mark.parametrize("estimator", ON_TREES, ids=repr)
every_transformer = pytest.mark.parametrize("estimator", TRANSFORMERS, ids=repr)


@pytest.fixture(scope="module")
def forest():
    return random_forest(5, 24, nodes=9)


@pytest.fixture(scope="module")
def classes():
    return np.array(["yes", "no", "maybe"] * 8)


def as_bytes(output):
    """Return everything that an output consists of."""
    if isinstance(output, np.ndarray):
        return output.shape, output.dtype, output.tobytes()
    return output.shape, *(getattr(output, name).tobytes() for name in ("indptr", "indices", "data"))


def output_of(model, trees):
    """Return what an estimator makes of trees: rows, scores or numbers."""
    if is_regressor(model):
        return model.predict(trees)
    return model.transform(trees) if hasattr(model, "transform") else model.decision_function(trees)


def y_of(estimator, classes):
    """Return what an estimator learns: classes, or for a regressor numbers."""
    return (classes == "yes") + 2.0 * (classes == "no") if is_regressor(estimator) else classes


def test_there_are_estimators_of_both_kinds():
    assert len(KINDS) >= 6
    assert ON_ROWS
    assert TRANSFORMERS
    assert CLASSIFIERS
    assert REGRESSORS
    assert {*TRANSFORMERS, *CLASSIFIERS, *REGRESSORS} == {*ON_TREES}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some rows are not scaled
@parametrize_with_checks(ON_ROWS)
def test_estimators_on_rows_pass_all_of_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ON_TREES + ON_TABLES, ids=repr)
@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_estimators_on_trees_pass_scikit_learns_checks_that_need_no_data(estimator, name):
    check = getattr(estimator_checks, name)
    check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_given_by_name_and_rows_are_normalised_by_default(kind):
    parameters = inspect.signature(kind).parameters
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    with pytest.raises(TypeError):
        kind(1)
    if "normalize" in parameters:
        assert parameters["normalize"].default is True


@every_estimator
def test_a_clone_has_the_same_parameters_and_shows_them(estimator):
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert repr(copy) == repr(estimator)
    assert repr(estimator).startswith(f"{type(estimator).__name__}(")


@every_tree_estimator
def test_an_estimator_with_wrong_parameters_can_be_shown(estimator):
    for name in estimator.get_params(deep=False):
        model = clone(estimator).set_params(**{name: "wrong"})
        assert "fit" in dir(model)
        assert type(model).__name__ in model._repr_html_()


@every_tree_estimator
def test_fit_returns_the_estimator_and_leaves_parameters_as_they_are(estimator, forest, classes):
    classes = y_of(estimator, classes)
    model = clone(estimator)
    before = model.get_params(deep=False)
    assert model.fit(forest, classes) is model
    output_of(model, forest)
    after = model.get_params(deep=False)
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)


@every_transformer
def test_fitting_and_transforming_at_once_is_the_same(estimator, forest, classes):
    wanted = clone(estimator).fit(forest, classes).transform(forest)
    found = clone(estimator).fit_transform(forest, classes)
    assert found.dtype == wanted.dtype
    if isinstance(wanted, np.ndarray):  # a Gram matrix is computed once for both of its halves
        assert found == pytest.approx(wanted, rel=1e-12)
    else:
        assert as_bytes(found) == as_bytes(wanted)


@every_tree_estimator
def test_a_fit_forgets_the_one_before(estimator, forest, classes):
    classes = y_of(estimator, classes)
    again = clone(estimator).fit(forest[:12], classes[:12]).fit(forest, classes)
    wanted = clone(estimator).fit(forest, classes)
    assert as_bytes(output_of(again, forest)) == as_bytes(output_of(wanted, forest))


@every_transformer
def test_what_has_to_be_fitted_says_so(estimator, forest, classes):
    if get_tags(estimator).requires_fit:
        with pytest.raises(NotFittedError):
            clone(estimator).transform(forest)
    else:
        wanted = clone(estimator).fit(forest, classes).transform(forest)
        assert as_bytes(clone(estimator).transform(forest)) == as_bytes(wanted)


@every_tree_estimator
def test_a_pickled_estimator_gives_the_same_output(estimator, forest, classes):
    classes = y_of(estimator, classes)
    model = clone(estimator).fit(forest, classes)
    again = pickle.loads(pickle.dumps(model))
    assert as_bytes(output_of(again, forest)) == as_bytes(output_of(model, forest))
    if estimator in TRANSFORMERS:
        assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


@every_tree_estimator
def test_trees_may_come_as_texts_objects_files_or_a_forest(estimator, forest, classes, tmp_path):
    classes = y_of(estimator, classes)
    texts = [str(tree) for tree in forest]
    (tmp_path / "trees.mrg").write_text("\n".join(texts))
    wanted = output_of(clone(estimator).fit(forest, classes), forest)
    for source in (texts, list(forest), np.array(texts, object), str(tmp_path / "trees.mrg")):
        model = clone(estimator).fit(source, classes)
        assert as_bytes(output_of(model, source)) == as_bytes(wanted)
    assert as_bytes(output_of(model, forest[:0])) == as_bytes(wanted[:0])


@every_tree_estimator
def test_threads_make_no_difference(estimator, forest, classes):
    classes = y_of(estimator, classes)
    if "n_jobs" not in estimator.get_params():
        pytest.skip("it has no threads")
    wanted = output_of(clone(estimator).fit(forest, classes), forest)
    for n_jobs in (1, 3, -1):
        model = clone(estimator).set_params(n_jobs=n_jobs).fit(forest, classes)
        assert as_bytes(output_of(model, forest)) == as_bytes(wanted)


@every_transformer
def test_every_column_of_the_output_has_a_name_of_its_own(estimator, forest, classes):
    model = clone(estimator).fit(forest, classes)
    names = model.get_feature_names_out()
    assert len(set(names)) == len(names) == model.transform(forest).shape[1]
    assert all(isinstance(name, str) for name in names)


@every_transformer
def test_dense_output_may_be_a_frame_and_sparse_output_says_why_not(estimator, forest, classes):
    pandas = pytest.importorskip("pandas")
    model = clone(estimator).fit(forest, classes)
    output = model.transform(forest)
    if not isinstance(output, np.ndarray):
        with pytest.raises(ParameterError, match="sparse rows, which do not fit a pandas frame"):
            model.set_output(transform="pandas")
        assert as_bytes(model.set_output(transform="default").transform(forest)) == as_bytes(output)
        return
    frame = model.set_output(transform="pandas").transform(forest)
    assert isinstance(frame, pandas.DataFrame)
    assert frame.columns.tolist() == model.get_feature_names_out().tolist()
    assert (frame.to_numpy() == output).all()


@pytest.mark.parametrize("estimator", ONLY_ON_TREES, ids=repr)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("(S (A a))", r"to read bracket text, pass a list"),
        (["(S (A a))", None], "tree 2: expected a tree, found None"),
        ([__file__], r"is not a tree but the name of a file: pass pathlib\.Path"),
        (Forest, "cannot read trees from type"),
        (np.ones((2, 3)), "from ndarray: these are vectors already"),
        (csr_matrix((2, 3)), "from csr_matrix: these are vectors already"),
        (Vectors(np.ones((2, 256), np.float32), DenseSpec(256)), "from Vectors: these are vectors already"),
    ],
)
def test_what_holds_no_trees_is_refused_with_the_way_out(estimator, forest, classes, wrong, message):
    classes = y_of(estimator, classes)
    model = clone(estimator).fit(forest, classes)
    with pytest.raises(ValueError, match=message):
        output_of(model, wrong)
    if not isinstance(wrong, (list, type)):  # a fit that learns nothing does not read its trees
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(wrong, [0])


@pytest.mark.parametrize("estimator", ON_ROWS, ids=repr)
def test_trees_where_rows_belong_are_refused_with_the_way_out(estimator, forest, classes):
    for trees in (forest, list(forest), [str(tree) for tree in forest]):
        with pytest.raises(ParameterError, match=r"expected rows, found trees: use make_pipeline\("):
            clone(estimator).fit(trees, classes)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=repr)
def test_classifiers_predict_the_class_with_the_largest_score_and_have_to_be_fitted(
    estimator, forest, classes
):
    with pytest.raises(NotFittedError):
        clone(estimator).predict(forest)
    model = clone(estimator).fit(forest, classes)
    scores = model.decision_function(forest)
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    assert scores.shape == (24, 3)
    assert (model.predict(forest) == model.classes_[scores.argmax(axis=1)]).all()
    assert model.score(forest, classes) == np.mean(model.predict(forest) == classes)
    two = clone(estimator).fit(forest, classes == "yes")
    assert (two.predict(forest) == (two.decision_function(forest) > 0)).all()


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["yes"] * 24, "at least two classes, not 1 class"),
        (["yes"] * 12, "one class for each of the 24 trees"),
        (["yes", None] * 12, "12 of 24 trees have no class, the first is tree 2"),
        (["yes", ""] * 12, "12 of 24 trees have no class"),
        ([1.0, 0.0, np.nan] * 8, "8 of 24 trees have no class, the first is tree 3"),
        (np.linspace(0.1, 0.9, 24), "[Uu]nknown label type"),
    ],
)
def test_classes_that_cannot_be_learned_are_refused(estimator, forest, y, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(forest, y)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=repr)
def test_regressors_predict_a_number_for_each_tree_and_have_to_be_fitted(estimator, forest):
    with pytest.raises(NotFittedError):
        clone(estimator).predict(forest)
    y = forest.sizes.astype(float)
    model = clone(estimator).fit(forest, y)
    predicted = model.predict(forest)
    assert predicted.shape == (24,)
    error, spread = ((predicted - y) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    assert model.score(forest, y) == pytest.approx(1 - error / spread)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=repr)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0] * 12, "one number for each of the 24 trees"),
        ([[1.0]] * 24, "one number for each of the 24 trees"),
        ([1.0, None] * 12, "that of example 2 is None"),
        (["1", "2"] * 12, "that of example 1 is '1'"),
        ([1.0, 0.0, np.nan] * 8, "that of example 3 is nan"),
        ([1.0, np.inf] * 12, "that of example 2 is inf"),
        ([1.0, 1e40] * 12, "that of example 2 is 1e"),
    ],
)
def test_numbers_that_cannot_be_learned_are_refused(estimator, forest, y, message):
    with pytest.raises(ParameterError, match=message):
        clone(estimator).fit(forest, y)
