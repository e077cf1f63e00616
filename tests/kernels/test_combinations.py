import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.svm import SVC

from strategies import random_forest, trees
from treedot import (
    Forest,
    FragmentVectorizer,
    KernelTransformer,
    PartialTreeKernel,
    SubsetTreeKernel,
    SubtreeKernel,
    dot_products,
)
from treedot.errors import ParameterError, RangeError, SourceError
from treedot.kernels import (
    BoundedTreeKernel,
    ColumnKernel,
    KernelProduct,
    KernelSum,
    LinearKernel,
    NormalizedKernel,
    PolynomialKernel,
    RBFKernel,
    ScaledKernel,
)

EXACT = 1e-12
SUBSET, PARTIAL = SubsetTreeKernel(0.4), PartialTreeKernel(0.5)
COMBINED = [
    (SUBSET + PARTIAL, lambda k, a, b: k[0] + k[1]),
    (0.5 * SUBSET, lambda k, a, b: 0.5 * k[0]),
    (SUBSET * PARTIAL, lambda k, a, b: k[0] * k[1]),
    (NormalizedKernel(SUBSET), lambda k, a, b: k[0] / math.sqrt(a[0] * b[0]) if k[0] else 0.0),
    (PolynomialKernel(PARTIAL, degree=3, scale=0.5, bias=2), lambda k, a, b: (0.5 * k[1] + 2) ** 3),
    (RBFKernel(PARTIAL, gamma=0.3), lambda k, a, b: math.exp(-0.3 * (a[1] + b[1] - 2 * k[1]))),
    (SUBSET * (SUBSET + PARTIAL * 2), lambda k, a, b: k[0] * (k[0] + 2 * k[1])),
]


def values(a, b):
    return SUBSET(a, b), PARTIAL(a, b)


@pytest.mark.slow
@given(first=st.lists(trees(), min_size=1, max_size=4), second=st.lists(trees(), min_size=1, max_size=3))
def test_combinations_are_their_formulas(first, second):
    known = {(a, b): values(a, b) for a, b in itertools.product([*first, *second], repeat=2)}
    for kernel, formula in COMBINED:

        def matrix(rows, columns, formula=formula):
            return np.array([[formula(known[a, b], known[a, a], known[b, b]) for b in columns] for a in rows])

        check_formula(kernel, matrix, first, second)


def check_formula(kernel, matrix, first, second):
    own, expected = matrix(first, first), matrix(first, second)
    assert np.allclose(kernel.gram(first), own, rtol=1e-9, atol=EXACT)
    assert np.allclose(kernel.gram(first, second), expected, rtol=1e-9, atol=EXACT)
    assert np.allclose(kernel.diagonal(first), np.diagonal(own), rtol=1e-9, atol=EXACT)
    assert np.allclose(kernel.norms(first), np.sqrt(np.diagonal(own)), rtol=1e-9, atol=EXACT)
    rows, columns = np.indices(own.shape).reshape(2, -1)
    assert np.allclose(kernel.pairs(first, rows, columns), own.ravel(), rtol=1e-9, atol=EXACT)
    assert kernel(first[0], second[0]) == pytest.approx(expected[0, 0], rel=1e-9, abs=EXACT)


@pytest.mark.parametrize(("kernel", "formula"), COMBINED, ids=[repr(kernel) for kernel, _ in COMBINED])
def test_combinations_are_symmetric_and_the_same_bytes_whatever_the_threads(kernel, formula):
    forest = random_forest(1, 20)
    matrix = kernel.gram(forest)
    assert (matrix == matrix.T).all()
    assert kernel.gram(forest, n_jobs=3).tobytes() == matrix.tobytes()


def test_combinations_read_their_trees_once():
    texts = ["(S (A a))", "(S (A b))"]
    kernel = SUBSET + SubtreeKernel()
    assert (kernel.gram(iter(texts)) == kernel.gram(texts)).all()
    assert isinstance(kernel.read(iter(texts)), Forest)


