"""Save and load vectors in files that also hold the settings that made them.

``treedot.vectors.writers`` describes the formats.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Matrix
from treedot._storage.compression import check_unpacked
from treedot._storage.files import check_plain, open_plain
from treedot._storage.safetensors import read_arrays
from treedot.errors import ParameterError, SourceError, SpecMismatchError, TreedotError
from treedot.vectors.parts import dense_vectors, parts_metadata, read_parts
from treedot.vectors.spec import DenseSpec, SparseSpec, spec_from_dict
from treedot.vectors.vectors import Vectors, check_matrix, vector_width
from treedot.vectors.writers import MEMBER, SPEC_KEY, TRAILER, vector_file

MAX_DESCRIPTION = 1 << 20  # bytes; treedot writes a few hundred

INDEX_FORMAT, VECTORIZER_FORMAT = "treedot index", "treedot fragment vectorizer"


def save_vectors(
    path: str | os.PathLike[str],
    matrix: Any,
    spec: Any,
    *,
    columns: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Write vectors and the settings that made them to a file, atomically.

    Parameters
    ----------
    path : path
        ``.npy`` or ``.parquet`` for dense vectors, ``.npz`` for sparse rows.
    matrix : array or sparse matrix
        One vector per tree.
    spec : vectorizer, DenseSpec or SparseSpec
        What made them. If ``fit`` learned columns or weights, pass the vectorizer, since its spec does not
        hold them, and keep the vectorizer with its ``save``.
    columns : mapping of str to sequence, default=None
        Further values for each tree, such as ``forest.columns``; only for ``.parquet``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treedot import FragmentVectorizer, load_vectors, save_vectors
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.npz")
    >>> vectorizer = FragmentVectorizer()
    >>> save_vectors(path, vectorizer.transform(["(A b)", "(B (A b))"]), vectorizer)
    >>> load_vectors(path)
    <Vectors: 2 × 1048576, sparse, float32, fingerprint ...>
    """
    made_with = getattr(spec, "spec", spec)
    if not isinstance(made_with, (DenseSpec, SparseSpec)):
        raise ParameterError(f"spec must be a vectorizer, a DenseSpec or a SparseSpec, not {spec!r}")
    if spec is made_with and vector_width(made_with) is None:
        raise ParameterError("the columns of these rows were learned: pass the vectorizer, not its spec")
    fingerprint = getattr(spec, "fingerprint", made_with.fingerprint)
    if hasattr(matrix, "tocsr"):
        matrix = matrix.tocsr()
    vectors = Vectors(matrix, made_with, fingerprint, dict(columns or {}))
    if columns and Path(path).suffix.lower() != ".parquet":
        raise ParameterError(f"cannot write columns to {path}: use .parquet, or save them separately")
    with vector_file(path, made_with, fingerprint) as file:
        file.write(vectors.matrix, vectors.columns)


def load_vectors(path: str | os.PathLike[str], *, unpack_large: bool = False) -> Vectors:
    """Read vectors and their settings from a file that ``save_vectors`` or ``treedot encode`` wrote.

    A folder of parts, as ``treedot.batch.encode`` writes it, is read as one file. Dense vectors in ``.npy``
    are mapped into memory, not loaded. It is an error if the description of the settings is missing, damaged
    or contradicts the matrix; read plain matrices with ``numpy.load`` and ``scipy.sparse.load_npz``.

    Parameters
    ----------
    path : path
        The file or folder.
    unpack_large : bool, default=False
        Whether to read a compressed ``.npz`` file that unpacks to more than 200 times its size and to more
        than 64 MiB. treedot does not compress ``.npz`` files; others do.

    Returns
    -------
    Vectors
        With ``matrix``, ``spec``, ``fingerprint`` and ``columns``.
    """
    in_parts = Path(path).is_dir()
    suffix = ".arrow" if in_parts else Path(path).suffix.lower()
    if Path(path).exists() and not in_parts:
        check_plain(path)
    check_is(path, "load_vectors")
    if suffix not in (".npy", ".npz", ".parquet", ".arrow"):
        raise ParameterError(f"cannot read vectors from {path}: use .npy, .npz, .parquet or .arrow")
    description = read_description(path)
    if "fingerprint" not in description:
        raise SourceError(
            f"{path} does not say how its vectors were made: read it with numpy.load, scipy.sparse.load_npz "
            "or pyarrow"
        )
    columns: dict[str, Sequence[Any]] = {}
    with _wrong_description(path):
        spec = _spec_in(description)
        learned = description.get("learned", "")
        if not isinstance(learned, str):
            raise SpecMismatchError(f"'learned' must be a fingerprint, not {learned!r}")
        if suffix == ".parquet":
            matrix, columns = _read_parquet(path)
        elif suffix == ".arrow":
            matrix, columns = read_parts(Path(path))
        else:
            matrix = read_matrix(path, unpack_large)
        return Vectors(matrix, spec, learned, columns)


