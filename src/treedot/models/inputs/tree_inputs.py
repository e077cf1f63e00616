"""A column of trees as an input of a model: rows of fragments, dense vectors, or exact kernels."""

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
NOT_STORED = ("max_pairs", "algorithm")  # parameters of kernels that change no value


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
        """How many columns the rows have."""
        return self._encoder.n_columns

    def transform(self, table: Table, n_jobs: int | None = None) -> csr_matrix:
        """Return one row for each tree."""
        return encode_rows(self._encoder, table[self.column], n_jobs)

    def config(self) -> dict[str, Any]:
        """Return the settings of the rows."""
        return {"column": self.column, "rows": self.rows.settings, "fingerprint": self.rows.fingerprint}

    def arrays(self) -> dict[str, Array]:
        """Return the columns and weights that were learned."""
        return self.rows.arrays

    @classmethod
    def restored(cls, config: Mapping[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the stored input."""
        settings = entry(config, "rows", dict)
        rows = FittedRows.from_stored(settings, arrays)
        if fingerprint_of(settings, arrays) != config.get("fingerprint"):
            raise SourceError("an input of fragments does not hold what its fingerprint names")
        if arrays.keys() != rows.arrays.keys():
            raise SourceError("an input of fragments has arrays that its settings have no use for")
        return cls(stored_column(config), rows)


@dataclass(frozen=True, eq=False)
class DenseInput(StoredInput):
    """Trees as dense vectors, distributed trees."""

    kind = "dense"
    is_dense = True

    column: str | None
    spec: DenseSpec
    similarity: WordVectors | None = None  # that the spec names
    device: str = "cpu"  # where vectors are made: no part of what is stored

    def __getstate__(self) -> dict[str, Any]:
        """Return its fields alone, for copies and pickles: encoders hold locks, and are made anew."""
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
        """How many dimensions the vectors have."""
        return self.spec.n_components

    def transform(self, table: Table, n_jobs: int | None = None) -> Matrix:
        """Return one vector for each tree."""
        if self.device != "cpu":
            return self._on_gpu.transform(table[self.column], n_jobs=n_jobs)
        return self._encoder.encode(table[self.column], n_jobs=n_jobs)

    def scores(self, table: Table, columns: IntArray, weights: Array, n_jobs: int | None) -> FloatArray:
        """Return w · x of every example; on a GPU, vectors do not leave it."""
        if self.device == "cpu":
            return super().scores(table, columns, weights, n_jobs)
        return self._on_gpu.scores(table[self.column], weights.T, n_jobs).astype(np.float64)

    def config(self) -> dict[str, Any]:
        """Return the settings of the vectors."""
        settings = self.spec.to_dict() | {"fingerprint": self.spec.fingerprint}
        return {"column": self.column, "vectors": settings}

    def arrays(self) -> dict[str, Array]:
        """Return the vectors of words, if vectors depend on them."""
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
            raise SourceError("an input of dense vectors has other word vectors than those it names")
        return cls(column, spec, words)


@dataclass(frozen=True, eq=False)
class KernelInput(StoredInput):
    """Trees as the exact kernels with some trees, the support vectors of a model."""

    kind = "kernel"
    is_dense = True

    column: str | None
    kernel: TreeKernel
    trees: Forest

    @property
    def width(self) -> int:
        """How many support vectors there are."""
        return len(self.trees)

    @property
    def learns(self) -> bool:
        """Whether rows depend on other examples: they are compared with these."""
        return True

    def fitted(
        self,
        table: Table,
        y: Array | None = None,
        n_jobs: int | None = None,
        sample_weight: FloatArray | None = None,
    ) -> tuple[Self, FloatArray]:
        """Return the input that compares with some examples, and their Gram matrix."""
        made = type(self)(self.column, self.kernel, table[self.column])
        return made, self.kernel.gram(made.trees, n_jobs=n_jobs)

    def transform(self, table: Table, n_jobs: int | None = None) -> FloatArray:
        """Return the kernels of each tree with all support vectors."""
        return self.kernel.gram(table[self.column], self.trees, n_jobs=n_jobs)

    def config(self) -> dict[str, Any]:
        """Return the kernel and its parameters."""
        name = type(self.kernel).__name__
        if name not in KERNELS:
            raise ParameterError(f"a model can be kept with {', '.join(KERNELS)}, but not with {name}")
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
            raise SourceError(f"its kernel is none of {', '.join(KERNELS)}")
        if any(name in NOT_STORED for name in parameters):
            raise SourceError(f"its kernel has parameters that are not kept: {', '.join(NOT_STORED)}")
        try:
            made = kernel(**parameters)
        except TypeError as error:
            raise SourceError(f"its kernel has parameters that it does not take: {error}") from None
        return cls(stored_column(config), made, unpack(arrays))