def test_a_normalised_kernel_is_1_of_a_tree_with_itself_and_0_without_fragments():
    kernel = NormalizedKernel(SUBSET + SUBSET)
    chosen = [*random_forest(2, 9), "(A)"]
    matrix = kernel.gram(chosen)
    assert np.diagonal(matrix).tolist() == [1.0] * 9 + [0.0]
    assert kernel.diagonal(chosen).tolist() == [1.0] * 9 + [0.0]
    assert np.allclose(matrix, SubsetTreeKernel(0.4, normalize=True).gram(chosen), rtol=EXACT)


@pytest.mark.large
def test_what_is_too_large_for_a_float_is_refused():
    wide = "(A" + " (B b)" * 1500 + ")"  # about 10^219
    kernel = SubsetTreeKernel(0.4) * SubsetTreeKernel(0.4)
    with pytest.raises(
        RangeError, match=r"values of SubsetTreeKernel.* are too large for a float: normalise"
    ):
        kernel(wide, wide)
    with pytest.raises(RangeError, match="too large"):
        PolynomialKernel(SubsetTreeKernel(0.4), degree=2).gram([wide])


KERNELS = [
    SUBSET + PARTIAL + SubtreeKernel(),
    SUBSET + (PARTIAL + SubtreeKernel()),
    2 * (SUBSET + PARTIAL),
    SUBSET * (PARTIAL * SubtreeKernel()) * (SUBSET + PARTIAL),
    0.5 * (SUBSET * PARTIAL),
    3 * (2 * SUBSET),
    2 * SUBSET * (3 * PARTIAL),
    NormalizedKernel(SUBSET),
    PolynomialKernel(SUBSET, degree=3, bias=1),
    RBFKernel(SUBSET + PARTIAL, gamma=0.2),
    ColumnKernel(SUBSET, 0) + ColumnKernel(LinearKernel(), [1, 2]),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(
    "copied",
    [clone, copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k)), lambda k: eval(repr(k))],
    ids=["clone", "copy", "deepcopy", "pickle", "repr"],
)
def test_copies_are_equal(kernel, copied):
    assert copied(kernel) == kernel
    assert copied(kernel) is not kernel
    assert kernel != SUBSET


def test_kernels_are_shown_as_they_are_written():
    assert (
        repr(0.5 * SUBSET + SubtreeKernel()) == "0.5 * SubsetTreeKernel(decay=0.4) + SubtreeKernel(decay=0.4)"
    )
    assert repr(2 * (SUBSET + SUBSET)).startswith("2.0 * (SubsetTreeKernel")
    assert repr(RBFKernel(SUBSET, gamma=2)) == "RBFKernel(kernel=SubsetTreeKernel(decay=0.4), gamma=2.0)"


def test_parameters_of_parts_are_reached_from_outside():
    kernel = SubsetTreeKernel() + 2 * BoundedTreeKernel()
    assert kernel.get_params()["k2__kernel__budget"] == 4
    assert set(kernel.get_params(deep=False)) == {"k1", "k2"}
    first = kernel.k1
    kernel.set_params(k1__decay=0.2, k2__factor=3, k2__kernel__budget=1)
    assert kernel == SubsetTreeKernel(0.2) + 3 * BoundedTreeKernel(budget=1)
    assert first == SubsetTreeKernel()  # others that hold it are not changed
    for name in ("k3__decay", "k1__decays", "k1__decay__x"):
        with pytest.raises(ParameterError, match="has no parameter"):
            kernel.set_params(**{name: 1})
    with pytest.raises(ParameterError, match="decay"):
        kernel.set_params(k1__decay=2)
    assert kernel == SubsetTreeKernel(0.2) + 3 * BoundedTreeKernel(budget=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KernelSum(SUBSET, 3), "k2 must be a kernel such as SubsetTreeKernel"),
        (lambda: KernelProduct("NP", SUBSET), "k1 must be a kernel"),
        (lambda: -1 * SUBSET, "the factor of a kernel must be a number of at least 0"),
        (lambda: SUBSET * "2", "the factor of a kernel"),
        (lambda: PolynomialKernel(SUBSET, degree=0), "degree must be at least 1"),
        (lambda: PolynomialKernel(SUBSET, bias=-1), "bias must be a number of at least 0"),
        (lambda: RBFKernel(SUBSET, gamma=0), "gamma"),
        (lambda: ColumnKernel(SUBSET, 0.5), "column must be a name, a number, or a list of these"),
        (lambda: ColumnKernel(SUBSET, []), "column must be"),
    ],
)
def test_impossible_combinations_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_kernel_and_a_number_cannot_be_added():
    with pytest.raises(TypeError):
        SUBSET + 1
    assert np.float64(2) * SUBSET == ScaledKernel(SUBSET, 2.0)


