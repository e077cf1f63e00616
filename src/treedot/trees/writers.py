"""Write files of trees batch by batch: brackets, Newick, KeLP, SVM-LIGHT-TK, Parquet and Arrow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from treedot._storage.files import write_whole
from treedot.errors import ParameterError
from treedot.trees.forest import Forest
from treedot.trees.text_formats import kelp_line, newick_text, svmlight_line

BRACKETS = (".mrg", ".txt", ".brackets")
NEWICK = (".nwk", ".newick")
EXAMPLES = {".klp": kelp_line, ".svmlight": svmlight_line}  # suffixes of formats with columns
TABLES = (".parquet", ".arrow", ".feather")
TREES_AT_A_TIME = 4096
NODES_AT_A_TIME = 1 << 20
CELLS_AT_A_TIME = 1 << 20  # values of columns


class ForestWriter(Protocol):
    """A writer of trees to a file."""

    def write(self, forest: Forest) -> None:
        """Append trees."""


@contextlib.contextmanager
def forest_file(path: str | os.PathLike[str]) -> Iterator[ForestWriter]:
    """Yield a writer for a file of trees, which appears only on success.

    ``.mrg``, ``.txt``, ``.brackets``, ``.nwk`` and ``.newick`` files have one tree per line, without columns.
    ``.parquet``, ``.arrow`` and ``.feather`` files include the columns; ``.klp`` and ``.svmlight`` files
    include those that KeLP and SVM-LIGHT-TK support. Only a few trees are in memory at a time.
    """
    suffix = check_suffix(path)
    with write_whole(path) as aside:
        if suffix not in TABLES:
            with aside.open("w", encoding="utf-8", newline="\n") as file:
                yield _Lines(file, suffix)
            return
        table = _Table(aside, os.fspath(path))
        try:
            yield table
            table.flush()
        finally:
            table.close()


def check_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file of trees; raise if no format has this suffix."""
    suffix = Path(path).suffix.lower()
    every = (*BRACKETS, *NEWICK, *EXAMPLES, *TABLES)
    if suffix not in every:
        known = ", ".join(every)
        raise ParameterError(f"unknown format of {path}: use one of {known}")
    return suffix


class _Lines:
    """Writes one tree per line, with its columns if the format supports them."""

    def __init__(self, file: IO[str], suffix: str) -> None:
        self._file, self._example = file, EXAMPLES.get(suffix)
        self._text_of = newick_text if suffix in NEWICK else str

    def write(self, forest: Forest) -> None:
        for k, tree in enumerate(forest):
            if self._example is None:
                text = self._text_of(tree)
            else:
                text = self._example(tree, {name: values[k] for name, values in forest.columns.items()})
            self._file.write(text + "\n")


class _Table:
    """Collects trees for larger batches; the first batch determines the columns and their types."""

    def __init__(self, aside: Path, name: str) -> None:
        self._aside, self._name = aside, name
        self._waiting: list[Forest] = []
        self._schema: Any = None
        self._file: Any = None

    def write(self, forest: Forest) -> None:
        self._waiting.append(forest)
        trees = sum(map(len, self._waiting))
        nodes = sum(part.n_nodes for part in self._waiting)
        cells = sum(len(part) * len(part.columns) for part in self._waiting)
        if trees >= TREES_AT_A_TIME or nodes >= NODES_AT_A_TIME or cells >= CELLS_AT_A_TIME:
            self.flush()

    def flush(self) -> None:
        """Write the collected trees."""
        from treedot.trees.arrow import clear_errors, typed_table

        if not self._waiting and self._file is not None:
            return
        forest = Forest.concat(self._waiting)
        self._waiting = []
        with clear_errors(self._name):
            table = typed_table(forest, self._schema)
            if self._file is None:
                self._schema, self._file = table.schema, self._open(table.schema)
            self._file.write_table(table)

    def _open(self, schema: Any) -> Any:
        from treedot.trees.arrow import pa

        if self._name.lower().endswith(".parquet"):
            return pa.parquet.ParquetWriter(self._aside, schema)
        return pa.ipc.new_file(str(self._aside), schema)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
