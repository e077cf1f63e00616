"""One part: a file of Arrow, written some rows at a time, that says of what it was made.

How many rows it has, and of how many trees, is not known before the last one, and so stands in the metadata
of the last record batch. A file whose batches have as many rows as that is whole.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from treedot.errors import ParameterError, SourceError
from treedot.scale.plan import Plan, Shard
from treedot.vectors.parts import OWN, PLAN

SOURCE_KEY, ROWS_KEY, TREES_KEY = b"treedot.source", b"treedot.rows", b"treedot.trees"


def source_metadata(plan: Plan, shard: Shard) -> dict[bytes, bytes]:
    """Return what a part says of its shard."""
    source = plan.inputs[shard.file]
    said = source._asdict() | {
        "begin": shard.begin,
        "end": shard.end,
        "fingerprint": plan.work["fingerprint"],
    }
    return {SOURCE_KEY: json.dumps(said).encode()}


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
            self._writer = pa.ipc.new_file(str(self._path), self._schema)
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
        if self._writer is None:
            return
        try:
            if kind is None:
                said = {ROWS_KEY: str(self.rows), TREES_KEY: str(self.n_trees)}
                self._writer.write_batch(self._last, custom_metadata=said)
        finally:
            self._writer.close()


def rows_of_part(path: Path, source: Mapping[bytes, bytes]) -> int | None:
    """Return how many rows a part has; None where there is none, or not that of this source, or not whole."""
    from treedot.trees.arrow import mapped, pa

    try:
        with mapped(path) as raw, pa.ipc.open_file(raw) as file:
            if (file.schema.metadata or {}).get(SOURCE_KEY) != source[SOURCE_KEY]:
                return None
            count = file.num_record_batches
            rows = sum(file.get_batch(k).num_rows for k in range(count))
            _, said = file.get_batch_with_custom_metadata(count - 1)
            return rows if dict(said or {}).get(ROWS_KEY) == str(rows).encode() else None
    except (OSError, SourceError, pa.ArrowInvalid, IndexError):
        return None


def read_part(path: Path) -> tuple[Any, int]:
    """Return the table of a part, checked, and of how many trees it was made."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    with clear_errors(str(path)), mapped(path) as raw, pa.ipc.open_file(raw) as file:
        table = file.read_all()
        table.validate(full=True)  # what leads out of its buffers would end the process
        _, said = file.get_batch_with_custom_metadata(file.num_record_batches - 1)
        return table, int(dict(said)[TREES_KEY])


def check_types(paths: Iterable[Path]) -> None:
    """Raise where a column has types in several parts that do not go together."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    together = pa.schema([])
    for path in paths:
        with clear_errors(str(path)), mapped(path) as raw, pa.ipc.open_file(raw) as file:
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
