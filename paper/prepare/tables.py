"""The tables that are written: tab-separated, compressed, whole or not at all."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paper.corpora import COUNTS
from treedot._storage.files import write_whole
from treedot.errors import SourceError

ROWS = {
    **COUNTS,
    "qc_train_dep": 5452,
    "qc_test_dep": 500,
    "sst_train": 8544,
    "sst_dev": 1101,
    "sst_test": 2210,
    "ptb_sample": 3914,
    "questionbank": 4000,
    "craft": 30830,
    "gum_permissive": 4636,
    "glycans": 20976,
    "rna_archive2": 3856,
    "bcb_functions": 6515,
    "bcb_pairs": 64035,
}  # of the tables that the figures in the documentation are of


class Table(NamedTuple):
    """A table by name: the names of its columns, and its rows."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def write_tables(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write each table to ``NAME.tsv.gz``; return the paths."""
    texts = [_text(table) for table in tables]  # all are sound before the first is written
    paths = [folder / f"{table.name}.tsv.gz" for table in tables]
    for path, text in zip(paths, texts, strict=True):
        with write_whole(path) as aside:
            aside.write_bytes(gzip.compress(text.encode(), mtime=0))
    return paths


def _text(table: Table) -> str:
    if not table.rows:
        raise SourceError(f"the download has no rows for {table.name}")
    lines = [table.columns, *([str(cell) for cell in row] for row in table.rows)]
    for line in lines:
        if len(line) != len(table.columns) or any(set("\t\n\r") & set(cell) for cell in line):
            raise SourceError(f"{table.name}: a field with a tab or a line break, in the row {line[0]!r}")
    return "".join("\t".join(line) + "\n" for line in lines)
