import numpy as np
import pytest

from treedot.errors import ParameterError
from treedot.search import neighbours
from treedot.search.neighbours import nearest


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
