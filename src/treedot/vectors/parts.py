"""Read vectors from Arrow files, and from folders of such files as if they were one.

A dense vector is a fixed-size list in the column ``vector``; a sparse row is two lists, ``indices`` and
``values``. The other columns are those of the trees. The schema's metadata holds the description of the
vectors under ``treedot.spec``, as in Parquet, and the number of their columns under ``treedot.columns``.

A folder of parts holds one file for each range of the input files, and ``_treedot.json``, the plan, which
lists them. ``treedot.batch`` writes it. The metadata of a part's last record batch holds the digest of the
part, and the plan holds its own digest, so that damaged files are detected. Folders of older versions have no
digests; they are still read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from treedot._runtime.array_types import Matrix
from treedot._storage.files import read_plain
from treedot._storage.seals import is_whole, new_hash
from treedot.errors import SourceError
from treedot.vectors.spec import DenseSpec, SparseSpec
from treedot.vectors.writers import SPEC_KEY, describe

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

WIDTH_KEY = b"treedot.columns"
SOURCE_KEY, DIGEST_KEY = b"treedot.source", b"treedot.digest"
PLAN, PLAN_FORMAT = "_treedot.json", "treedot parts"
PLAN_KEYS = {
    "format", "version", "treedot", "work", "reading", "shard_size", "inputs", "shards", "columns",
}  # fmt: skip
CHECKSUM = "checksum"  # key of a plan's checksum
MAX_PLAN = 1 << 30  # bytes
ANEW = "delete the folder, and make it again"
OWN = ("vector", "indices", "values")  # columns


def part_name(file: int, begin: int, end: int) -> str:
    """Return the name of the part for a range of an input file; names sort in the order of the trees."""
    return f"part-{file:06}-{begin:015}-{end:015}.arrow"


def vector_metadata(spec: DenseSpec | SparseSpec, fingerprint: str | None, width: int) -> dict[bytes, bytes]:
    """Return the metadata of a schema of vectors."""
    description = json.dumps(describe(spec, fingerprint)).encode()
    return {SPEC_KEY: description, WIDTH_KEY: str(width).encode()}


def read_plan(folder: Path) -> dict[str, Any]:
    """Return the content of ``_treedot.json``; raise if it is damaged."""
    path = folder / PLAN
    if not path.exists():
        raise SourceError(f"{folder} is not a folder of parts: it has no {PLAN}")
    text = read_plain(path, MAX_PLAN + 1)
    try:
        plan = json.loads(text) if len(text) <= MAX_PLAN else None
    except (ValueError, RecursionError):
        plan = None
    if not isinstance(plan, dict) or (plan.get("format"), plan.get("version")) != (PLAN_FORMAT, 1):
        raise SourceError(f"{path} is damaged, or another version of treedot wrote it: {ANEW}")
    checksum = plan.get(CHECKSUM)
    if plan.keys() - {CHECKSUM} != PLAN_KEYS or (CHECKSUM in plan and checksum != checksum_of(plan)):
        raise SourceError(f"{path} is damaged: {ANEW}")
    return plan


def checksum_of(plan: Mapping[str, Any]) -> str:
    """Return the digest of a plan, computed without the digest that it holds."""
    content = {name: value for name, value in plan.items() if name != CHECKSUM}
    return str(new_hash(json.dumps(content, sort_keys=True).encode()).hexdigest())


def part_names(plan: Mapping[str, Any]) -> list[str]:
    """Return the names of all parts of a plan, in the order of the trees."""
    try:
        return [part_name(file, begin, end) for file, begin, end, *_ in plan["shards"]]
    except (TypeError, ValueError, KeyError):
        raise SourceError(f"{PLAN} is damaged: its shards are not lists of numbers") from None


def part_paths(folder: Path) -> list[Path]:
    """Return the parts of a folder in the order of the trees; raise if one is missing."""
    return _paths(folder, read_plan(folder))


def source_text(file: Sequence[Any], begin: int, end: int, fingerprint: str) -> bytes:
    """Return the description of a part's source: the range of a file, and the settings' fingerprint."""
    path, size, mtime_ns = file
    source = {"path": path, "size": size, "mtime_ns": mtime_ns, "begin": begin, "end": end}
    return json.dumps({**source, "fingerprint": fingerprint}).encode()


def part_sources(plan: Mapping[str, Any]) -> list[bytes]:
    """Return the descriptions of the sources of all parts of a plan."""
    try:
        fingerprint, inputs = plan["work"]["fingerprint"], plan["inputs"]
        return [source_text(inputs[k], begin, end, fingerprint) for k, begin, end, *_ in plan["shards"]]
    except (TypeError, ValueError, KeyError, IndexError):
        raise SourceError(f"{PLAN} is damaged: its shards do not match its inputs; {ANEW}") from None


def check_source(path: Path, file: Any, source: bytes) -> None:
    """Raise if an open part was not made from this source."""
    if (file.schema.metadata or {}).get(SOURCE_KEY) != source:
        raise SourceError(
            f"{path} was made from another file or with other settings: repeat the command that made the "
            "folder to replace it"
        )


def is_sealed(plan: Mapping[str, Any]) -> bool:
    """Return whether all parts of a plan hold digests; older versions of treedot wrote none."""
    return CHECKSUM in plan


def final_metadata(path: Path, file: Any, sealed: bool) -> dict[bytes, bytes]:
    """Return the metadata of the last record batch of an open part; raise if the part is damaged.

    A part without a digest is damaged if it is ``sealed``, and is not checked otherwise.
    """
    count = file.num_record_batches
    found = dict(file.get_batch_with_custom_metadata(count - 1)[1] or {}) if count else {}
    if (sealed or DIGEST_KEY in found) and not is_whole(path, found.get(DIGEST_KEY, b"")):
        raise SourceError(f"{path} is damaged: repeat the command that made the folder to replace it")
    return found


def _paths(folder: Path, plan: Mapping[str, Any]) -> list[Path]:
    paths = [folder / name for name in part_names(plan)]
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise SourceError(
            f"{folder} is not complete: {len(missing)} of {len(paths)} parts are missing; treedot batch "
            f"status {folder} lists them; repeat the command that made the folder to make them"
        )
    return paths


def parts_metadata(path: Path) -> dict[bytes, bytes]:
    """Return the metadata of the schema of an Arrow file, or of the first part of a folder."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    first = part_paths(path)[0] if path.is_dir() else path
    with clear_errors(str(first)), mapped(first) as raw, pa.ipc.open_file(raw) as file:
        return dict(file.schema.metadata or {})


