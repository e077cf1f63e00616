"""Files of vectors, written row by row, that say how they were made.

``.npy`` holds the plain matrix, with the spec beside it in ``NAME.npy.json``. ``.parquet`` holds a
column ``vector`` (a fixed-size list), the columns that came with the trees, and the spec in the
schema's metadata under ``treedot.spec``. Files appear whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from treedot.encode.spec import Spec
from treedot.errors import ParameterError, SourceError, missing
from treedot.files import write_whole

Matrix = npt.NDArray[np.floating[Any]]

SPEC_KEY = b"treedot.spec"


class VectorWriter(Protocol):
    """Takes vectors a batch at a time."""

    def write(self, vectors: Matrix, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append vectors, with what else is known of their trees."""


@contextlib.contextmanager
def vector_file(path: str | os.PathLike[str], spec: Spec) -> Iterator[VectorWriter]:
    """Open a file of vectors for writing, ``.npy`` or ``.parquet``."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".npy", ".parquet"):
        raise ParameterError(f"cannot tell the format of {path}: use .npy or .parquet")
    with write_whole(path) as aside:
        if suffix == ".npy":
            with aside.open("wb") as file:
                yield (rows := NpyRows(file, spec))
                rows.finish()
            with write_whole(spec_path(path)) as beside:
                beside.write_text(json.dumps(_described(spec), indent=2) + "\n")
        else:
            parquet = _ParquetRows(aside, spec)
            try:
                yield parquet
            finally:
                parquet.close()


def read_spec(path: str | os.PathLike[str]) -> Spec | None:
    """Return the spec of a file of vectors, or None where it does not name one."""
    if Path(path).suffix.lower() == ".parquet":
        try:
            import pyarrow as pa
            import pyarrow.parquet
        except ModuleNotFoundError:
            raise missing("pyarrow", "parquet", f"reading {path}") from None
        try:
            described = (pa.parquet.read_schema(path).metadata or {}).get(SPEC_KEY)
        except (OSError, pa.ArrowInvalid) as error:
            raise SourceError(f"cannot read {path}: {error}") from error
    else:
        beside = spec_path(path)
        described = beside.read_bytes() if beside.exists() else None
    if described is None:
        return None
    fields = json.loads(described)
    fields.pop("fingerprint", None)
    return Spec.from_dict(fields)


def spec_path(path: str | os.PathLike[str]) -> Path:
    """Return where the spec of an ``.npy`` file is kept."""
    return Path(f"{os.fspath(path)}.json")


def _described(spec: Spec) -> dict[str, Any]:
    return {**spec.to_dict(), "fingerprint": spec.fingerprint}


class NpyRows:
    """A matrix in NumPy's format whose number of rows is filled in at the end."""

    def __init__(self, file: IO[bytes], spec: Spec) -> None:
        self._file, self._spec = file, spec
        self._rows = 0
        self._write_header()

    def write(self, vectors: Matrix, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append vectors; ``.npy`` has no room for columns."""
        self._file.write(np.ascontiguousarray(vectors).data)
        self._rows += len(vectors)

    def finish(self) -> None:
        """Write the header again, now with the number of rows; NumPy keeps room for it to grow."""
        self._file.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        header = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(self._spec.dtype)),
            "fortran_order": False,
            "shape": (self._rows, self._spec.n_components),
        }
        np.lib.format.write_array_header_1_0(self._file, header)


class _ParquetRows:
    def __init__(self, path: Path, spec: Spec) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet
        except ModuleNotFoundError:
            raise missing("pyarrow", "parquet", "writing .parquet files") from None
        self._pa, self._path, self._spec = pa, path, spec
        self._writer: Any = None

    def write(self, vectors: Matrix, columns: Mapping[str, Sequence[Any]]) -> None:
        pa = self._pa
        flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
        kept = {name: values for name, values in columns.items() if name != "vector"}
        table = pa.table(
            {"vector": pa.FixedSizeListArray.from_arrays(flat, self._spec.n_components), **kept}
        ).replace_schema_metadata({SPEC_KEY: json.dumps(_described(self._spec)).encode()})
        if self._writer is None:
            self._writer = pa.parquet.ParquetWriter(self._path, table.schema)
        if table.schema != self._writer.schema:
            table = table.cast(self._writer.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
