"""A tree column as an input of a model: rows of fragments, dense vectors, or exact kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray, Matrix
from treedot.errors import ParameterError, SourceError
from treedot.kernels import (
    BoundedTreeKernel,
    PartialTreeKernel,
    RouteKernel,
    SubsetTreeKernel,
    SubtreeKernel,
)
from treedot.kernels.tree_kernel import TreeKernel
from treedot.kernels.word_vectors import WordVectors
from treedot.models.inputs.model_input import StoredInput, check_arrays, entry, stored_column
from treedot.models.inputs.table import Table
from treedot.trees import Forest
from treedot.trees.packed import FOREST, pack, unpack
from treedot.vectors.dense.encoder import DenseEncoder
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.sparse.fitted_rows import FittedRows, encode_rows, fingerprint_of
from treedot.vectors.spec import DenseSpec

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from treedot.vectors.gpu.encoder import GpuEncoder

KERNELS: dict[str, type[TreeKernel]] = {
    kernel.__name__: kernel
    for kernel in (SubsetTreeKernel, SubtreeKernel, BoundedTreeKernel, PartialTreeKernel, RouteKernel)
}
NOT_STORED = ("max_pairs", "algorithm")  # kernel parameters that do not affect values


@dataclass(frozen=True, eq=False)
class FragmentInput(StoredInput):
    """Trees as sparse rows of their fragments."""

    kind = "fragments"
    is_dense = False

    column: str | None
    rows: FittedRows

    @cached_property
    def _encoder(self) -> SparseEncoder:
        return self.rows.make_encoder()

    @property
    def width(self) -> int:
        """The number of columns of the rows."""
        return self._encoder.n_columns

    def transform(self, table: Table, n_jobs: int | None = None) -> csr_matrix:
        """Return one row for each tree."""
        return encode_rows(self._encoder, table[self.column], n_jobs)

    def config(self) -> dict[str, Any]:
        """Return the settings of the rows."""
        return {"column": self.column, "rows": self.rows.settings, "fingerprint": self.rows.fingerprint}

    def arrays(self) -> dict[str, Array]:
        """Return the learned columns and weights."""
        return self.rows.arrays

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the stored input."""
        settings = entry(config, "rows", dict)
        rows = FittedRows.from_stored(settings, arrays)
        if fingerprint_of(settings, arrays) != config.get("fingerprint"):
            raise SourceError("an input of fragments does not match its fingerprint")
        if arrays.keys() != rows.arrays.keys():
            raise SourceError("an input of fragments has arrays that its settings do not use")
        return cls(stored_column(config), rows)


@dataclass(frozen=True, eq=False)
class DenseInput(StoredInput):
    """Trees as dense vectors (distributed trees)."""

    kind = "dense"
    is_dense = True

    column: str | None
    spec: DenseSpec
    similarity: WordVectors | None = None  # the word vectors that the spec names
    device: str = "cpu"  # where vectors are computed; it is not stored

    def __getstate__(self) -> dict[str, Any]:
        """Return only the fields: cached encoders hold locks, which cannot be copied or pickled."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _encoder(self) -> DenseEncoder:
        return DenseEncoder(self.spec, self.similarity)

    @cached_property
    def _on_gpu(self) -> GpuEncoder:
        from treedot.vectors.gpu.encoder import GpuEncoder

        return GpuEncoder(self.spec, self.device)

    @property
    def width(self) -> int:
        """The number of dimensions of the vectors."""
        return self.spec.n_components

    def transform(self, table: Table, n_jobs: int | None = None) -> Matrix:
        """Return one vector for each tree."""
        if self.device != "cpu":
            return self._on_gpu.transform(table[self.column], n_jobs=n_jobs)
        return self._encoder.encode(table[self.column], n_jobs=n_jobs)

    def scores(self, table: Table, columns: IntArray, weights: Array, n_jobs: int | None) -> FloatArray:
        """Return w · x for every example; vectors on a GPU stay there."""
        if self.device == "cpu":
            return super().scores(table, columns, weights, n_jobs)
        return self._on_gpu.scores(table[self.column], weights.T, n_jobs).astype(np.float64)

    def config(self) -> dict[str, Any]:
        """Return the settings of the vectors."""
        settings = self.spec.to_dict() | {"fingerprint": self.spec.fingerprint}
        return {"column": self.column, "vectors": settings}

    def arrays(self) -> dict[str, Array]:
        """Return the word vectors, if the spec names any."""
        return {} if self.similarity is None else self.similarity.arrays()

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the stored input."""
        column, spec = stored_column(config), DenseSpec.from_dict(entry(config, "vectors", dict))
        if spec.similarity is None:
            check_arrays(arrays, {})
            return cls(column, spec)
        words = WordVectors.from_arrays(arrays)
        if words.fingerprint != spec.similarity:
            raise SourceError("the word vectors of an input of dense vectors do not match their fingerprint")
        return cls(column, spec, words)


@dataclass(frozen=True, eq=False)
class KernelInput(StoredInput):
    """Trees as their exact kernels with the support vectors of the model."""

    kind = "kernel"
    is_dense = True

    column: str | None
    kernel: TreeKernel
    trees: Forest

    @property
    def width(self) -> int:
        """The number of support vectors."""
        return len(self.trees)

    @property
    def learns(self) -> bool:
        """True: rows depend on the training examples, with which they are compared."""
        return True

    def fitted(
        self,
        table: Table,
        y: Array | None = None,
        n_jobs: int | None = None,
        sample_weight: FloatArray | None = None,
    ) -> tuple[Self, FloatArray]:
        """Return an input that compares with these examples, and their Gram matrix."""
        made = type(self)(self.column, self.kernel, table[self.column])
        return made, self.kernel.gram(made.trees, n_jobs=n_jobs)

    def transform(self, table: Table, n_jobs: int | None = None) -> FloatArray:
        """Return the kernels of each tree with all support vectors."""
        return self.kernel.gram(table[self.column], self.trees, n_jobs=n_jobs)

    def config(self) -> dict[str, Any]:
        """Return the kernel and its parameters."""
        name = type(self.kernel).__name__
        if name not in KERNELS:
            raise ParameterError(f"cannot store a model with a {name}: use one of {', '.join(KERNELS)}")
        settings = {k: v for k, v in self.kernel.get_params().items() if k not in NOT_STORED}
        return {"column": self.column, "kernel": name, "parameters": settings}

    def arrays(self) -> dict[str, Array]:
        """Return the support vectors, packed."""
        return pack(self.trees)

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the stored input."""
        check_arrays(arrays, FOREST)
        kernel, parameters = KERNELS.get(entry(config, "kernel", str)), entry(config, "parameters", dict)
        if kernel is None:
            raise SourceError(f"an input has an unknown kernel; the known kernels are {', '.join(KERNELS)}")
        if any(name in NOT_STORED for name in parameters):
            raise SourceError(f"a kernel has parameters that are never stored: {', '.join(NOT_STORED)}")
        try:
            made = kernel(**parameters)
        except TypeError as error:
            raise SourceError(f"a kernel has unknown parameters: {error}") from None
        return cls(stored_column(config), made, unpack(arrays))