def read_parts(path: Path) -> tuple[Matrix | csr_matrix, dict[str, Sequence[Any]]]:
    """Return the vectors of an Arrow file or of a folder of parts, and the other columns as lists."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    metadata, vectors, columns, rows = parts_metadata(path), [], dict[str, list[Any]](), 0
    plan = read_plan(path) if path.is_dir() else None
    sources = [None] if plan is None else part_sources(plan)
    for part, source in zip([path] if plan is None else _paths(path, plan), sources, strict=True):
        with clear_errors(str(part)):
            file = pa.ipc.open_file(mapped(part))
            if source is not None:
                check_source(part, file, source)
            final_metadata(part, file, plan is not None and is_sealed(plan))
            table = file.read_all()
            table.validate(full=True)  # invalid offsets would crash the process
            if any(
                (table.schema.metadata or {}).get(key) != metadata.get(key) for key in (SPEC_KEY, WIDTH_KEY)
            ):
                raise SourceError(
                    f"{part} holds other vectors than the first part: delete it and make it again"
                )
            own = [name for name in OWN if name in table.schema.names]
            vectors.append(table.select(own))
            for name, values in table.drop_columns(own).to_pydict().items():
                columns.setdefault(name, [None] * rows).extend(values)
        rows += len(table)
        columns = {name: values + [None] * (rows - len(values)) for name, values in columns.items()}
    with clear_errors(str(path)):
        if not metadata.get(WIDTH_KEY, b"").isdigit():
            raise SourceError(f"{path} does not say how many columns its vectors have")
        return _vectors(pa.concat_tables(vectors), int(metadata[WIDTH_KEY]), path), dict(columns)


def _vectors(table: Any, width: int, path: Path) -> Matrix | csr_matrix:
    if "vector" in table.column_names:
        return dense_vectors(table["vector"], path)
    if not {"indices", "values"} <= set(table.column_names):
        raise SourceError(f"{path} has neither a column 'vector' nor columns 'indices' and 'values'")
    return _sparse(table["indices"], table["values"], width, path)


def dense_vectors(column: Any, path: str | os.PathLike[str]) -> Matrix:
    """Return a column of fixed-size lists as a matrix; raise if it contains nulls."""
    from treedot.trees.arrow import pa

    if not pa.types.is_fixed_size_list(column.type) or _nulls(column):
        raise SourceError(f"the column 'vector' of {path} does not hold fixed-size lists, or contains nulls")
    return _flat(column).reshape(len(column), column.type.list_size)


def _sparse(indices: Any, values: Any, width: int, path: Path) -> csr_matrix:
    from scipy.sparse import csr_matrix

    sizes = _lengths(indices)
    if _nulls(indices) or _nulls(values) or not np.array_equal(sizes, _lengths(values)):
        raise SourceError(f"{path} is damaged: its 'indices' and 'values' do not match")
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    matrix = csr_matrix((_flat(values), _flat(indices), indptr), shape=(len(indices), width))
    matrix.check_format(full_check=True)
    return matrix


def _nulls(column: Any) -> bool:
    return bool(column.null_count or any(chunk.flatten().null_count for chunk in column.chunks))


def _flat(column: Any) -> np.ndarray:
    chunks: list[np.ndarray] = [chunk.flatten().to_numpy() for chunk in column.chunks]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate(chunks) if chunks else np.zeros(0, column.type.value_type.to_pandas_dtype())


def _lengths(column: Any) -> np.ndarray:
    lengths = [np.asarray(chunk.value_lengths(), np.int64) for chunk in column.chunks]
    return np.concatenate([np.zeros(0, np.int64), *lengths])
