"""Files of vectors that say how they were made: written from memory, read, and checked.

``treedot.vectors.writers`` says what is in them.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from treedot.array_types import Matrix
from treedot.encode.spec import DenseSpec, SparseSpec, spec_from_dict
from treedot.errors import ParameterError, SourceError, SpecMismatchError, TreedotError
from treedot.safetensors import read_arrays
from treedot.vectors.vectors import Vectors, vector_width
from treedot.vectors.writers import SPEC_KEY, description_path, vector_file

INDEX_FORMAT, VECTORIZER_FORMAT = "treedot index", "treedot fragment vectorizer"


def save_vectors(
    path: str | os.PathLike[str],
    matrix: Any,
    spec: Any,
    *,
    columns: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Write vectors and how they were made to a file, which appears whole or not at all.

    Parameters
    ----------
    path : path
        ``.npy`` or ``.parquet`` for dense vectors, ``.npz`` for sparse rows.
    matrix : array or sparse matrix
        One vector per tree.
    spec : vectorizer, DenseSpec or SparseSpec
        What made them. Where the vectorizer has learned columns or weights, the spec alone does not say
        which: give the vectorizer, and keep it with its ``save``.
    columns : mapping of str to sequence, optional
        What else is known of each tree, such as ``forest.columns``; for ``.parquet`` alone.

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
        raise ParameterError("the columns of these rows were learned: give the vectorizer, not its spec")
    fingerprint = getattr(spec, "fingerprint", made_with.fingerprint)
    if hasattr(matrix, "tocsr"):
        matrix = matrix.tocsr()
    vectors = Vectors(matrix, made_with, fingerprint, dict(columns or {}))
    if columns and Path(path).suffix.lower() != ".parquet":
        raise ParameterError(f"{path} has no room for columns: use .parquet, or keep them apart")
    with vector_file(path, made_with, fingerprint) as file:
        file.write(vectors.matrix, vectors.columns)


def load_vectors(path: str | os.PathLike[str]) -> Vectors:
    """Read vectors and how they were made, from a file that ``save_vectors`` or ``treedot encode`` wrote.

    Dense vectors in ``.npy`` are mapped into memory, not loaded. A file whose description is missing,
    damaged, or contradicts the matrix is refused; plain matrices are for ``numpy.load`` and
    ``scipy.sparse.load_npz``.

    Returns
    -------
    vectors : Vectors
        With ``matrix``, ``spec``, ``fingerprint`` and ``columns``.
    """
    suffix = Path(path).suffix.lower()
    check_is(path, "load_vectors")
    if suffix not in (".npy", ".npz", ".parquet"):
        raise ParameterError(f"cannot read vectors from {path}: they are in .npy, .npz or .parquet")
    if not Path(path).is_file():
        raise SourceError(f"cannot open {path}: there is no such file")
    description = read_description(path)
    if "fingerprint" not in description:
        raise SourceError(
            f"{path} does not say how its vectors were made ({description_path(path)} is missing or is not "
            "of vectors): read a plain matrix with numpy.load or scipy.sparse.load_npz"
            if suffix != ".parquet"
            else f"{path} does not say how its vectors were made: its metadata has no {SPEC_KEY.decode()!r}"
        )
    learned = description.pop("learned", "")
    columns: dict[str, Sequence[Any]] = {}
    try:
        spec = spec_from_dict(description)
        if suffix == ".parquet":
            matrix, columns = _read_parquet(path)
        else:
            matrix = read_matrix(path)
        return Vectors(matrix, spec, learned, columns)
    except (ParameterError, SpecMismatchError) as error:
        raise SpecMismatchError(f"the description of {path} is wrong: {error}") from None


def read_matrix(path: str | os.PathLike[str]) -> Any:
    """Return the matrix in a ``.npy`` file, mapped into memory, or the sparse one in an ``.npz`` file."""
    try:
        if Path(path).suffix.lower() == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        from scipy.sparse import load_npz

        matrix = load_npz(path).tocsr()
        matrix.check_format(full_check=True)
        return matrix
    except (ValueError, EOFError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise SourceError(f"cannot read {path}: {error}") from None


def _read_parquet(path: str | os.PathLike[str]) -> tuple[Matrix, dict[str, Sequence[Any]]]:
    """Return the column ``vector`` as a matrix, and the others as lists."""
    from treedot.trees.arrow import clear_errors, pa

    with clear_errors(os.fspath(path)):
        table = pa.parquet.read_table(path)
        if "vector" not in table.column_names or not pa.types.is_fixed_size_list(table["vector"].type):
            raise SourceError(f"{path} has no column 'vector' of lists of one size")
        vector = table["vector"].combine_chunks()
        if vector.null_count or vector.flatten().null_count:
            raise SourceError(f"a vector of {path} is missing, or a part of it")
        matrix = vector.flatten().to_numpy(zero_copy_only=False).reshape(len(vector), vector.type.list_size)
        return matrix, table.drop_columns(["vector"]).to_pydict()


def check_is(path: str | os.PathLike[str], opener: str) -> None:
    """Raise where a file is another of treedot's own, saying what it is and what opens it."""
    what, other = _known_file(path)
    if other not in ("", opener):
        raise SourceError(f"{path} holds {what}: {other} reads it, not {opener}")


def _known_file(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return what a file of treedot's own is, and what opens it; nothing where it is no such file."""
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
    if "kernel" in description:
        return "a matrix of kernels", "numpy.load"
    if "fingerprint" in description:
        return f"{description.get('kind')} vectors", "load_vectors"
    return "", ""


def read_description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a file that treedot wrote says of itself; nothing where it says nothing."""
    if Path(path).suffix.lower() == ".parquet":
        from treedot.trees.arrow import clear_errors, pa

        with clear_errors(os.fspath(path)):
            text = (pa.parquet.read_schema(path).metadata or {}).get(SPEC_KEY)
    else:
        beside = description_path(path)
        text = beside.read_bytes() if beside.exists() else None
    try:
        description = json.loads(text or "{}")
    except ValueError as error:
        raise SourceError(f"the description of {path} is not JSON: {error}") from None
    if not isinstance(description, dict):
        raise SourceError(f"the description of {path} is not a JSON object")
    return description