TEXTS, HYPOTHESES, SIZES = ["(S (A a))", "(S (A b))", "(T c)"], ["(S (B a))", "(S (A b))", "(S c)"], [1, 2, 5]


def tables():
    import pandas as pd
    import pyarrow as pa

    named = {"text": TEXTS, "hypothesis": HYPOTHESES, "size": SIZES}
    rows = [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]
    return {"mapping": named, "frame": pd.DataFrame(named), "arrow": pa.table(named), "rows": rows}


@pytest.mark.parametrize("kind", tables())
def test_columns_of_tables_have_kernels_of_their_own(kind):
    table = tables()[kind]
    kernel = ColumnKernel(SUBSET, "text") * ColumnKernel(PARTIAL, "hypothesis") + ColumnKernel(
        LinearKernel(), "size"
    )
    expected = SUBSET.gram(TEXTS) * PARTIAL.gram(HYPOTHESES) + np.outer(SIZES, SIZES)
    assert np.allclose(kernel.gram(table), expected, rtol=EXACT)
    assert np.allclose(kernel.gram(table, table), expected, rtol=EXACT)
    assert np.allclose(kernel.diagonal(table), np.diagonal(expected), rtol=EXACT)
    assert np.allclose(kernel.pairs(table, [0, -1], [1, 1]), expected[[0, 2], [1, 1]], rtol=EXACT)
    with pytest.raises(SourceError, match="no column 'title'"):
        ColumnKernel(SUBSET, "title").gram(table)


def test_rows_and_columns_of_forests_hold_columns_too():
    rows = list(zip(TEXTS, HYPOTHESES, SIZES, [3, 1, 2], strict=True))
    numbers = np.array([SIZES, [3, 1, 2]]).T
    kernel = ColumnKernel(SUBSET, 0) + ColumnKernel(LinearKernel(), [2, 3])
    expected = SUBSET.gram(TEXTS) + numbers @ numbers.T
    assert np.allclose(kernel.gram(rows), expected, rtol=EXACT)
    assert np.allclose(kernel.gram(np.array(rows, object)), expected, rtol=EXACT)
    assert kernel(rows[0], rows[1]) == pytest.approx(expected[0, 1])
    forest = Forest.from_trees(SUBSET.read(TEXTS), {"size": SIZES})
    mixed = SUBSET + ColumnKernel(LinearKernel(), "size")
    assert np.allclose(mixed.gram(forest), SUBSET.gram(TEXTS) + np.outer(SIZES, SIZES), rtol=EXACT)


def test_columns_that_do_not_go_together_are_refused():
    table = {"text": TEXTS, "size": [3], "other": SIZES}
    kernel = ColumnKernel(SUBSET, "text") + ColumnKernel(LinearKernel(), "size")
    for compute in (kernel.gram, kernel.diagonal):
        with pytest.raises(SourceError, match="got 3 and 1 examples: columns must be equally long"):
            compute(table)
    with pytest.raises(SourceError, match="must contain numbers and be equally long"):
        ColumnKernel(LinearKernel(), ["size", "other"]).gram(table)
    for row in ({"b": 1}, [1], np.zeros(1, [("b", int)])[0]):
        for column in ("a", ["a"]):
            with pytest.raises(SourceError, match="no column 'a' in this"):
                ColumnKernel(LinearKernel(), column)(row, row)
        with pytest.raises(SourceError, match="no column 'a' in this"):
            ColumnKernel(LinearKernel(), "a").gram([row])


