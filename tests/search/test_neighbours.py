import numpy as np
import pytest
from scipy.sparse import csr_matrix

from strategies import random_forest
from treedot import DistributedTreeVectorizer, FragmentVectorizer, SubsetTreeKernel
from treedot.errors import ParameterError
from treedot.search import neighbours
from treedot.search.neighbours import nearest


def sparse_rows(forest):
    return FragmentVectorizer(n_features=2**30).transform(forest)


@pytest.mark.parametrize("tile", [3, 7, 1000])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_neighbours_are_those_of_the_full_matrix(monkeypatch, tile, k):
    monkeypatch.setattr(neighbours, "TILE", tile)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 8)), rng.normal(size=(31, 8))
    rows, values = nearest(x, y, k)
    products = x @ y.T
    order = np.argsort(-products, axis=1)[:, :k]
    assert (rows == order).all()
    assert np.allclose(values, np.take_along_axis(products, order, axis=1))
    rows, _ = nearest(x, k=k)
    alone = x @ x.T
    np.fill_diagonal(alone, -np.inf)
    assert (rows == np.argsort(-alone, axis=1)[:, : min(k, 19)]).all()


def test_equal_values_are_ordered_by_row(monkeypatch):
    monkeypatch.setattr(neighbours, "TILE", 4)
    x = np.ones((10, 2), np.float32)
    assert nearest(x, k=9)[0][0].tolist() == list(range(1, 10))
    monkeypatch.setattr(neighbours, "TILE", 100)
    assert nearest(np.ones((60, 2)), k=3)[0][0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused(bad):
    x = np.ones((300, 8))
    x[7, 0] = bad
    with pytest.raises(ParameterError, match="not finite"):
        nearest(x, k=3)


def test_integers_and_lists_are_vectors_too():
    assert nearest([[1, 0], [1, 1], [0, 2]], k=1)[0].ravel().tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("x", "y", "k"), [((3, 4), (3, 5), 1), ((1, 4), None, 1), ((3, 4), None, 0), ((3,), None, 1)]
)
def test_impossible_questions_are_refused(x, y, k):
    with pytest.raises(ParameterError):
        nearest(np.zeros(x), None if y is None else np.zeros(y), k)