def _spec_in(description: dict[str, Any]) -> DenseSpec | SparseSpec:
    return spec_from_dict({name: x for name, x in description.items() if name != "learned"})


@contextlib.contextmanager
def _wrong_description(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (ParameterError, SpecMismatchError, TypeError, OverflowError) as error:
        raise SpecMismatchError(f"the description of {path} is wrong: {error}") from None


@contextlib.contextmanager
def _damaged(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the many exceptions of NumPy, SciPy and zipfile for damaged files into ``SourceError``."""
    try:
        yield
    except TreedotError:
        raise
    except Exception as error:
        raise SourceError(f"cannot read {path}: {error or type(error).__name__}") from None


def read_matrix(path: str | os.PathLike[str], unpack_large: bool = False) -> Any:
    """Return the dense matrix of a ``.npy`` file, mapped into memory, or the sparse one of ``.npz``."""
    if Path(path).suffix.lower() == ".npy":
        return _mapped(path)
    with _damaged(path), open_plain(path) as file:
        from scipy.sparse import load_npz

        _check_archive(path, file, unpack_large)
        matrix = load_npz(file)
        _check_rows(matrix)
        return matrix


def _check_archive(path: str | os.PathLike[str], file: io.BufferedReader, unpack_large: bool) -> None:
    """Raise if an archive unpacks to too much; zipfile itself checks the sizes that the archive lists."""
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    size = os.fstat(file.fileno()).st_size
    check_unpacked(os.fspath(path), unpacked, size, unpack_large, "load_vectors")
    file.seek(0)


def _check_rows(matrix: Any) -> None:
    """Raise if the arrays of a sparse matrix contain invalid indices."""
    if matrix.format != "csr":
        raise ValueError(f"its format is {matrix.format!r}, not 'csr'")
    if (matrix.indptr[1:] < matrix.indptr[:-1]).any():  # SciPy checks this only if there are non-zeros
        raise ValueError("its row pointers decrease")
    matrix.check_format(full_check=True)


def _mapped(path: str | os.PathLike[str]) -> np.memmap[Any, Any]:
    with _damaged(path), open_plain(path) as file:
        (shape, dtype, in_columns), size = _read_header(file), os.fstat(file.fileno()).st_size
        if min(shape, default=0) < 0 or dtype.itemsize * math.prod(shape) > size - file.tell():
            raise ValueError("it ends before its last number")
        return np.memmap(file, dtype, "r", file.tell(), shape, "F" if in_columns else "C")


class MatrixSummary(NamedTuple):
    """The shape, type and number of non-zeros of a matrix."""

    shape: tuple[int, ...]
    dtype: str
    nonzeros: int | None  # None if it is dense


def summarize(path: str | os.PathLike[str], description: dict[str, Any]) -> MatrixSummary:
    """Return a summary of the matrix in a file from its header; raise if the description contradicts it."""
    match Path(path).suffix.lower():
        case ".npy":
            matrix = _mapped(path)
            found = MatrixSummary(matrix.shape, str(matrix.dtype), None)
        case ".npz":
            found = _summarize_archive(path)
        case _:
            found = _summarize_parquet(path)
    if "fingerprint" in description:
        kind = "dense" if found.nonzeros is None else "sparse"
        with _wrong_description(path):
            check_matrix(_spec_in(description), kind, found.shape, found.dtype)
    elif description and ("kernel" not in description or found.nonzeros is not None or len(found.shape) != 2):
        raise SpecMismatchError(f"the description of {path} is wrong: it does not describe such a matrix")
    return found


def _summarize_archive(path: str | os.PathLike[str]) -> MatrixSummary:
    """Return the summary of a sparse matrix from the headers in its ``.npz`` file."""
    with _damaged(path), open_plain(path) as file, zipfile.ZipFile(file) as archive:
        with archive.open("shape.npy") as member:
            sizes, dtype, _ = _read_header(member)
            if len(sizes) != 1 or not 1 <= sizes[0] <= 2 or dtype.kind not in "iu":
                raise ValueError("it has an invalid shape")
            shape = np.frombuffer(member.read(sizes[0] * dtype.itemsize), dtype).tolist()
        with archive.open("data.npy") as member:
            of_data, dtype, _ = _read_header(member)
        nonzeros = math.prod(of_data)
        if dtype.itemsize * nonzeros > archive.getinfo("data.npy").file_size or min(shape) < 0:
            raise ValueError("its arrays contradict each other")
        return MatrixSummary(tuple(shape), str(dtype), nonzeros)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Return the shape and type of an array in NumPy's format, and whether it is in column-major order."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, in_columns, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return shape, dtype, in_columns


def _summarize_parquet(path: str | os.PathLike[str]) -> MatrixSummary:
    from treedot.trees.arrow import clear_errors, open_parquet

    with clear_errors(os.fspath(path)):
        file = open_parquet(path)
        schema, rows = file.schema_arrow, file.metadata.num_rows
        kind = _vector_type(schema, path)
        return MatrixSummary(
            (rows, kind.list_size),
            {"double": "float64", "float": "float32"}.get(str(kind.value_type), str(kind.value_type)),
            None,
        )


def _vector_type(schema: Any, path: str | os.PathLike[str]) -> Any:
    """Return the type of the column ``vector`` of a table; raise if the column does not hold vectors."""
    from treedot.trees.arrow import pa

    if "vector" not in schema.names or not pa.types.is_fixed_size_list(schema.field("vector").type):
        raise SourceError(f"{path} has no column 'vector' of fixed-size lists")
    return schema.field("vector").type


def _read_parquet(path: str | os.PathLike[str]) -> tuple[Matrix, dict[str, Sequence[Any]]]:
    """Return the column ``vector`` as a matrix, and the others as lists."""
    from treedot.trees.arrow import clear_errors, open_parquet

    with clear_errors(os.fspath(path)):
        table = open_parquet(path).read()
        table.validate(full=True)  # invalid offsets would crash the process
        _vector_type(table.schema, path)
        return dense_vectors(table["vector"], path), table.drop_columns(["vector"]).to_pydict()


def check_is(path: str | os.PathLike[str], opener: str) -> None:
    """Raise if another function than ``opener`` reads this file; the message names that function."""
    what, other = _known_file(path)
    if other not in ("", opener):
        raise SourceError(f"{path} holds {what}: open it with {other}, not {opener}")


def _known_file(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return a description of a treedot file, and the function that opens it; "" for other files."""
    try:
        description, _ = read_arrays(path)
    except SourceError:
        description = {}
    try:
        description = description or read_description(path)
    except TreedotError:
        return "", ""
    if description.get("format") == INDEX_FORMAT:
        return "an index of trees", "TreeIndex.open"
    if description.get("format") == VECTORIZER_FORMAT:
        return "a vectorizer", "FragmentVectorizer.load"
    if "fingerprint" in description:
        return f"{description.get('kind')} vectors", "load_vectors"
    return ("a matrix of kernels", "numpy.load") if "kernel" in description else ("", "")


def read_description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the description in a file that treedot wrote, or an empty dict if it has none."""
    suffix = Path(path).suffix.lower()
    if Path(path).is_dir() or suffix == ".arrow":
        text = parts_metadata(Path(path)).get(SPEC_KEY)
    elif suffix == ".parquet":
        from treedot.trees.arrow import clear_errors, open_parquet

        with clear_errors(os.fspath(path)):
            text = (open_parquet(path).schema_arrow.metadata or {}).get(SPEC_KEY)
    elif suffix == ".npz":
        text = _read_member(path)
    else:
        text = _read_trailer(path) if suffix == ".npy" else None
    try:
        description = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise SourceError(f"the description of {path} is not JSON: {error}") from None
    if not isinstance(description, dict):
        raise SourceError(f"the description of {path} is not a JSON object")
    return description


def _read_trailer(path: str | os.PathLike[str]) -> bytes | None:
    """Return the description after the data of a ``.npy`` file, or None if it has none."""
    matrix = _mapped(path)
    with open_plain(path) as file:
        rest = os.fstat(file.fileno()).st_size - matrix.offset - matrix.nbytes
        file.seek(matrix.offset + matrix.nbytes)
        begin = file.read(len(TRAILER) + 8)
        magic, length = begin[: len(TRAILER)], int.from_bytes(begin[len(TRAILER) :], "little")
        if not rest or not TRAILER.startswith(magic):
            return None
        if len(begin) + length != rest or not 2 <= length <= MAX_DESCRIPTION:
            raise SourceError(f"{path} is damaged or cut short: its description has the wrong length")
        return file.read(length)


def _read_member(path: str | os.PathLike[str]) -> bytes | None:
    """Return the description in a ``.npz`` file, or None if it has none."""
    with _damaged(path), open_plain(path) as file, zipfile.ZipFile(file) as archive:
        if MEMBER not in archive.namelist():
            return None
        with archive.open(MEMBER) as member:
            text = member.read(MAX_DESCRIPTION + 1)
    if len(text) > MAX_DESCRIPTION:
        raise SourceError(f"{path} is damaged: its description is longer than {MAX_DESCRIPTION} bytes")
    return text
