"""Products of sparse rows against scipy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from treedot import dot_products
from treedot._runtime.sorted_arrays import order_of
from treedot.errors import ParameterError


def sparse(rows, columns, density, seed):
    return csr_matrix(random_array((rows, columns), density=density, rng=np.random.default_rng(seed)))


@given(st.integers(0, 30), st.integers(1, 20), st.floats(0, 1), st.integers(0, 5))
def test_products_are_those_of_dense_matrices(rows, columns, density, seed):
    x, y = sparse(rows, columns, density, seed), sparse(7, columns, density, seed + 1)
    assert dot_products(x) == pytest.approx((x @ x.T).toarray())
    assert dot_products(x, y) == pytest.approx((x @ y.T).toarray())


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(st.lists(st.one_of(st.integers(0, 3), st.integers(2**11 - 2, 2**11 + 2), st.integers(0, 2**31 - 1))))
def test_columns_are_sorted_and_equal_ones_keep_their_order(dtype, columns):
    columns = np.array(columns, dtype)
    assert order_of(columns).tolist() == np.argsort(columns, kind="stable").tolist()


def test_very_wide_rows_are_sorted_too():
    columns = np.array([2**40 + 1, 5, 2**62, 2**40, 5, 0])
    assert order_of(columns).tolist() == [5, 1, 4, 3, 0, 2]


def test_repeated_columns_of_a_row_are_added_up():
    rows = csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([3, 3, 3]), np.array([0, 2, 3])), shape=(2, 5))
    assert dot_products(rows).tolist() == [[9.0, 12.0], [12.0, 16.0]]
    assert dot_products(rows, rows).tolist() == [[9.0, 12.0], [12.0, 16.0]]


def test_many_rows_are_the_same_bytes_with_any_number_of_threads():
    x = sparse(700, 3000, 0.02, 0)
    assert dot_products(x, n_jobs=1).tobytes() == dot_products(x, n_jobs=3).tobytes()


def test_integers_are_accepted_and_complex_numbers_raise():
    rows = csr_matrix(np.array([[1, 2], [0, 3]]))
    assert dot_products(rows).tolist() == [[5.0, 6.0], [6.0, 9.0]]
    with pytest.raises(ParameterError, match="real numbers, not complex128"):
        dot_products(rows.astype(complex))


def test_other_widths_are_refused():
    with pytest.raises(ParameterError, match="5 and 6 columns"):
        dot_products(sparse(2, 5, 0.5, 0), sparse(2, 6, 0.5, 0))
    for x, y in (((2, 5), (2, 6)), ((5,), (2, 5)), ((5,), None)):
        with pytest.raises(ParameterError, match="cannot compare rows of shapes"):
            dot_products(np.zeros(x), None if y is None else np.zeros(y))


def test_products_of_dense_vectors_have_their_type_and_those_of_sparse_rows_float64():
    rows = sparse(3, 5, 0.5, 0).astype(np.float32)
    assert dot_products(rows.toarray()).dtype == np.float32
    assert dot_products(rows).dtype == dot_products(rows, rows.toarray()).dtype == np.float64
