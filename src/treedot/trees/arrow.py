"""Forests as Arrow tables: one row per tree, readable by any Arrow or Parquet tool.

Schema: ``label: list<string>`` (post-order labels, dictionary-encoded), ``arity: list<int32>``
(post-order child counts), then one column per entry of ``Forest.columns``. The table's metadata
holds ``treedot.forest = 1``, the version of this schema.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from treedot.errors import ParameterError, SourceError, missing
from treedot.files import write_whole
from treedot.trees.forest import Forest

__all__ = ["from_arrow", "is_forest", "load", "pa", "save", "to_arrow"]

try:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet
except ModuleNotFoundError:
    raise missing("pyarrow", "parquet", "reading and writing Parquet and Arrow files") from None

VERSION_KEY = b"treedot.forest"
VERSION = b"1"


def to_arrow(forest: Forest) -> Any:
    """Return the table of a forest."""
    taken = {"label", "arity"} & set(forest.columns)
    if taken:
        raise ParameterError(f"rename the column(s) {sorted(taken)}: the names are the forest's own")
    offsets = pa.array(forest.offsets)
    texts = pa.DictionaryArray.from_arrays(pa.array(forest.label), pa.array(forest.labels, pa.string()))
    data = {
        "label": pa.LargeListArray.from_arrays(offsets, texts),
        "arity": pa.LargeListArray.from_arrays(offsets, pa.array(forest.arity)),
        **{name: pa.array(values) for name, values in forest.columns.items()},
    }
    return pa.table(data).replace_schema_metadata({VERSION_KEY: VERSION})


def is_forest(schema: Any) -> bool:
    """Whether a table with this schema is a packed forest."""
    return {"label", "arity"} <= set(schema.names) and pa.types.is_nested(schema.field("label").type)


def from_arrow(table: Any) -> Forest:
    """Return the forest of a table."""
    version = (table.schema.metadata or {}).get(VERSION_KEY, VERSION)
    if version != VERSION:
        raise SourceError(f"forest schema {version.decode()!r} is unknown here: update treedot")
    if not is_forest(table.schema):
        raise SourceError(f"a forest table has list columns 'label' and 'arity', not {table.schema.names}")
    kept = [name for name in table.column_names if name not in ("label", "arity")]
    parts = []
    for batch in table.to_batches():
        label, arity = batch.column("label"), batch.column("arity")
        if label.null_count or arity.null_count:
            raise SourceError("a forest table has no null rows")
        texts = label.flatten()
        if not pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_encode()
        if texts.null_count:
            raise SourceError("a forest table has no null labels")
        sizes = np.asarray(label.value_lengths())
        if not np.array_equal(sizes, np.asarray(arity.value_lengths())):
            raise SourceError("the 'label' and 'arity' lists of a forest table differ in length")
        parts.append(
            Forest(
                np.asarray(texts.indices),
                np.asarray(arity.flatten()),
                np.concatenate([[0], np.cumsum(sizes)]),
                texts.dictionary.to_pylist(),
                {name: batch.column(name).to_pylist() for name in kept},
            )
        )
    return Forest.concat(parts) if parts else Forest([], [], [0], [], {name: [] for name in kept})


def save(forest: Forest, path: str | os.PathLike[str]) -> None:
    """Write a forest to ``.parquet``, ``.arrow`` or ``.feather``."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".parquet", ".arrow", ".feather"):
        raise ParameterError(f"cannot tell the format of {path}: use .parquet, .arrow or .feather")
    with write_whole(path) as aside:
        if suffix == ".parquet":
            pa.parquet.write_table(forest.to_arrow(), aside)
        else:
            pa.feather.write_feather(forest.to_arrow(), str(aside))


def load(path: str | os.PathLike[str]) -> Forest:
    """Read a forest from ``.parquet``, ``.arrow`` or ``.feather``."""
    try:
        if Path(path).suffix.lower() == ".parquet":
            return from_arrow(pa.parquet.read_table(path))
        return from_arrow(pa.feather.read_table(str(path)))
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceError(f"cannot read {path}: {error}") from error
