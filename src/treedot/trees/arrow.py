"""Forests as Arrow tables: one row per tree, readable by any Arrow or Parquet tool.

Schema: ``__treedot_label__: list<string>`` (post-order labels, dictionary-encoded),
``__treedot_arity__: list<int32>`` (post-order child counts), then one column per entry of ``Forest.columns``,
under its own name. The table's metadata holds ``treedot.forest = 2``, the version of this schema. In version
1, which can still be read, the first two columns are ``label`` and ``arity``.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._pages.printable import first_few
from treedot._runtime.ragged import ends_of
from treedot._storage.compression import check_unpacked
from treedot._storage.files import check_plain, open_plain, reason, write_whole
from treedot.errors import ParameterError, SourceError, TreedotError, missing
from treedot.trees.forest import Forest

__all__ = ["pa"]  # imported here for other modules, so that all raise the same error if it is missing

try:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet
except ModuleNotFoundError:
    raise missing("pyarrow", "parquet", "reading and writing Parquet and Arrow files") from None


class Layout(NamedTuple):
    """The names of the two columns of a packed forest."""

    label: str
    arity: str


RESERVED = "__treedot_"  # prefix that no user's column may have
OWN = Layout("__treedot_label__", "__treedot_arity__")
VERSION_KEY = b"treedot.forest"
VERSION = b"2"
LAYOUTS = {VERSION: OWN, b"1": Layout("label", "arity")}  # layouts that can be read
BATCH_BYTES = 1 << 24  # bytes of rows in memory at a time


def to_arrow(forest: Forest) -> Any:
    """Return the table of a forest."""
    check_names(forest.columns)
    offsets = pa.array(forest.offsets)
    with clear_errors("the forest's columns"):
        texts = pa.DictionaryArray.from_arrays(pa.array(forest.label), pa.array(forest.labels, pa.string()))
        data = {
            OWN.label: pa.LargeListArray.from_arrays(offsets, texts),
            OWN.arity: pa.LargeListArray.from_arrays(offsets, pa.array(forest.arity)),
            **{name: pa.array(values) for name, values in forest.columns.items()},
        }
    return pa.table(data).replace_schema_metadata({VERSION_KEY: VERSION})


def check_names(names: Iterable[str]) -> None:
    """Raise if columns have names that the file format reserves."""
    if taken := [name for name in names if name.startswith(RESERVED)]:
        raise ParameterError(
            f"cannot save: the file format reserves column names that begin with {RESERVED!r}; rename "
            f"{', '.join(map(repr, taken))}"
        )


def typed_table(forest: Forest, schema: Any = None) -> Any:
    """Return the table of a forest with the columns and types of a schema, by default its own.

    Labels are texts, not indices, so tables of different forests can be in one file.
    """
    table = to_arrow(forest)
    if schema is None:
        plain = {OWN.label: pa.large_list(pa.string()), **dict.fromkeys(_nulls(table), pa.string())}
        fields = [pa.field(field.name, plain.get(field.name, field.type)) for field in table.schema]
        return table.cast(pa.schema(fields, table.schema.metadata))
    _check_columns(table.column_names, set(schema.names))
    for name in set(schema.names) - set(table.column_names):
        table = table.append_column(name, pa.nulls(len(table)))
    return table.select(schema.names).cast(schema)


def first_columns(columns: Mapping[str, Any], rows: int, planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first columns of a file as arrays; they determine its types.

    Planned columns come first, as nulls if they are missing. A column keeps its own type even if another one
    was planned. A column of nulls becomes text, which can represent all later values.
    """
    with clear_errors("the columns of the trees"):
        own = {name: _plain(x) for name, x in columns.items()}
        data = {name: own.get(name, pa.nulls(rows)) for name in dict.fromkeys([*planned, *own])}
        return {name: _as_planned(array, planned.get(name, pa.string())) for name, array in data.items()}


def _as_planned(array: Any, kind: Any) -> Any:
    fits = pa.types.is_null(array.type) or (pa.types.is_integer(array.type) and pa.types.is_floating(kind))
    return array.cast(kind) if fits else array