def whole_numbers(rows, seed, columns=2**30):
    """Return sparse rows of small whole numbers, whose products are exact and often equal."""
    random = np.random.default_rng(seed)
    places = random.integers(30, size=(rows, 8)) * (columns // 30)
    found = csr_matrix(
        (random.integers(1, 3, 8 * rows), places.ravel(), np.arange(rows + 1) * 8), (rows, columns)
    )
    found.sum_duplicates()
    return found.astype(np.float32)


def narrow(rows):
    """Return such rows without the columns between those in use, which scipy's products would list."""
    return csr_matrix((rows.data, rows.indices // (rows.shape[1] // 30), rows.indptr), (rows.shape[0], 31))


@pytest.mark.parametrize(
    ("queries", "others"), [(0, 9), (1, 400), (5, 300), (300, 5), (120, 120), (200, None)]
)
@pytest.mark.parametrize("k", [1, 4, 1000])
def test_sparse_rows_have_the_neighbours_of_dense_ones_whichever_side_is_larger(queries, others, k):
    x, y = whole_numbers(queries, 0), None if others is None else whole_numbers(others, 1)
    products = (narrow(x) @ narrow(x if y is None else y).T).toarray().astype(float)
    if y is None:
        np.fill_diagonal(products, -np.inf)
    order = np.argsort(-products, axis=1, kind="stable")[:, : min(k, products.shape[1] - (y is None))]
    rows, values = nearest(x, y, k)
    assert (rows == order).all()
    assert (values == np.take_along_axis(products, order, 1)).all()


@pytest.mark.parametrize("many", [1, 50])
def test_neighbours_of_sparse_rows_do_not_depend_on_the_threads(many):
    x, y = sparse_rows(random_forest(0, many)), sparse_rows(random_forest(1, 40))
    found = [[array.tobytes() for array in nearest(x, y, 7, n_jobs=jobs)] for jobs in (None, 1, 2, 5)]
    assert found[0] == found[1] == found[2] == found[3]


def test_sparse_rows_are_not_compared_with_dense_ones():
    forest = random_forest(0, 4)
    with pytest.raises(ParameterError, match="sparse rows with dense"):
        nearest(
            FragmentVectorizer(n_features=256).transform(forest),
            DistributedTreeVectorizer(n_components=256).transform(forest),
        )


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("queries", [1, 40])
def test_sparse_rows_that_are_not_finite_are_refused(number, queries):
    x, y = whole_numbers(queries, 0, 1000), whole_numbers(20, 1, 1000)
    x.data[:] = number
    with pytest.raises(ParameterError, match="not finite"):
        nearest(x, y, 3)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("pair", [True, False])
def test_ranking_again_orders_the_candidates_by_the_exact_kernel(sparse, pair):
    forest, others = random_forest(2, 30, 15), random_forest(3, 25, 15)
    kernel = SubsetTreeKernel(0.6, normalize=True)
    x, y = (
        sparse_rows(f) if sparse else DistributedTreeVectorizer(n_components=512).transform(f)
        for f in (forest, others)
    )
    if not pair:
        y, others = None, forest
    candidates, _ = nearest(x, y, 12)
    exact = np.take_along_axis(kernel.gram(forest, others), candidates, 1)
    order = np.lexsort((candidates, -exact))[:, :5]
    trees = (forest, others) if pair else forest
    rows, values = nearest(x, y, 5, rerank=kernel, trees=trees, candidates=12)
    assert values == pytest.approx(np.take_along_axis(exact, order, 1))
    assert (
        rows == np.take_along_axis(candidates, order, 1)
    ).mean() > 0.95  # near-equal ones may change places


def test_ranking_again_needs_a_kernel_and_all_trees():
    forest, kernel = random_forest(0, 4), SubsetTreeKernel()
    x = DistributedTreeVectorizer(n_components=256).transform(forest)
    for wrong, message in (
        ({"rerank": kernel}, "rerank and trees go together"),
        ({"trees": forest}, "rerank and trees go together"),
        ({"rerank": "exact", "trees": forest}, "must be a tree kernel"),
        ({"rerank": kernel, "trees": (forest, forest)}, "a pair, .* but Y is not given"),
        ({"rerank": kernel, "trees": x}, "these are vectors"),
        ({"rerank": kernel, "trees": forest[:3]}, "X has 4 rows, but there are 3 trees"),
        ({"rerank": kernel, "trees": forest, "k": 3, "candidates": 2}, "at least k=3"),
        ({"Y": x, "rerank": kernel, "trees": forest}, "must be a pair"),
        ({"Y": x[:2], "rerank": kernel, "trees": (forest, forest)}, "Y has 2 rows, but there are 4 trees"),
    ):
        with pytest.raises(ParameterError, match=message):
            nearest(x, **wrong)


def test_classes_of_kernels_are_refused_by_name():
    forest = random_forest(0, 4)
    message = r"not the class SubsetTreeKernel: pass SubsetTreeKernel\(normalize=True\)"
    with pytest.raises(ParameterError, match=message):
        nearest(FragmentVectorizer().transform(forest), rerank=SubsetTreeKernel, trees=forest)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("expand", [1, 4, 100])
def test_dense_queries_are_expanded_by_their_own_nearest(seed, expand):
    rng = np.random.default_rng(seed)
    X, Y = (rng.standard_normal((count, 6)) for count in (9, 30))
    for queries, others in ((X, Y), (Y, None)):
        against = Y if others is None else others
        products = queries @ against.T
        if others is None:
            np.fill_diagonal(products, -np.inf)
        near = np.argsort(-products, axis=1)[:, : min(expand, len(against) - (others is None))]
        sums = queries + against[near].sum(axis=1)
        expected = sums / np.linalg.norm(sums, axis=1, keepdims=True) @ against.T
        if others is None:
            np.fill_diagonal(expected, -np.inf)
        rows, values = nearest(queries, others, 5, expand=expand)
        assert (rows == np.argsort(-expected, axis=1)[:, :5]).all()
        assert values == pytest.approx(-np.sort(-expected, axis=1)[:, :5])


def test_sparse_queries_cannot_be_expanded():
    with pytest.raises(ParameterError, match="expand needs dense vectors"):
        nearest(csr_matrix(np.eye(3)), k=1, expand=1)
