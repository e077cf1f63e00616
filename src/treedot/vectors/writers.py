"""Write vectors to files, a batch at a time, together with the settings that made them.

``.npy`` holds the plain matrix and, after its data, where NumPy does not look, eight bytes ``TRAILER``, the
length of the description in eight bytes, little-endian, and the description as JSON. ``.parquet`` holds a
column ``vector`` (a fixed-size list), the columns of the trees, and the description in the
schema's metadata under ``treedot.spec``. Sparse rows are written to ``.npz``, which
``scipy.sparse.load_npz`` reads, with the description as one more member, ``description.json``. So a matrix
and its description are one file, which is written atomically.

A description holds the fields of the spec and its ``fingerprint``. If the vectorizer learned columns or
weights, it also holds ``learned``, the fingerprint of everything that determines a row.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np

from treedot._runtime.array_types import Matrix
from treedot._storage.files import write_whole
from treedot._storage.growing_array import GrowingArray, chunks
from treedot.errors import ParameterError
from treedot.vectors.spec import DenseSpec, SparseSpec

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


SPEC_KEY = b"treedot.spec"
TRAILER = b"\x93TREEDOT"
MEMBER = "description.json"


class VectorWriter(Protocol):
    """An open file that takes vectors a batch at a time."""

    def write(self, vectors: Any, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append vectors, and the columns of their trees."""


@contextlib.contextmanager
def vector_file(
    path: str | os.PathLike[str], spec: DenseSpec | SparseSpec, fingerprint: str | None = None
) -> Iterator[VectorWriter]:
    """Open a file of vectors for writing: ``.npy`` or ``.parquet``, for sparse rows ``.npz``.

    Pass the ``fingerprint`` of a vectorizer that has learned columns or weights.
    """
    suffix = Path(path).suffix.lower()
    if isinstance(spec, SparseSpec) and suffix != ".npz":
        raise ParameterError(f"cannot write sparse rows to {path}: use .npz")
    if isinstance(spec, DenseSpec) and suffix not in (".npy", ".parquet"):
        raise ParameterError(
            f"cannot write dense vectors to {path}: use .npy or .parquet (.npz is for sparse rows)"
        )
    with write_whole(path) as aside:
        if suffix == ".parquet":
            with contextlib.closing(_ParquetRows(aside, describe(spec, fingerprint))) as parquet:
                yield parquet
        else:
            with aside.open("wb") as file, matrix_rows(file, spec, fingerprint, Path(path)) as rows:
                yield rows


@contextlib.contextmanager
def matrix_rows(
    file: IO[bytes],
    spec: DenseSpec | SparseSpec,
    fingerprint: str | None = None,
    target: Path | None = None,
) -> Iterator[VectorWriter]:
    """Write the dense or sparse matrix of a spec, with its description, to an open file.

    Sparse rows are collected in unnamed temporary files beside ``target``, by default in the system's
    temporary folder.
    """
    writer: contextlib.AbstractContextManager[Any]
    if isinstance(spec, DenseSpec):
        writer = contextlib.nullcontext(_NpyRows(file, spec))
    else:
        writer = _SparseRows(file, spec, target)
    with writer as rows:
        yield rows
        rows.finish(describe(spec, fingerprint))


def write_matrix(file: IO[bytes], matrix: Matrix, description: dict[str, Any]) -> None:
    """Write a whole matrix in NumPy's format, and its description."""
    _write_header(file, matrix)
    file.write(np.ascontiguousarray(matrix).data)
    file.write(trailer(description))


def vector_columns(matrix: Matrix | csr_matrix) -> dict[str, Any]:
    """Return vectors as Arrow columns that share their memory."""
    from treedot.trees.arrow import pa

    if isinstance(matrix, np.ndarray):
        flat = pa.array(np.ascontiguousarray(matrix).reshape(-1))
        return {"vector": pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])}
    offsets = pa.array(matrix.indptr.astype(np.int32, copy=False))
    indices = matrix.indices.astype(np.int32, copy=False)
    parts = {"indices": indices, "values": matrix.data}
    return {name: pa.ListArray.from_arrays(offsets, pa.array(part)) for name, part in parts.items()}


