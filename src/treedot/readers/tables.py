"""Trees in tables: TSV, CSV, JSON lines and Parquet with a tree column; the other columns are kept."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

from treedot.errors import SourceError
from treedot.files import read_lines
from treedot.readers.objects import read_items
from treedot.readers.problems import OnBad
from treedot.readers.recognition import refuse_other_files
from treedot.trees import Forest

DEFAULT_COLUMN = "tree"
MAX_FIELD = 2**31 - 1
VECTORS_KEY = b"treedot.spec"  # in the metadata of a Parquet file of vectors

Row = tuple[str, dict[str, Any]]  # where it stands, and its values by column


def read_tsv(
    stream: IO[Any], name: str, column: str | None, batch_size: int, on_bad: OnBad
) -> Iterator[Forest]:
    """Tab-separated values under a header line; no quoting, so no field holds a tab or a newline."""
    records = ((number, line.split("\t")) for number, line in _decoded(stream, name, on_bad))
    return _packed(_rows(records, name, column, on_bad), column, batch_size, on_bad)


def read_csv(
    stream: IO[Any], name: str, column: str | None, batch_size: int, on_bad: OnBad
) -> Iterator[Forest]:
    """Comma-separated values under a header line, with the usual quoting."""

    def records() -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader((line + "\n" for _, line in _decoded(stream, name, on_bad)), strict=True)
        while True:
            usual = csv.field_size_limit(MAX_FIELD)  # a tree may be far longer than the usual 128 KiB
            try:
                fields = next(reader, None)
            except csv.Error as error:
                on_bad(SourceError(f"{name}:{reader.line_num}: {error}"))
                continue
            finally:
                csv.field_size_limit(usual)
            if fields is None:
                return
            if fields:
                yield reader.line_num, fields

    return _packed(_rows(records(), name, column, on_bad), column, batch_size, on_bad)


def read_jsonl(
    stream: IO[Any], name: str, column: str | None, batch_size: int, on_bad: OnBad
) -> Iterator[Forest]:
    """One JSON object per line; the tree is bracket text or nested lists ``[label, child, …]``."""

    def rows() -> Iterator[Row]:
        for number, line in _decoded(stream, name, on_bad):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                on_bad(SourceError(f"{name}:{number}: this line is not JSON ({error})"))
                continue
            if isinstance(row, dict):
                yield f"{name}:{number}", row
            else:
                on_bad(SourceError(f"{name}:{number}: expected a JSON object, found {type(row).__name__}"))

    return _packed(rows(), column, batch_size, on_bad)


def read_arrow(path: str, kind: str, column: str | None, batch_size: int, on_bad: OnBad) -> Iterator[Forest]:
    """Parquet, Arrow or Feather: a packed forest, or a table with a text column of trees."""
    from treedot.trees import arrow  # says what to install where pyarrow is missing

    with arrow.clear_errors(path):
        schema, batches = arrow.open_batches(path, kind, batch_size)
        names, metadata = schema.names, schema.metadata or {}
        packed = column is None and arrow.is_forest(schema)
    if packed:
        yield from arrow.forests(batches, path)
        return
    wanted = column or DEFAULT_COLUMN
    if wanted not in names:
        if VECTORS_KEY in metadata:
            raise SourceError(f"{path} holds dense vectors, not trees: load_vectors reads them")
        raise _no_column(path, wanted, names)

    def rows() -> Iterator[Row]:
        row_number = itertools.count(1)
        for batch in batches:
            with arrow.clear_errors(path):
                values = batch.to_pylist()
            for row in values:
                yield f"{path} (row {next(row_number)})", row

    yield from _packed(rows(), column, batch_size, on_bad)


def _decoded(stream: IO[Any], name: str, on_bad: OnBad) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(read_lines(stream, name), 1):
        if number == 1:
            refuse_other_files(raw, name)
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            column = len(raw[: error.start].decode()) + 1
            problem = SourceError(f"{name}:{number}:{column}: the byte {raw[error.start]:#x} is not UTF-8")
            if number == 1:  # without a header nothing after it makes sense
                raise problem from None
            on_bad(problem)
        else:
            yield number, line.removeprefix("\ufeff") if number == 1 else line


def _rows(
    records: Iterator[tuple[int, list[str]]], name: str, column: str | None, on_bad: OnBad
) -> Iterator[Row]:
    _, header = next(records, (1, []))
    wanted = column or DEFAULT_COLUMN
    trees = [field for field in map(str.strip, header) if field.startswith("(") and field.endswith(")")]
    if trees and wanted not in header:
        shown = trees[0] if len(trees[0]) <= 40 else trees[0][:39] + "…"
        raise SourceError(
            f"{name}:1: the first line must name the columns, but holds a tree, {shown}: put a line with "
            f"names before it, {wanted!r} for the trees (for lines that are trees and nothing else, set the "
            "format 'brackets')"
        )
    if header and wanted not in header:
        raise _no_column(f"{name}:1", wanted, header)
    if len(set(header)) != len(header):
        raise SourceError(f"{name}:1: a column name occurs twice in the header {header}")
    for number, fields in records:
        if fields == [""]:
            continue  # a blank line
        if len(fields) == len(header):
            yield f"{name}:{number}", dict(zip(header, fields, strict=True))
        else:
            on_bad(SourceError(f"{name}:{number}: {len(fields)} fields under {len(header)} column names"))


def _no_column(place: str, wanted: str, names: Iterable[str]) -> SourceError:
    return SourceError(
        f"{place}: there is no column {wanted!r}; choose one of {', '.join(map(repr, names))} "
        "with column=… (on the command line --column)"
    )


def _packed(rows: Iterator[Row], column: str | None, batch_size: int, on_bad: OnBad) -> Iterator[Forest]:
    wanted = column or DEFAULT_COLUMN
    first = True
    while batch := list(itertools.islice(rows, batch_size)):
        if first and wanted not in batch[0][1]:  # of JSON lines: all rows of the others have the same columns
            raise _no_column(batch[0][0], wanted, batch[0][1])
        first = False
        places = [f"{place}, column {wanted!r}" for place, _ in batch]
        forest, good = read_items([row.get(wanted) for _, row in batch], places, on_bad)
        names = dict.fromkeys(key for _, row in batch for key in row if key != wanted)
        forest.columns.update({key: [batch[i][1].get(key) for i in good] for key in names})
        if len(forest):
            yield forest
