"""The work of ``encode``: trees to vectors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.batch.work import SMALL_TREE, Columns, Source, Work
from treedot.errors import ParameterError, SourceError
from treedot.kernels.word_vectors import WordVectors
from treedot.readers import read_trees
from treedot.trees import Forest
from treedot.vectors.dense.encoding import DenseEncoding
from treedot.vectors.parts import vector_metadata
from treedot.vectors.sparse.fitted_rows import FittedRows
from treedot.vectors.spec import DenseSpec, spec_from_dict
from treedot.vectors.writers import describe, vector_columns

VECTORIZER = "_vectorizer"


class Encoding(Work):
    """Trees to vectors."""

    def __init__(self, encoding: FittedRows | DenseEncoding) -> None:
        if isinstance(encoding, FittedRows):  # with one thread, since there is one process per core already
            encoding = encoding._replace(parameters={**(encoding.parameters or {}), "n_jobs": 1})
        elif encoding.device != "cpu":
            raise ParameterError("parts are encoded on the CPU: remove device, or use GpuEncoder")
        self._encoding = encoding
        self._spec = encoding.spec
        self.fingerprint = (encoding if isinstance(encoding, FittedRows) else encoding.spec).fingerprint

    @classmethod
    def of(cls, vectorizer: Any) -> Encoding:
        """Return the work of a vectorizer, or of what it encodes with."""
        if isinstance(vectorizer, (FittedRows, DenseEncoding)):
            return cls(vectorizer)
        from treedot.vectors import DistributedTreeVectorizer, FragmentVectorizer  # needs scikit-learn

        if isinstance(vectorizer, FragmentVectorizer):
            return cls(vectorizer._rows())
        if isinstance(vectorizer, DistributedTreeVectorizer):
            return cls(vectorizer._encoding)
        raise ParameterError(
            "vectorizer must be a FragmentVectorizer or a DistributedTreeVectorizer, not "
            f"{type(vectorizer).__name__}"
        )

    @classmethod
    def load(cls, folder: Path, vectors: dict[str, Any]) -> Encoding:
        """Load the encoding that ``save`` wrote to a folder; ``vectors`` describes it."""
        spec = spec_from_dict({name: x for name, x in vectors.items() if name != "learned"})
        if not isinstance(spec, DenseSpec):
            return cls(FittedRows.load(folder / VECTORIZER))
        words = None if spec.similarity is None else _kept_words(folder / VECTORIZER, spec.similarity)
        return cls(DenseEncoding(spec, words))

    @property
    def vectors(self) -> dict[str, Any]:
        """The settings of the vectors, as JSON values."""
        return describe(self._spec, self.fingerprint)

    @property
    def description(self) -> dict[str, Any]:
        """Everything that determines a row, as JSON values."""
        return {"task": "encode", "fingerprint": self.fingerprint, "vectors": self.vectors}

    def save(self, folder: Path) -> None:
        """Write the fitted state of the vectorizer, or its word vectors, to a folder."""
        if isinstance(self._encoding, FittedRows):
            self._encoding.save(folder / VECTORIZER)
        elif self._encoding.words is not None:
            write_arrays(folder / VECTORIZER, {}, self._encoding.words.arrays())

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of parts: the settings of the vectors."""
        width = self.transform(read_trees([SMALL_TREE])).shape[1]
        return vector_metadata(self._spec, self.fingerprint, width)

    def transform(self, forest: Forest) -> Any:
        """Return the vectors of some trees."""
        return self._encoding.transform(forest, 1)

    @property
    def row_bytes(self) -> int:
        """The least memory per row, in bytes, whatever its tree."""
        dense = self._spec.n_components if isinstance(self._spec, DenseSpec) else 2 * self._spec.rest_width
        return int(dense * np.dtype(self._spec.dtype).itemsize)

    def batches(self, source: Source) -> Iterator[tuple[Columns, Columns]]:
        """Yield the vectors of a shard as Arrow columns, and the other columns of its input."""
        for forest, others in source.pieces(self.row_bytes):
            yield vector_columns(self.transform(forest)), others

    def warm_up(self) -> None:
        """Load and compile the code that ``batches`` uses."""
        self.transform(read_trees([SMALL_TREE]))


def _kept_words(path: Path, fingerprint: str) -> WordVectors:
    """Return the word vectors of a folder; raise if they do not have the expected fingerprint."""
    arrays = read_arrays(path)[1]
    try:
        words = WordVectors.from_arrays(arrays)
    except SourceError as error:
        raise SourceError(f"{path} is damaged: {error}") from None
    if words.fingerprint != fingerprint:
        raise SourceError(f"{path} is damaged: its word vectors do not match the folder's fingerprint")
    return words
