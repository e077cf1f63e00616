"""Read tables with a column of trees: TSV, CSV, JSON lines, Parquet and Arrow."""

from __future__ import annotations

import csv
import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any

from treedot._pages.printable import first_few
from treedot._storage.files import MAX_LINE
from treedot.errors import SourceError
from treedot.readers.objects import read_items
from treedot.readers.on_bad import OnBad
from treedot.readers.stream import TreeStream
from treedot.trees import Forest
from treedot.trees.columns import rows_to_columns

DEFAULT_COLUMN = "tree"
NO_QUOTES = (
    "a field seems quoted, but TSV has no quoting: save the table as .csv, or without quotes (in pandas, "
    "quoting=csv.QUOTE_NONE)"
)
MAX_CELLS = 1 << 20  # cells of a batch; if each row has its own columns, most cells are empty
VECTORS_KEY = b"treedot.spec"  # key in the metadata of a Parquet file of vectors

Row = tuple[int, dict[str, Any]]  # the line or row number, and the values by column


def read_tsv(
    stream: TreeStream, column: str = DEFAULT_COLUMN, numbers: Iterable[int] | None = None
) -> Iterator[Forest]:
    """Tab-separated values under a header line, without quoting: no field contains a tab or newline.

    ``numbers`` are the line numbers, if the stream is not a whole file.
    """

    def rows(stream: TreeStream) -> Iterator[Row]:
        records = ((number, line.split("\t")) for number, line in decoded(stream, numbers))
        return _rows(records, stream, column, quotes=False)

    return packed(stream, rows, column)


def read_csv(stream: TreeStream, column: str = DEFAULT_COLUMN) -> Iterator[Forest]:
    """Comma-separated values under a header line, with the usual quoting."""

    def records(stream: TreeStream) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader((line + "\n" for _, line in decoded(stream)), strict=True)
        while True:
            try:
                fields = next(reader, None)
            except csv.Error as error:
                stream.report(reader.line_num, str(error))
                continue
            if fields is None:
                return
            if fields:
                yield reader.line_num, fields

    def rows(stream: TreeStream) -> Iterator[Row]:
        return _rows(records(stream), stream, column, quotes=True)

    return packed(stream, rows, column, _FIELD_LIMIT)


class _FieldLimit:
    """Raises the csv module's field limit, which all threads share, while any of them reads records."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reading = 0
        self._usual = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._reading == 0:
                self._usual = csv.field_size_limit(MAX_LINE)  # a tree may be longer than 128 KiB
            self._reading += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._reading -= 1
            if self._reading == 0:
                csv.field_size_limit(self._usual)


_FIELD_LIMIT = _FieldLimit()


def read_jsonl(
    stream: TreeStream, column: str = DEFAULT_COLUMN, numbers: Iterable[int] | None = None
) -> Iterator[Forest]:
    """One JSON object per line; the tree is bracket text or nested lists ``[label, child, …]``.

    ``numbers`` are the line numbers, if the stream is not a whole file.
    """

    def rows(stream: TreeStream) -> Iterator[Row]:
        for number, line in decoded(stream, numbers, has_header=False):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                stream.report(number, f"this line is not JSON ({error})")
                continue
            if not isinstance(row, dict):
                stream.report(number, f"expected a JSON object, found {type(row).__name__}")
            elif column not in row:
                stream.on_bad(_no_column(f"{stream.name}:{number}", column, row))
            else:
                yield number, row

    return packed(stream, rows, column)


def read_parquet(
    stream: TreeStream, column: str | None = None, unpack_large: bool = False, kind: str = "parquet"
) -> Iterator[Forest]:
    """Yield the trees of a packed forest, or of a text column of a table, in Parquet or Arrow."""
    from treedot.trees import arrow

    path = stream.name
    for forest, columns in read_record_batches(
        path, kind, column, stream.batch_size, stream.on_bad, unpack_large=unpack_large
    ):
        with arrow.clear_errors(path):
            forest.columns.update({name: values.to_pylist() for name, values in columns.items()})
        yield forest


read_arrow = partial(read_parquet, kind="arrow")


def read_record_batches(
    path: str,
    kind: str,
    column: str | None,
    batch_size: int,
    on_bad: OnBad,
    row_groups: range | None = None,
    rows_before: int = 0,
    unpack_large: bool = False,
) -> Iterator[tuple[Forest, dict[str, Any]]]:
    """Yield the trees of Parquet or Arrow in batches, with the other columns as Arrow arrays.

    ``row_groups`` (in Arrow, record batches) are read, by default all; ``rows_before`` is the number of rows
    before them.
    """
    from treedot.trees import arrow  # reports how to install pyarrow if it is missing

    with arrow.clear_errors(path):
        schema, batches = arrow.open_batches(path, kind, batch_size, row_groups, unpack_large)
        names, metadata = schema.names, schema.metadata or {}
        layout = arrow.layout_of(schema) if column is None else None
    wanted = column or DEFAULT_COLUMN
    if layout is None and wanted not in names:
        if VECTORS_KEY in metadata:
            raise SourceError(f"{path} contains vectors, not trees: load it with load_vectors")
        raise _no_column(path, wanted, names)
    taken = layout or (wanted,)
    for batch in batches:
        if layout is not None:
            forest = arrow.forest_of(batch, layout, path)
            good = list(range(len(forest)))
        else:
            with arrow.clear_errors(path):
                cells = batch.column(wanted).to_pylist()
            forest, good = read_items(cells, partial(_row_place, path, wanted, rows_before), on_bad)
        rows_before += batch.num_rows
        with arrow.clear_errors(path):
            if len(good) < batch.num_rows:
                batch = batch.take(arrow.pa.array(good, arrow.pa.int64()))
            columns = {name: batch.column(name) for name in names if name not in taken}
        if len(forest):
            yield forest, columns


def _row_place(path: str, column: str, rows_before: int, row: int) -> str:
    return f"{path} (row {rows_before + row + 1}), column {column!r}"


def decoded(
    stream: TreeStream, numbers: Iterable[int] | None = None, *, has_header: bool = True
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a stream as texts, with their numbers; lines that are not UTF-8 are errors."""
    for number, raw in stream.lines(numbers):
        try:
            yield number, raw.decode()
        except UnicodeDecodeError as error:
            column = len(raw[: error.start].decode()) + 1
            problem = f"the byte {raw[error.start]:#x} is not UTF-8"
            if has_header and number == 1:  # without a header, the other lines cannot be read
                raise SourceError(f"{stream.name}:1:{column}: {problem}") from None
            stream.on_bad(SourceError(f"{stream.name}:{number}:{column}: {problem}"))