def typed_columns(columns: Mapping[str, Any], rows: int, types: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return columns as arrays in the order and of the types of a file; missing columns are nulls.

    Without types, these columns are the first of the file.
    """
    if types is None:
        return first_columns(columns, rows, {})
    with clear_errors("the columns of the trees"):
        data = {name: _plain(x) for name, x in columns.items()}
        _check_columns(data, types)
        return {
            name: _as_before(name, data[name], t) if name in data else pa.nulls(rows, t)
            for name, t in types.items()
        }


def _check_columns(names: Iterable[str], known: Container[str]) -> None:
    """Raise if there are columns that the first trees of the file do not have."""
    if new := [name for name in names if name not in known]:
        what = "the column" if len(new) == 1 else f"{len(new):,} columns,"
        raise SourceError(f"the first trees lack {what} {first_few(new)}: write these trees to another file")


def _plain(values: Any) -> Any:
    """Return a column as an array without a dictionary; an Arrow file allows one dictionary per column."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _as_before(name: str, array: Any, kind: Any) -> Any:
    """Return an array with the column's earlier type; raise if that changes a value."""
    number = pa.types.is_integer(array.type) and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
    if array.type != kind and not pa.types.is_null(array.type) and not number:
        raise SourceError(
            f"the column {name!r} is of type {array.type}, but was {kind} before: convert it to one type"
        )
    return array.cast(kind)


def _nulls(table: Any) -> list[str]:
    return [field.name for field in table.schema if pa.types.is_null(field.type)]


def layout_of(schema: Any) -> Layout | None:
    """Return the columns of a packed forest; None if a table is not one.

    A table may have lost its metadata, or have been made by hand; then its columns decide.
    """
    version = (schema.metadata or {}).get(VERSION_KEY)
    if version is not None and version not in LAYOUTS:
        raise SourceError(
            f"packed trees of version {version.decode(errors='replace')!r} are unknown here: update treedot"
        )
    layouts = LAYOUTS.values() if version is None else [LAYOUTS[version]]
    return next((layout for layout in layouts if _has_lists(schema, layout)), None)


def _has_lists(schema: Any, layout: Layout) -> bool:
    return all(name in schema.names and _is_list(schema.field(name).type) for name in layout)


def from_arrow(table: Any) -> Forest:
    """Return the forest of a table."""
    with clear_errors("the table of a forest"):
        table.validate(full=True)  # offsets or indices outside their buffers would crash the process
        return _from_valid(table)


def _from_valid(table: Any) -> Forest:
    layout = layout_of(table.schema)
    if layout is None:
        names = ", ".join(map(repr, table.column_names))
        raise SourceError(
            f"a packed forest has list columns {OWN.label!r} and {OWN.arity!r}, but this table has {names}"
        )
    kept = [name for name in table.column_names if name not in layout]
    parts = [Forest([], [], [0], [], {name: [] for name in kept})]
    for batch in table.to_batches():
        label, arity = (batch.column(name) for name in layout)
        texts, counts = label.flatten(), arity.flatten()
        if label.null_count or arity.null_count or texts.null_count or counts.null_count:
            raise SourceError(
                f"a packed forest has no nulls in its columns {layout.label!r} and {layout.arity!r}"
            )
        sizes = np.asarray(label.value_lengths())
        if not np.array_equal(sizes, np.asarray(arity.value_lengths())):
            raise SourceError(
                f"the lists {layout.label!r} and {layout.arity!r} of a packed forest differ in length"
            )
        if not pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_encode()
        index: dict[str, int] = {}  # a dictionary may contain a text twice
        moves = np.array([index.setdefault(text, len(index)) for text in texts.dictionary.to_pylist()], int)
        parts.append(
            Forest(
                moves[np.asarray(texts.indices)] if len(texts) else [],
                np.asarray(counts),
                ends_of(sizes),
                tuple(index),
                {name: batch.column(name).to_pylist() for name in kept},
            )
        )
    return Forest.concat(parts)


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


@contextlib.contextmanager
def clear_errors(name: str) -> Iterator[None]:
    """Turn any error of pyarrow, which a damaged file can cause, into one clear error."""
    try:
        yield
    except TreedotError:
        raise
    except Exception as error:
        raise SourceError(f"pyarrow cannot read or write {name}: {reason(error)}") from error


def mapped(path: str | os.PathLike[str]) -> Any:
    """Map a plain file into memory for Arrow; use it in a ``with`` statement."""
    with open_plain(path) as file:
        if not os.fstat(file.fileno()).st_size:  # empty files cannot be mapped
            return pa.BufferReader(b"")
        return pa.BufferReader(pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def open_parquet(path: str | os.PathLike[str]) -> Any:
    """Open a plain Parquet file. It is not mapped: rewriting the file would then crash this process."""
    check_plain(path)
    return pa.parquet.ParquetFile(path)


def open_batches(
    path: str, kind: str, batch_size: int, row_groups: range | None = None, unpack_large: bool = False
) -> tuple[Any, Iterator[Any]]:
    """Open a file of kind ``"parquet"`` or ``"arrow"``; return its schema and its validated record batches.

    With ``row_groups``, only these row groups are read (in Arrow, record batches), in one thread and in
    smaller batches if rows are large. If batches unpack to too much for the file's size, the next one raises,
    unless ``unpack_large`` is true.
    """
    with clear_errors(path):
        if kind == "parquet":
            file = open_parquet(path)
            groups = _by_row_group(file, batch_size, row_groups)
            return file.schema_arrow, _checked(groups, path, unpack_large)
        if row_groups is not None or not _is_feather_v1(path):
            arrow = pa.ipc.open_file(mapped(path))
            numbers = range(arrow.num_record_batches) if row_groups is None else row_groups
            found = _checked((arrow.get_batch(k) for k in numbers), path, unpack_large)
            return arrow.schema, _in_slices(found, batch_size)
        table = pa.feather.read_table(mapped(path))
        table.validate(full=True)  # all at once: its batches are slices that share their lists
        return table.schema, iter(table.to_batches(max_chunksize=batch_size))


def row_group_sizes(path: str, kind: str) -> list[tuple[int, int]]:
    """Return the rows and bytes of every row group of Parquet, or record batch of Arrow.

    The bytes are uncompressed, or the group's share of the file.
    """
    with clear_errors(path):
        if kind == "parquet":
            metadata = open_parquet(path).metadata
            groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
            return [(group.num_rows, group.total_byte_size) for group in groups]
        if _is_feather_v1(path):
            raise SourceError(
                f"{path} is Feather V1, which cannot be cut into shards: write it again as Arrow, with "
                "pyarrow.feather.write_feather"
            )
        first_column = pa.ipc.IpcReadOptions(included_fields=[0])
        with mapped(path) as raw, pa.ipc.open_file(raw, options=first_column) as file:
            count, size = file.num_record_batches, raw.size()
            return [(file.get_batch(k).num_rows, size // count) for k in range(count)]


def _by_row_group(file: Any, batch_size: int, row_groups: range | None) -> Iterator[Any]:
    """Yield batches that end at row groups: each group has a dictionary, but a list array only one."""
    for k in range(file.num_row_groups) if row_groups is None else row_groups:
        group = file.metadata.row_group(k)
        rows = batch_size if row_groups is None else _rows(group.num_rows, group.total_byte_size, batch_size)
        yield from file.iter_batches(rows, row_groups=[k], use_threads=row_groups is None)


def _is_feather_v1(path: str) -> bool:
    with open_plain(path) as file:
        return file.read(4) == b"FEA1"


def _in_slices(batches: Iterator[Any], batch_size: int) -> Iterator[Any]:
    for batch in batches:
        rows = _rows(batch.num_rows, batch.nbytes, batch_size)
        yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _rows(count: int, size: int, batch_size: int) -> int:
    """Return the number of rows in memory at a time, for ``count`` rows of ``size`` bytes together."""
    return max(1, min(batch_size, BATCH_BYTES * count // max(1, size)))


def _checked(batches: Iterator[Any], path: str, unpack_large: bool) -> Iterator[Any]:
    """Yield validated batches; raise if they unpack to too much."""
    unpacked, packed = 0, os.path.getsize(path)
    with clear_errors(path):
        for batch in batches:
            batch.validate(full=True)  # first, since wrong offsets would affect everything else
            unpacked += batch.nbytes
            check_unpacked(path, unpacked, packed, unpack_large)
            yield batch


def forest_of(batch: Any, layout: Layout, path: str) -> Forest:
    """Return the forest of a record batch that ``open_batches`` returned, without its other columns."""
    with clear_errors(path):
        return _from_valid(pa.Table.from_batches([batch.select(list(layout))]))


def save(forest: Forest, path: str | os.PathLike[str]) -> None:
    """Write a forest to ``.parquet``, ``.arrow`` or ``.feather``."""
    kind = _kind(path)
    table = forest.to_arrow()
    with write_whole(path) as aside, clear_errors(os.fspath(path)):
        if kind == "parquet":
            pa.parquet.write_table(table, aside)
        else:
            pa.feather.write_feather(table, str(aside))


def load(path: str | os.PathLike[str]) -> Forest:
    """Read a forest from ``.parquet``, ``.arrow`` or ``.feather``."""
    schema, batches = open_batches(os.fspath(path), _kind(path), 1 << 16)
    with clear_errors(os.fspath(path)):
        return _from_valid(pa.Table.from_batches(batches, schema))


def _kind(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".parquet", ".arrow", ".feather"):
        raise ParameterError(f"cannot tell the format of {path}: use .parquet, .arrow or .feather")
    return "parquet" if suffix == ".parquet" else "arrow"
