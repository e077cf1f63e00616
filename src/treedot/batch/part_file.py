"""One part: a file of Arrow, written some rows at a time, that says of what it was made.

The metadata of the last record batch holds what is not known before: the number of rows, of how many trees
they were made, and a digest of the file. A part is finished if it has that digest and that number of rows.
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
    """Return what a part says of its shard."""
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
    """Raise where columns that came with the trees have the names of what is made of them."""
    if taken := sorted(set(own).intersection(columns)):
        raise ParameterError(
            f"rename the column(s) {taken}: the names are taken by what is made of the trees"
        )


class PartFile:
    """Takes columns of rows; each call becomes a record batch, the last of which is held back.

    Parameters
    ----------
    path : Path
        The file to write.
    metadata : mapping
        What the schema says of how the part was made.
    planned : mapping
        Columns that the part has in any case, and their types: nulls where its rows do not have them.
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
        self.n_trees = 0  # that it was made of, for whoever knows

    def write(self, made: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
        """Append rows: what was made of trees, and the columns that came with them."""
        from treedot.trees.arrow import first_columns, pa, typed_columns

        own = made.keys() | set(OWN) if made.keys() & set(OWN) else made.keys()  # of all kinds of vectors
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
    """Write the last record batch of a file of Arrow, with metadata and the digest of the file."""
    place = file.tell()
    writer.write_batch(last, custom_metadata={**said, DIGEST_KEY: BLANK})
    writer.close()
    file.seal(after=place)


def write_result(path: Path, table: Any) -> None:
    """Write a table of Arrow with its digest; it appears whole or not at all."""
    from treedot.trees.arrow import clear_errors, pa

    *others, last = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    with write_whole(path) as aside, clear_errors(str(path)), SealedFile(aside) as file:
        writer = pa.ipc.new_file(file, table.schema)
        for batch in others:
            writer.write_batch(batch)
        close_sealed(file, writer, last, {})


def is_result(path: Path) -> bool:
    """Return whether a file is one that ``write_result`` wrote, and not damaged."""
    return _finished(path, lambda file: bool(final_metadata(path, file, sealed=True))) is not None


def rows_of_part(path: Path, source: Mapping[bytes, bytes], sealed: bool, look_closely: bool) -> int | None:
    """Return how many rows a part has; None where it is not there, not of this source, or damaged.

    Parts of older versions are not ``sealed``. To ``look_closely`` is to read every byte.
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
    """Return what is found in a file of Arrow; None where it cannot be read."""
    from treedot.trees.arrow import mapped, pa

    try:
        with mapped(path) as raw, pa.ipc.open_file(raw) as file:
            return look(file)
    except Exception:  # of a damaged file, Arrow may raise anything
        return None


def read_part(path: Path, sealed: bool) -> tuple[Any, int]:
    """Return the table of a part, checked, and of how many trees it was made."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    with clear_errors(str(path)), mapped(path) as raw, pa.ipc.open_file(raw) as file:
        said = final_metadata(path, file, sealed)
        table = file.read_all()
        table.validate(full=True)  # what leads out of its buffers would end the process
        return table, int(said[TREES_KEY])


def check_parts(paths: Iterable[Path], sealed: bool) -> None:
    """Raise where a part is damaged, or a column has types in several parts that do not go together."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    together = pa.schema([])
    for path in paths:
        with clear_errors(str(path)), mapped(path) as raw, pa.ipc.open_file(raw) as file:
            final_metadata(path, file, sealed)
            schema = file.schema.remove_metadata()
        with clear_errors("the columns of the trees"):
            together = pa.unify_schemas([together, schema], promote_options="permissive")


def with_files(table: Any, paths: Sequence[str]) -> Any:
    """Return trees with the file of each: what their own column says, as that of code does, or these."""
    from pyarrow import compute

    from treedot.trees.arrow import pa

    inputs = pa.array(paths, pa.string())
    if "file" not in table.column_names:
        return table.append_column("file", inputs)
    place, known = table.column_names.index("file"), table["file"]
    if not pa.types.is_string(known.type):
        return table
    return table.set_column(place, "file", compute.coalesce(known, inputs))
