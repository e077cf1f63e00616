"""What is made of trees: vectors, or predictions. All that it needs is kept in the folder of the parts."""

from __future__ import annotations

import copy
import json
import os
import shutil
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
from treedot.readers import read_trees
from treedot.trees import Forest
from treedot.vectors.parts import vector_columns, vector_metadata
from treedot.vectors.writers import describe

VECTORIZER, MODEL = "_vectorizer", "_model"
MODEL_KEY = b"treedot.model"


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

    def columns(self, forest: Forest) -> dict[str, Any]:
        """Return what is made of some trees as columns of Arrow, by one thread."""


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
        return cls(DistributedTreeVectorizer._of_spec(spec))

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

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """What parts say of how they were made."""
        width = self._vectorizer.transform(read_trees(["(A b)"])).shape[1]
        return vector_metadata(self._spec, self._fingerprint, width)

    def columns(self, forest: Forest) -> dict[str, Any]:
        """Return what is made of some trees as columns of Arrow."""
        return vector_columns(self._vectorizer.transform(forest))


class Prediction:
    """Trees to classes, by a model, and to scores where they are wanted."""

    def __init__(self, model: str | os.PathLike[str], scores: bool) -> None:
        self._folder, self._scores = Path(model), scores
        self._model = LinearModel.load(model)
        if self._model.reads.are_named:
            raise ParameterError(
                f"{model} is a model of named columns, and parts are made of single trees: predict file by "
                "file"
            )
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

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """What parts say of how they were made."""
        return {MODEL_KEY: json.dumps(self.description).encode()}

    def columns(self, forest: Forest) -> dict[str, Any]:
        """Return what is made of some trees as columns of Arrow."""
        from treedot.trees.arrow import pa

        scores = self._model.decision_function(forest, n_jobs=1)
        made = {"predicted": pa.array(self._model.best(scores).tolist(), self._type())}
        if self._scores:
            width = 1 if self._model.classes.size == 2 else self._model.classes.size
            made["scores"] = pa.FixedSizeListArray.from_arrays(pa.array(scores.reshape(-1)), width)
        return made

    def _type(self) -> Any:
        from treedot.trees.arrow import pa

        return pa.array(self._model.classes.tolist()).type