def trailer(description: dict[str, Any]) -> bytes:
    """Return the bytes that follow the data of a ``.npy`` file: its description."""
    text = json.dumps(description).encode()
    return TRAILER + len(text).to_bytes(8, "little") + text


def describe(spec: DenseSpec | SparseSpec, fingerprint: str | None) -> dict[str, Any]:
    """Return the description of vectors of a spec, made by a vectorizer with this fingerprint."""
    description = {**spec.to_dict(), "fingerprint": spec.fingerprint}
    if fingerprint not in (None, spec.fingerprint):
        description["learned"] = fingerprint
    return description


def _write_header(file: IO[bytes], array: Any) -> None:
    """Write the header of NumPy's format for something with a dtype and a shape, in C order."""
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    np.lib.format.write_array_header_1_0(file, header)


class _NpyRows:
    """Writes a ``.npy`` file; the number of rows is filled in at the end."""

    def __init__(self, file: IO[bytes], spec: DenseSpec) -> None:
        self._file = file
        self.dtype, self.shape = np.dtype(spec.dtype), (0, spec.n_components)
        _write_header(file, self)

    def write(self, vectors: Matrix, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append vectors; ``.npy`` cannot hold columns."""
        self._file.write(np.ascontiguousarray(vectors).data)
        self.shape = (self.shape[0] + len(vectors), self.shape[1])

    def finish(self, description: dict[str, Any]) -> None:
        """Write the header again, with the number of rows; NumPy pads the header so that it fits."""
        self._file.write(trailer(description))
        self._file.seek(0)
        _write_header(self._file, self)


class _SparseRows(contextlib.ExitStack):
    """Writes a sparse matrix in the format of ``scipy.sparse.save_npz``, without compression.

    The file holds the arrays of the matrix one after the other, so each grows in a file of its own first.
    Without compression they take twice the space, but a fiftieth of the time.
    """

    def __init__(self, file: IO[bytes], spec: SparseSpec, target: Path | None) -> None:
        super().__init__()
        self._file, self._width = file, (spec.n_features or 0) + spec.rest_width
        self._indices = self.enter_context(GrowingArray(np.int32, target))
        self._data = self.enter_context(GrowingArray(spec.dtype, target))
        self._ends = [np.zeros(1, np.int64)]

    def write(self, vectors: csr_matrix, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append rows; ``.npz`` cannot hold columns."""
        self._width = vectors.shape[1]  # if columns were learned, only the rows know how many
        self._ends.append(vectors.indptr[1:].astype(np.int64) + len(self._indices))
        self._indices.append(vectors.indices)
        self._data.append(vectors.data)

    def finish(self, description: dict[str, Any]) -> None:
        """Write the arrays to the file, and then the description."""
        indptr = np.concatenate(self._ends)
        parts = {
            "indices": self._indices,
            "indptr": indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr,
            "format": np.array(b"csr"),
            "shape": np.array([indptr.size - 1, self._width]),
            "data": self._data,
        }
        with zipfile.ZipFile(self._file, "w") as archive:
            for name, array in parts.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    _write_header(entry, array)
                    for chunk in chunks(array):
                        entry.write(chunk.tobytes())
            with archive.open(MEMBER, "w") as entry:  # not writestr, which would note the time
                entry.write(json.dumps(description).encode())


class _ParquetRows:
    def __init__(self, path: Path, description: dict[str, Any]) -> None:
        from treedot.trees import arrow  # its error names what to install if pyarrow is missing

        self._arrow, self._path = arrow, path
        self._metadata = {SPEC_KEY: json.dumps(description).encode()}
        self._writer: Any = None
        self._types: dict[str, Any] | None = None

    def write(self, vectors: Matrix, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append vectors and columns; the first batch determines the columns and their types."""
        pa = self._arrow.pa
        if "vector" in columns:
            raise ParameterError("rename the column 'vector': the file format reserves this name")
        data = self._arrow.typed_columns(columns, len(vectors), self._types)
        table = pa.table({**vector_columns(vectors), **data}).replace_schema_metadata(self._metadata)
        if self._writer is None:
            self._types = {name: array.type for name, array in data.items()}
            self._writer = pa.parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