def test_linear_kernels_are_the_same_bytes_in_any_layout_and_batch():
    x = np.random.default_rng(0).normal(size=(40, 19))
    kernel = LinearKernel()
    whole = kernel.gram(x)
    assert kernel.gram(np.asfortranarray(x)).tobytes() == whole.tobytes()
    assert kernel.gram(x[:3], x).tobytes() == whole[:3].tobytes()
    assert kernel.diagonal(x).tobytes() == np.diagonal(whole).tobytes()
    assert (np.diagonal(NormalizedKernel(kernel).gram(x, x)) == 1).all()


def test_the_linear_kernel_takes_numbers_dense_or_sparse():
    x = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, -1.0]])
    kernel = LinearKernel()
    for rows in (x, x.tolist(), csr_matrix(x)):
        assert np.allclose(kernel.gram(rows), x @ x.T)
        assert np.allclose(kernel.gram(rows, x[:1]), x @ x[:1].T)
        assert np.allclose(kernel.pairs(rows, [0, 1], [1, 2]), [11, -4])
        assert np.allclose(kernel.diagonal(rows), [5, 25, 1])
    assert kernel(2, 3) == 6
    assert kernel([1, 2], [3, 4]) == 11
    with pytest.raises(SourceError, match="finite numbers, the same number"):
        kernel.gram(["a", "b"])
    with pytest.raises(SourceError, match="finite numbers"):
        kernel.gram([1, math.nan])
    with pytest.raises(SourceError, match="finite numbers"):
        kernel.gram(csr_matrix([[1, math.inf]]))
    with pytest.raises(SourceError, match="cannot compare examples of 2 and of 1 numbers"):
        kernel.gram(x, [1, 2])
    with pytest.raises(ParameterError, match="outside"):
        kernel.pairs(x, [0], [3])


def test_combinations_are_steps_of_pipelines():
    import pandas as pd

    table = pd.DataFrame({"text": TEXTS * 4, "hypothesis": HYPOTHESES * 4})
    labels = [0, 1, 1] * 4
    kernel = NormalizedKernel(ColumnKernel(SUBSET, "text") + ColumnKernel(SUBSET, "hypothesis"))
    model = make_pipeline(KernelTransformer(kernel=kernel), SVC(kernel="precomputed"))
    grid = {"kerneltransformer__kernel__kernel__k1__kernel__decay": [0.1, 0.9]}
    search = GridSearchCV(model, grid, cv=2).fit(table, labels)
    assert search.predict(table).tolist() == labels
    transformer = KernelTransformer(kernel=kernel).fit(table)
    assert (transformer.transform(table[:2]) == kernel.gram(table[:2], table)).all()
    assert len(transformer.get_feature_names_out()) == 12
    mapping = KernelTransformer(kernel=kernel).fit(table.to_dict("list"))
    assert len(mapping.get_feature_names_out()) == 12


def test_a_sum_of_kernels_is_a_dot_product_of_vectors_side_by_side():
    forest = random_forest(3, 12)
    small = FragmentVectorizer(n_features=None, budget=2, damping="linear", normalize=False, dtype="float64")
    large = clone(small).set_params(budget=4, decay=0.2)
    rows = FeatureUnion([("small", small), ("large", large)]).fit_transform(forest)
    kernel = BoundedTreeKernel(0.4, budget=2) + BoundedTreeKernel(0.2, budget=4)
    assert np.allclose(dot_products(rows), kernel.gram(forest), rtol=1e-9)


def test_a_sum_over_columns_is_a_dot_product_of_columns_side_by_side():
    import pandas as pd

    table = pd.DataFrame({"text": TEXTS, "hypothesis": HYPOTHESES})
    rows = FragmentVectorizer(n_features=None, damping="linear", normalize=False, dtype="float64")
    union = ColumnTransformer([(name, clone(rows), name) for name in table])
    kernel = BoundedTreeKernel()
    both = ColumnKernel(kernel, "text") + ColumnKernel(kernel, "hypothesis")
    assert np.allclose(dot_products(csr_matrix(union.fit_transform(table))), both.gram(table), rtol=1e-9)