def _rows(
    records: Iterator[tuple[int, list[str]]], stream: TreeStream, wanted: str, *, quotes: bool
) -> Iterator[Row]:
    """Yield records as rows, named by the first record; without ``quotes``, quotes have no meaning."""

    def misread(fields: list[str]) -> bool:
        return not quotes and any(field.startswith('"') or field.endswith('"') for field in fields)

    _, header = next(records, (1, []))
    trees = [field for field in map(str.strip, header) if field.startswith("(") and field.endswith(")")]
    if trees and wanted not in header:
        shown = trees[0] if len(trees[0]) <= 40 else trees[0][:39] + "…"
        raise stream.error(
            1,
            f"the first line must name the columns, but contains a tree, {shown}: put a line with "
            f"names before it, {wanted!r} for the trees (if every line is just a tree, set the "
            "format 'brackets')",
        )
    if header and wanted not in header:
        if misread([field for field in header if field.strip('"') == wanted]):
            raise stream.error(1, NO_QUOTES)
        raise _no_column(f"{stream.name}:1", wanted, header)
    if len(set(header)) != len(header):
        twice = Counter(header).most_common(1)[0][0]
        raise stream.error(1, f"the column name {twice!r:.60} occurs twice in the header")
    for number, fields in records:
        if fields == [""]:
            continue  # a blank line
        if len(fields) != len(header):
            counts = f"{len(fields)} fields under {len(header)} column names"
            hint = f" ({NO_QUOTES})" if misread(fields) else ""
            stream.report(number, f"{counts}{hint}")
            continue
        row = dict(zip(header, fields, strict=True))
        if not quotes and row[wanted].startswith('"'):  # a tree begins with a bracket
            stream.on_bad(SourceError(f"{stream.name}:{number}, column {wanted!r}: {NO_QUOTES}"))
        else:
            yield number, row


class NoColumnError(SourceError):
    """A table has no column of the given name."""


def _no_column(place: str, wanted: str, names: Collection[str]) -> SourceError:
    return NoColumnError(
        f"{place}: there is no column {wanted!r}; choose one of {first_few(names)} with column=…"
    )


class _FirstProblem(Exception):  # noqa: N818 (it ends reading, and nobody else sees it)
    """A row is bad, and bad rows are not skipped."""


def packed(
    stream: TreeStream,
    open_rows: Callable[[TreeStream], Iterator[Row]],
    wanted: str,
    while_reading: AbstractContextManager[object] | None = None,
) -> Iterator[Forest]:
    """Read the trees of rows; errors of rows and of trees go to ``on_bad`` in table order.

    ``while_reading`` is entered to read the rows of each batch, and left before any tree is passed on. A
    batch with many columns has fewer rows.
    """
    on_bad = stream.on_bad
    batch: list[Row] = []
    problems: list[tuple[int, SourceError]] = []  # each with the number of good rows before it

    def note(error: SourceError) -> None:
        problems.append((len(batch), error))
        if not on_bad.skips:
            raise _FirstProblem

    rows = open_rows(stream._replace(on_bad=OnBad(note)))

    def place_of(i: int) -> str:
        return f"{stream.name}:{batch[i][0]}, column {wanted!r}"

    while True:
        with while_reading or nullcontext(), suppress(_FirstProblem):
            names: dict[str, None] = {}
            for row in rows:
                batch.append(row)
                if not names.keys() >= row[1].keys():
                    names |= dict.fromkeys(row[1])
                if len(batch) == stream.batch_size or len(batch) * len(names) >= MAX_CELLS:
                    break
        if not (batch or problems):
            return
        values = [row for _, row in batch]
        errors: list[SourceError] = []
        on_bad_tree = OnBad(errors.append) if on_bad.skips else on_bad
        forest, good = read_items([row.get(wanted) for row in values], place_of, on_bad_tree)
        if errors:
            bad = sorted(set(range(len(batch))).difference(good))
            problems.extend(zip(bad, errors, strict=True))
        for _, error in sorted(problems, key=lambda problem: problem[0]):
            on_bad(error)
        others = [name for name in names if name != wanted]
        forest.columns.update(rows_to_columns([values[i] for i in good], others))
        batch, problems = [], []
        if len(forest):
            yield forest
