"""The work of ``predict``: trees, or rows of a table with trees, to classes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treedot._storage.described_folder import CONFIG, WEIGHTS
from treedot._storage.files import read_plain, write_whole
from treedot.batch.work import SMALL_TREE, Columns, Source, Work, taken
from treedot.errors import ParameterError, SourceError
from treedot.models.inputs.table import Table, read_table, readable_rows
from treedot.models.linear_model import LinearModel
from treedot.readers import read_trees
from treedot.readers.ranges import Reading, checked_reading
from treedot.trees import Forest

MODEL = "_model"


class Prediction(Work):
    """Predicts classes or numbers, and optionally scores, of trees or of rows of a table with trees."""

    key = b"treedot.model"

    def __init__(self, model: str | os.PathLike[str], scores: bool) -> None:
        self._folder, self._scores = Path(model), scores
        self._model = LinearModel.load(model)
        if scores and self._model.classes is None:
            raise ParameterError(f"{model} predicts numbers, which have no scores: leave out scores")
        self._reads = self._model.reads
        self._digest = str(json.loads(read_plain(self._folder / CONFIG))["digest"])

    def reading(self, asked: Reading) -> Reading:
        """Return the settings for reading; with named columns, the first column of trees is read."""
        if not self._reads.are_named:
            return asked
        if checked_reading(asked).column is not None:
            named = ", ".join(map(str, self._reads.trees))
            raise ParameterError(f"the model reads trees from the columns {named}: remove column")
        return asked._replace(column=self._reads.trees[0])

    @property
    def description(self) -> dict[str, Any]:
        """Everything that determines a row, as JSON values."""
        return {"task": "predict", "fingerprint": self._digest, "scores": self._scores}

    def save(self, folder: Path) -> None:
        """Copy the model file by file, each atomically: other processes may be doing the same."""
        (folder / MODEL).mkdir(exist_ok=True)
        for name in (CONFIG, WEIGHTS):
            with write_whole(folder / MODEL / name) as aside:
                shutil.copyfile(self._folder / name, aside)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns of trees other than the first."""
        return tuple(map(str, self._reads.trees[1:]))

    def batches(self, source: Source) -> Iterator[tuple[Columns, Columns]]:
        """Yield the classes of a shard as Arrow columns, and the other columns of its input."""
        for forest, others in self._rows(source):
            yield self._predicted(self._table(forest, others, source.n_trees)), others

    def _rows(self, source: Source) -> Iterator[tuple[Forest, Columns]]:
        """Yield the rows of a shard; if bad trees are skipped, parse the trees of all columns first."""
        start = source.range
        where = f"{source.path} after line {start.lines}" if start.lines else source.path
        for forest, others in source.pieces():
            first = start.rows + source.n_trees
            good = readable_rows(others, self._reads, len(forest), source.on_bad, where, first)
            if good.size < len(forest):
                yield forest[good], {name: taken(values, good) for name, values in others.items()}
            else:
                yield forest, others

    def _predicted(self, table: Table) -> Columns:
        from treedot.trees.arrow import pa

        scores, classes = self._model.scores(table, n_jobs=1), self._model.classes
        if classes is None:
            return {"predicted": pa.array(scores)}
        kind = pa.array(classes.tolist()).type
        made = {"predicted": pa.array(self._model.best(scores).tolist(), kind)}
        if self._scores:
            width = 1 if classes.size == 2 else classes.size
            made["scores"] = pa.FixedSizeListArray.from_arrays(pa.array(scores.reshape(-1)), width)
        return made

    def _table(self, forest: Forest, others: Columns, first_row: int) -> Table:
        if not self._reads.are_named:
            return read_table(forest, self._reads)
        if not len(forest):  # then the others are empty, too
            others = dict.fromkeys([*self.left_out, *self._reads.numbers, *self._reads.texts], ())
        try:
            return read_table({**others, self._reads.trees[0]: forest}, self._reads, first_row)
        except ParameterError as error:
            raise SourceError(f"{error} (row 1 is the first of the shard)") from None

    def warm_up(self) -> None:
        """Load and compile the code that ``batches`` uses."""
        trees, numbers, texts = self.left_out, self._reads.numbers, self._reads.texts
        others = (
            dict.fromkeys(trees, (SMALL_TREE,)) | dict.fromkeys(numbers, (0,)) | dict.fromkeys(texts, ("",))
        )
        self._predicted(self._table(read_trees([SMALL_TREE]), others, 0))
