"""Parts: Arrow files that are written in batches and record their source.

The metadata of the last record batch holds the number of rows, the number of trees and a digest of the file,
which are known only at the end. A part is finished if its digest and its number of rows are right.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from treedot._storage.files import write_whole
from treedot._storage.seals import BLANK, SealedFile
from treedot.batch.plan import Plan, Shard
from treedot.errors import ParameterError
from treedot.vectors.parts import DIGEST_KEY, OWN, PLAN, SOURCE_KEY, final_metadata, source_text

T = TypeVar("T")

PLAN_KEY, ROWS_KEY, TREES_KEY = b"treedot.plan", b"treedot.rows", b"treedot.trees"


def source_metadata(plan: Plan, shard: Shard) -> dict[bytes, bytes]:
    """Return the metadata that identify a part's shard and plan."""
    said = source_text(plan.inputs[shard.file], shard.begin, shard.end, plan.work["fingerprint"])
    return {SOURCE_KEY: said, PLAN_KEY: plan.fingerprint.encode()}


def planned_types(plan: Plan) -> dict[str, Any]:
    """Return the types of the columns that all parts of a plan have."""
    from treedot.trees.arrow import clear_errors, pa

    if not plan.columns:
        return {}
    with clear_errors(PLAN):
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(plan.columns)))
        return dict(zip(schema.names, schema.types, strict=True))


def check_names(own: Iterable[str], columns: Iterable[str]) -> None:
    """Raise if columns of the input have the names of generated columns."""
    if taken := sorted(set(own).intersection(columns)):
        raise ParameterError(
            f"rename the column(s) {taken} of the input: the parts have generated columns of these names"
        )


class PartFile:
    """Writes rows in record batches, one per call; the last one is written at the end, with metadata.

    Parameters
    ----------
    path : Path
        The file to write.
    metadata : mapping
        The metadata of the schema: the part's source and settings.
    planned : mapping
        The columns that every part has, and their types; filled with nulls if the rows do not have them.
    """

    def __init__(
        self, path: Path, metadata: Mapping[bytes, bytes], planned: Mapping[str, Any] | None = None
    ) -> None:
        self._path, self._metadata, self._planned = path, metadata, planned or {}
        self._types: dict[str, Any] | None = None
        self._schema: Any = None
        self._file: Any = None
        self._writer: Any = None
        self._last: Any = None
        self.rows = 0
        self.n_trees = 0  # trees read for this part, where the caller sets it

    def write(self, made: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
        """Append rows: generated columns, and the columns of the input."""
        from treedot.trees.arrow import first_columns, pa, typed_columns

        own = made.keys() | set(OWN) if made.keys() & set(OWN) else made.keys()  # for all kinds of vectors
        check_names(own, columns.keys() | self._planned.keys())
        rows = len(next(iter(made.values())))
        if self._types is None:
            data = first_columns(columns, rows, self._planned)
            self._types = {name: array.type for name, array in data.items()}
            fields = [(name, array.type) for name, array in {**made, **data}.items()]
            self._schema = pa.schema(fields, self._metadata)
            self._file = SealedFile(self._path)
            self._writer = pa.ipc.new_file(self._file, self._schema)
        else:
            data = typed_columns(columns, rows, self._types)
        if self._last is not None:
            self._writer.write_batch(self._last)
        self._last = pa.record_batch([*made.values(), *data.values()], schema=self._schema)
        self.rows += rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None:
            return
        with self._file:
            if kind is None:
                said = {ROWS_KEY: str(self.rows), TREES_KEY: str(self.n_trees)}
                close_sealed(self._file, self._writer, self._last, said)


def close_sealed(file: SealedFile, writer: Any, last: Any, said: Mapping[bytes, str]) -> None:
    """Write the last record batch of an Arrow file, with metadata and the digest of the file."""
    place = file.tell()
    writer.write_batch(last, custom_metadata={**said, DIGEST_KEY: BLANK})
    writer.close()
    file.seal(after=place)


def write_result(path: Path, table: Any) -> None:
    """Write an Arrow table with its digest, atomically."""
    from treedot.trees.arrow import clear_errors, pa

    *others, last = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    with write_whole(path) as aside, clear_errors(str(path)), SealedFile(aside) as file:
        writer = pa.ipc.new_file(file, table.schema)
        for batch in others:
            writer.write_batch(batch)
        close_sealed(file, writer, last, {})


def is_result(path: Path) -> bool:
    """Return whether ``write_result`` wrote a file, and it is intact."""
    return _finished(path, lambda file: bool(final_metadata(path, file, sealed=True))) is not None


def rows_of_part(path: Path, source: Mapping[bytes, bytes], sealed: bool, look_closely: bool) -> int | None:
    """Return the number of rows of a part; None if it is missing, damaged or of another source.

    Parts of older versions are not ``sealed``. With ``look_closely``, every byte is read.
    """

    def rows(file: Any) -> int | None:
        found, keys = file.schema.metadata or {}, (SOURCE_KEY, PLAN_KEY) if sealed else (SOURCE_KEY,)
        if any(found.get(key) != source[key] for key in keys):
            return None
        count = file.num_record_batches
        said = final_metadata(path, file, sealed) if look_closely else _unchecked_metadata(file)
        rows = sum(file.get_batch(k).num_rows for k in range(count))
        return rows if said.get(ROWS_KEY) == str(rows).encode() else None

    return _finished(path, rows)


def _unchecked_metadata(file: Any) -> dict[bytes, bytes]:
    _, said = file.get_batch_with_custom_metadata(file.num_record_batches - 1)
    return dict(said or {})


def _finished(path: Path, look: Callable[[Any], T | None]) -> T | None:
    """Return ``look`` of an Arrow file; None if the file cannot be read."""
    from treedot.trees.arrow import mapped, pa

    try:
        with mapped(path) as raw, pa.ipc.open_file(raw) as file:
            return look(file)
    except Exception:  # Arrow may raise anything for a damaged file
        return None


def read_part(path: Path, sealed: bool) -> tuple[Any, int]:
    """Return the validated table of a part, and the number of trees that were read for it."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    with clear_errors(str(path)), mapped(path) as raw, pa.ipc.open_file(raw) as file:
        said = final_metadata(path, file, sealed)
        table = file.read_all()
        table.validate(full=True)  # offsets outside its buffers would crash the process
        return table, int(said[TREES_KEY])


def check_parts(paths: Iterable[Path], sealed: bool) -> None:
    """Raise if a part is damaged, or if a column has incompatible types in several parts."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    together = pa.schema([])
    for path in paths:
        with clear_errors(str(path)), mapped(path) as raw, pa.ipc.open_file(raw) as file:
            final_metadata(path, file, sealed)
            schema = file.schema.remove_metadata()
        with clear_errors("the columns of the trees"):
            together = pa.unify_schemas([together, schema], promote_options="permissive")


def with_files(table: Any, paths: Sequence[str]) -> Any:
    """Return trees with a column ``file``: its own values, as for source code, or else these paths."""
    from pyarrow import compute

    from treedot.trees.arrow import pa

    inputs = pa.array(paths, pa.string())
    if "file" not in table.column_names:
        return table.append_column("file", inputs)
    place, known = table.column_names.index("file"), table["file"]
    if not pa.types.is_string(known.type):
        return table
    return table.set_column(place, "file", compute.coalesce(known, inputs))
