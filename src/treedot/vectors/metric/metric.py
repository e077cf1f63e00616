"""``Metric``: a learned similarity of trees."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, Row
from treedot._storage.described_folder import DescribedFolder
from treedot.errors import ParameterError, SourceError
from treedot.parameters import checked_integer
from treedot.readers import read_trees
from treedot.readers.sources import are_vectors
from treedot.vectors.metric.folding import Folding
from treedot.vectors.metric.triangle import dense_product, n_elements, sparse_product, transposed_product
from treedot.vectors.sparse.fitted_rows import FittedRows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

VERSION = 1
METRIC = DescribedFolder("metric", (VERSION,), "learn it again")
MAX_COLUMNS = 2**15
BATCH = 4096  # trees at a time
ROWS = "rows."  # before the names of the arrays that turn trees into rows


@dataclass(frozen=True, eq=False, repr=False)
class Metric:
    """A learned similarity of trees: the cosine of their vectors, which are a linear map of their rows.

    ``TreeMetric`` learns and saves such metrics; loading one and using it need no scikit-learn.

    A row is hashed into fewer columns and scaled to length 1; then the mean of the training rows is
    subtracted, the difference is multiplied by a triangular matrix, and the product is scaled to length 1.

    Attributes
    ----------
    folding : Folding
        The columns of the rows, and the columns into which they are hashed.
    mean : array of shape (n_columns,)
        The mean of the training rows.
    tiles : array of float32
        The triangular matrix; the module ``triangle`` describes its order.
    rows : FittedRows or None
        Turns trees into rows; None if the metric was learned from rows, not from trees.
    facts : dict
        How the metric was learned, as JSON values.

    See Also
    --------
    TreeMetric : Learns a metric from groups of trees.
    """

    folding: Folding
    mean: FloatArray
    tiles: Row
    rows: FittedRows | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def transform(self, X: Any, n_jobs: int | None = None) -> Row:
        """Return the vectors of trees, whose dot products are the learned similarities.

        Parameters
        ----------
        X : source of trees, or rows
            Trees, as ``read_trees`` takes them; or rows as the metric was learned from, sparse or dense.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores. The vectors are the same to the byte.

        Returns
        -------
        array of float32 of shape (n_trees, n_columns)
            Vectors of length 1.

        Raises
        ------
        ParameterError
            If the metric was learned from rows and X holds trees, or if the rows have other columns.
        """
        rows = getattr(X, "matrix", X) if are_vectors(X) else self.rows_of(X, n_jobs)
        if len(rows.shape) != 2:
            raise ParameterError(f"expected rows of shape (n_trees, n_columns), not {rows.shape}")
        vectors = np.empty((rows.shape[0], self.folding.n_columns), np.float32)
        for first in range(0, rows.shape[0], BATCH):
            part = slice(first, first + BATCH)
            vectors[part] = self._mapped(rows[part], n_jobs)
        return vectors

    def rows_of(self, trees: Any, n_jobs: int | None = None) -> csr_matrix:
        """Return the rows of trees, before they are hashed into fewer columns.

        Parameters
        ----------
        trees : source of trees
            Trees, as ``read_trees`` takes them.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores.

        Returns
        -------
        csr_matrix of shape (n_trees, width)
            The rows.
        """
        if self.rows is None:
            raise ParameterError("this metric was learned from rows, not from trees: give rows")
        return self.rows.transform(read_trees(trees), n_jobs)

    def _mapped(self, rows: Any, n_jobs: int | None) -> Row:
        if hasattr(rows, "tocsr"):
            products = sparse_product(self.folding.sparse(rows), self.tiles, n_jobs)
        else:
            products = dense_product(self.folding.dense(np.asarray(rows)), self.tiles)
        centred: Row = products - self.offset
        return unit_rows(centred)

    def linear_forms(self, vectors: Row) -> tuple[FloatArray, FloatArray]:
        """Return linear functions of rows that give the learned similarity with each vector.

        Parameters
        ----------
        vectors : array of shape (n_vectors, n_columns)
            Vectors of length 1, as ``transform`` returns them.

        Returns
        -------
        weights : array of shape (n_vectors, n_columns)
            The weights of the hashed columns.
        constants : array of shape (n_vectors,)
            With ``row_lengths`` p and q of a tree and its hashed row x, before it is scaled to length 1, the
            learned similarity is ``(weights @ x / p - constant) / q``.
        """
        forms = transposed_product(vectors, self.tiles)
        return forms, vectors.astype(np.float64) @ self.offset.astype(np.float64)

    def row_lengths(self, rows: csr_matrix, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the two numbers by which a tree's row and its vector are divided to have length 1.

        Parameters
        ----------
        rows : csr_matrix of shape (n_trees, width)
            Rows, as ``rows_of`` returns them.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores.

        Returns
        -------
        of_rows : array of shape (n_trees,)
            The lengths of the hashed rows; 1 where a length is 0.
        of_vectors : array of shape (n_trees,)
            The lengths of the vectors; 1 where a length is 0.
        """
        folded, lengths = self.folding.scaled(rows)
        products = sparse_product(folded, self.tiles, n_jobs) - self.offset
        return lengths, lengths_of(products)

    @cached_property
    def offset(self) -> Row:
        """The product of the mean and the matrix."""
        product: Row = dense_product(self.mean[None], self.tiles)[0]
        return product

    @property
    def fingerprint(self) -> str:
        """A short stable name of everything that determines a vector."""
        rows = "given" if self.rows is None else self.rows.fingerprint
        digest = hashlib.blake2b(f"{VERSION} {tuple(self.folding)} {rows}".encode(), digest_size=8)
        for array in (self.mean, self.tiles):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines a vector except the arrays, as plain JSON values."""
        rows = None if self.rows is None else self.rows.settings
        return {"width": self.folding.width, "n_columns": self.folding.n_columns, "rows": rows}

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays, by name."""
        learned = {} if self.rows is None else self.rows.arrays
        own: dict[str, Array] = {"mean": self.mean, "tiles": self.tiles}
        return own | {ROWS + name: array for name, array in learned.items()}

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the metric to a folder, atomically.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default=False
            Replace an existing metric.

        Raises
        ------
        SourceError
            If the folder exists and is not to be replaced, or cannot be written.
        """
        config = {"version": VERSION, **self.settings, "facts": self.facts}
        METRIC.write(path, config, self.arrays, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Metric:
        """Read a folder that ``save`` wrote; the matrix is mapped into memory.

        Parameters
        ----------
        path : path
            The folder.

        Returns
        -------
        Metric
            The metric.

        Raises
        ------
        SourceError
            If the folder is damaged, or is not a metric.
        """
        return METRIC.read(path, cls.from_stored)

    @classmethod
    def from_stored(cls, config: Mapping[str, Any], arrays: Mapping[str, Array]) -> Metric:
        """Return the metric that settings, facts and arrays describe; raise if they contradict each other.

        Parameters
        ----------
        config : mapping
            The ``settings`` and ``facts`` of a metric.
        arrays : mapping of str to array
            Its ``arrays``.

        Returns
        -------
        Metric
            The metric.
        """
        width, n_columns = config.get("width"), config.get("n_columns")
        folding = _checked_folding(width, n_columns)
        facts, stored = config.get("facts", {}), config.get("rows")
        if not isinstance(facts, dict) or not (stored is None or isinstance(stored, dict)):
            raise SourceError("the metric is damaged: its facts or the settings of its rows are missing")
        learned = {name.removeprefix(ROWS): x for name, x in arrays.items() if name.startswith(ROWS)}
        rows = None if stored is None else _stored_rows(stored, learned, folding.width)
        mean, tiles = (arrays.get(name, np.zeros(0)) for name in ("mean", "tiles"))
        _check_array("mean", mean, np.float64, folding.n_columns)
        _check_array("tiles", tiles, np.float32, n_elements(folding.n_columns))
        return cls(folding, mean, tiles, rows, facts)

    def __repr__(self) -> str:
        return f"<Metric of {self.folding.n_columns} columns, learned from {self.facts or 'rows'}>"


def unit_rows(vectors: Row) -> Row:
    """Return rows divided by their lengths, which are taken in float64; zeros stay zeros."""
    units: Row = vectors / lengths_of(vectors).astype(np.float32)[:, None]
    return units


def lengths_of(vectors: Row) -> FloatArray:
    """Return the lengths of rows, in float64, and 1 for rows of zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return np.where(lengths > 0, lengths, 1.0)


