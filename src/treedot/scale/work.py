"""What is made of trees: vectors, or predictions. All that it needs is kept in the folder of the parts."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from treedot.encode.spec import DenseSpec, spec_from_dict
from treedot.errors import ParameterError, SourceError
from treedot.files import write_whole
from treedot.learn import DistributedTreeVectorizer, FragmentVectorizer
from treedot.model import LinearModel
from treedot.model.model_folder import CONFIG, WEIGHTS
from treedot.model.table import Table, read_table
from treedot.readers import read_trees
from treedot.readers.ranges import Reading
from treedot.trees import Forest
from treedot.vectors.parts import vector_columns, vector_metadata
from treedot.vectors.writers import describe

VECTORIZER, MODEL = "_vectorizer", "_model"
MODEL_KEY = b"treedot.model"
SMALL_TREE = "(S (A a) (B b c))"


class Work(Protocol):
    """What is made of trees."""

    @property
    def description(self) -> dict[str, Any]:
        """All that determines a row, as JSON values."""

    def save(self, folder: Path) -> None:
        """Put into a folder what the description does not hold."""

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """What parts say of how they were made."""

    @property
    def row_bytes(self) -> int:
        """How much memory each row takes at least, whatever its tree."""

    @property
    def tree_columns(self) -> tuple[str, ...]:
        """The columns beside the first one that hold trees, and so do not come along."""

    def columns(self, forest: Forest, others: Mapping[str, Any], first_row: int) -> dict[str, Any]:
        """Return what is made of some trees, and of the columns beside them, as Arrow, by one thread.

        ``first_row`` is how many rows of the shard went before.
        """

    def warm_up(self) -> None:
        """Load and compile what ``columns`` needs."""


def load_work(folder: Path, description: dict[str, Any]) -> Work:
    """Return the work that was saved in a folder."""
    work: Work
    match description.get("task"):
        case "encode":
            work = Encoding.load(folder, description)
        case "predict":
            work = Prediction(folder / MODEL, scores=bool(description["scores"]))
        case other:
            raise SourceError(f"{folder} is of a work that this treedot does not know: {other!r}")
    if work.description != description:
        raise SourceError(f"{folder} is damaged: what it was made with is not what its plan says")
    return work


class Encoding:
    """Trees to vectors."""

    def __init__(self, vectorizer: Any) -> None:
        if not isinstance(vectorizer, (FragmentVectorizer, DistributedTreeVectorizer)):
            raise ParameterError(
                "vectorizer must be a FragmentVectorizer or a DistributedTreeVectorizer, not "
                f"{type(vectorizer).__name__}"
            )
        self._vectorizer = copy.copy(vectorizer)
        self._vectorizer.n_jobs = 1  # there is a process for every core
        self._spec = vectorizer.spec
        self._fingerprint = getattr(vectorizer, "fingerprint", self._spec.fingerprint)

    @classmethod
    def load(cls, folder: Path, description: dict[str, Any]) -> Encoding:
        """Return what ``save`` put into a folder."""
        vectors = {name: x for name, x in description["vectors"].items() if name != "learned"}
        spec = spec_from_dict(vectors)
        if not isinstance(spec, DenseSpec):
            return cls(FragmentVectorizer.load(folder / VECTORIZER))
        return cls(
            DistributedTreeVectorizer(
                n_components=spec.n_components,
                decay=spec.decay,
                composition=spec.composition,
                random_state=spec.seed,
                normalize=spec.normalize,
                dtype=spec.dtype,
            )
        )

    @property
    def description(self) -> dict[str, Any]:
        """All that determines a row, as JSON values."""
        vectors = describe(self._spec, self._fingerprint)
        return {"task": "encode", "fingerprint": self._fingerprint, "vectors": vectors}

    def save(self, folder: Path) -> None:
        """Put into a folder what the vectorizer has learned."""
        if isinstance(self._vectorizer, FragmentVectorizer):
            self._vectorizer.save(folder / VECTORIZER)

    @property
    def row_bytes(self) -> int:
        """How much memory each row takes at least, whatever its tree."""
        dense = self._spec.n_components if isinstance(self._spec, DenseSpec) else 2 * self._spec.rest_width
        return int(dense * np.dtype(self._spec.dtype).itemsize)

    tree_columns = ()

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """What parts say of how they were made."""
        width = self._vectorizer.transform(read_trees(["(A b)"])).shape[1]
        return vector_metadata(self._spec, self._fingerprint, width)

    def columns(self, forest: Forest, others: Mapping[str, Any], first_row: int) -> dict[str, Any]:
        """Return the vectors of some trees as columns of Arrow."""
        return vector_columns(self._vectorizer.transform(forest))

    def warm_up(self) -> None:
        """Load and compile what ``columns`` needs."""
        self.columns(read_trees([SMALL_TREE]), {}, 0)


class Prediction:
    """Trees, or rows of a table with trees, to classes, by a model, and to scores where they are wanted."""

    def __init__(self, model: str | os.PathLike[str], scores: bool) -> None:
        self._folder, self._scores = Path(model), scores
        self._model = LinearModel.load(model)
        self._reads = self._model.reads
        self._digest = str(json.loads((self._folder / CONFIG).read_bytes())["digest"])

    @property
    def description(self) -> dict[str, Any]:
        """All that determines a row, as JSON values."""
        return {"task": "predict", "fingerprint": self._digest, "scores": self._scores}

    def save(self, folder: Path) -> None:
        """Copy the model, file by file and whole: other processes may be doing the same."""
        (folder / MODEL).mkdir(exist_ok=True)
        for name in (CONFIG, WEIGHTS):
            with write_whole(folder / MODEL / name) as aside:
                shutil.copyfile(self._folder / name, aside)

    row_bytes = 0

    def reading(self, asked: Reading) -> Reading:
        """Return how the first column of trees is read, where the model has named columns."""
        if not self._reads.are_named:
            return asked
        if asked.column is not None:
            named = ", ".join(map(str, self._reads.trees))
            raise ParameterError(f"the model reads trees from the columns {named}: leave out column")
        return asked._replace(column=self._reads.trees[0])

    @property
    def tree_columns(self) -> tuple[str, ...]:
        """The columns beside the first one that hold trees, and so do not come along."""
        return tuple(map(str, self._reads.trees[1:]))

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """What parts say of how they were made."""
        return {MODEL_KEY: json.dumps(self.description).encode()}

    def columns(self, forest: Forest, others: Mapping[str, Any], first_row: int) -> dict[str, Any]:
        """Return the classes of some trees, or of rows of a table, as columns of Arrow."""
        from treedot.trees.arrow import pa

        scores = self._model.scores(self._table(forest, others, first_row), n_jobs=1)
        made = {"predicted": pa.array(self._model.best(scores).tolist(), self._type())}
        if self._scores:
            width = 1 if self._model.classes.size == 2 else self._model.classes.size
            made["scores"] = pa.FixedSizeListArray.from_arrays(pa.array(scores.reshape(-1)), width)
        return made

    def _table(self, forest: Forest, others: Mapping[str, Any], first_row: int) -> Table:
        if not self._reads.are_named:
            return read_table(forest, self._reads)
        if not len(forest):  # then there are no others either
            others = dict.fromkeys([*self.tree_columns, *self._reads.numbers, *self._reads.texts], ())
        try:
            return read_table({**others, self._reads.trees[0]: forest}, self._reads, first_row)
        except ParameterError as error:
            raise SourceError(f"{error} (row 1 is where the shard begins)") from None

    def warm_up(self) -> None:
        """Load and compile what ``columns`` needs."""
        values = {SMALL_TREE: self.tree_columns, 0: self._reads.numbers, "": self._reads.texts}
        others = {name: [value] for value, names in values.items() for name in names}
        self.columns(read_trees([SMALL_TREE]), others, 0)

    def _type(self) -> Any:
        from treedot.trees.arrow import pa

        return pa.array(self._model.classes.tolist()).type
