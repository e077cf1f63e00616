"""The search for neighbours, on a processor: the same steps but for the list of hits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components import component
from treedot import nearest
from treedot.errors import ParameterError
from treedot.vectors.gpu import nearest_tensors, neighbours

torch: Any = component("torch")


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("tile", [(7, 16), (16, 16), (64, 64)])
def test_neighbours_are_those_of_all_products(
    symmetric: bool, tile: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "TILE_ROWS", tile[0])
    monkeypatch.setattr(neighbours, "TILE_COLUMNS", tile[1])
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((count, 16)).astype(np.float32) for count in (50, 33))
    other = None if symmetric else Y
    rows, values = nearest_tensors(torch.from_numpy(X), None if symmetric else torch.from_numpy(Y), 5)
    expected_rows, expected = nearest(X, other, 5)
    np.testing.assert_array_equal(rows.numpy(), expected_rows)
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-5)


def test_few_elements_find_candidates_and_all_decide() -> None:
    rng = np.random.default_rng(1)
    X = torch.from_numpy(rng.standard_normal((60, 32)).astype(np.float32))
    rows, values = nearest_tensors(X, k=3, elements=16)
    assert values.numpy() == pytest.approx((X @ X.T).gather(1, rows).numpy(), rel=1e-5)


@pytest.mark.parametrize("symmetric", [True, False])
def test_half_precision_finds_the_neighbours_of_short_vectors_too(
    symmetric: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "_halves", lambda X, _: neighbours._in_half_precision(X))
    rng = np.random.default_rng(2)
    X, Y = (
        (rng.standard_normal((count, 16)) * 10.0 ** rng.uniform(-6, 6, (count, 1))).astype(np.float32)
        for count in (200, 150)
    )
    X[7] = 0
    other = None if symmetric else Y
    rows, values = nearest_tensors(torch.from_numpy(X), None if symmetric else torch.from_numpy(Y), 2)
    expected_rows, expected = nearest(X, other, 2)
    some = np.arange(200) != 7  # whose products are all equal
    np.testing.assert_array_equal(rows.numpy()[some], expected_rows[some])
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "more", "message"),
    [
        ([(3, 4)], {"k": 3}, "k must be at most 2, the number of others, not 3"),
        ([(3, 4)], {"k": 0}, "k must be at least 1"),
        ([(3, 4), (2, 5)], {"k": 1}, "vectors of 4 elements on cpu with vectors of 5"),
        ([(3,)], {"k": 1}, "of two dimensions"),
        ([(3, 4)], {"k": 1, "elements": 0}, "elements must be at least 1"),
    ],
)
def test_invalid_arguments_raise(shapes: Any, more: dict[str, int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        nearest_tensors(*map(torch.zeros, shapes), **more)


def test_vectors_of_another_precision_raise() -> None:
    with pytest.raises(ParameterError, match=r"float32 tensors of two dimensions, not torch.float64"):
        nearest_tensors(torch.zeros((3, 4), dtype=torch.float64), k=1)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_there_may_be_nothing_to_compare(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_halves", lambda X, _: neighbours._in_half_precision(X))
    rows, values = nearest_tensors(torch.zeros(shape), torch.zeros((5, shape[1])), k=2)
    assert rows.tolist() == [[0, 1]] * shape[0]
    assert values.tolist() == [[0, 0]] * shape[0]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_vectors_that_are_not_finite_raise(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_halves", lambda X, _: neighbours._in_half_precision(X))
    Y = torch.ones((30, 4))
    Y[20, 1] = wrong
    with pytest.raises(ParameterError, match="the vectors contain nan or inf"):
        nearest_tensors(torch.ones((2, 4)), Y, k=1)