def check_columns(n_columns: Any) -> int:
    """Return a number of columns; raise ParameterError unless it is a power of two within the limit."""
    number = checked_integer("n_columns", n_columns, at_least=2)
    if number > MAX_COLUMNS or number & (number - 1):
        raise ParameterError(f"n_columns must be a power of two up to {MAX_COLUMNS}, not {number}")
    return number


def _checked_folding(width: Any, n_columns: Any) -> Folding:
    is_sound = all(type(x) is int and x > 0 for x in (width, n_columns)) and n_columns <= MAX_COLUMNS
    if not is_sound or not (n_columns == width or (n_columns < width and not n_columns & (n_columns - 1))):
        raise SourceError(f"the metric is damaged: it maps {width!r} columns to {n_columns!r}")
    return Folding(width, n_columns)


def _stored_rows(settings: Mapping[str, Any], arrays: Mapping[str, Array], width: int) -> FittedRows:
    try:
        rows = FittedRows.from_stored(settings, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise SourceError(f"the metric is damaged: its rows cannot be rebuilt: {error}") from None
    if rows.spec.rest is None and rows.n_columns != width:
        raise SourceError(f"the metric is damaged: it maps {width} columns, but its rows have others")
    return rows


def _check_array(name: str, array: Array, dtype: Any, size: int) -> None:
    if array.dtype != dtype or array.shape != (size,) or not np.isfinite(array).all():
        raise SourceError(
            f"the metric is damaged: {name!r} is not an array of {size} finite {np.dtype(dtype)} numbers"
        )
