"""Encode a forest as dense vectors on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock
from typing import Any

import numpy as np

from treedot._runtime.array_types import BoolArray, IntArray, Matrix
from treedot._runtime.threads import Threads, one_ahead, open_threads
from treedot.errors import DeviceError, ParameterError, RangeError
from treedot.trees import Forest
from treedot.vectors.chunks import check_forest, forest_chunks
from treedot.vectors.dense.encoder import DenseEncoder
from treedot.vectors.gpu.device import Gpu, clear_memory_errors
from treedot.vectors.gpu.mixed import THREADS, MixedOnGpu
from treedot.vectors.gpu.operations import Operations, list_operations
from treedot.vectors.gpu.product import MOST_CHILDREN, ProductOnGpu
from treedot.vectors.spec import DenseSpec

CHUNK_NODES = 1 << 20  # nodes whose operations are listed and sent at a time
MOST_VECTORS = 1 << 18  # most vectors on the GPU at a time, unless the caller wants all there
MOST_ELEMENTS = 16 * THREADS
ELEMENTS = 512  # vector sizes are multiples of this: sixteen for each thread of a warp


class GpuEncoder:
    """Turns forests into matrices on a GPU: the vectors of ``DenseEncoder``, apart from rounding.

    For sentences and functions, elements differ by up to 2e-6 of the largest, with ``"product"`` by up to
    5e-6. In larger trees rounding errors add up, on both devices. With ``"product"``, the processor encodes
    trees that have nodes of more than 32 children.

    Parameters
    ----------
    spec : DenseSpec
        The settings of the vectors: ``composition`` must be "mixed" or "product", ``dtype`` "float32", and
        ``n_components`` a multiple of 512 up to 16384.
    device : str, default="cuda"
        "cuda", or "cuda:1" for the second GPU.

    Examples
    --------
    >>> from treedot import read_trees
    >>> from treedot.vectors import DenseSpec
    >>> forest = read_trees(["(S (NP Ann) (VP runs))", "(S (NP Bob) (VP runs))"])
    >>> GpuEncoder(DenseSpec()).encode(forest).shape  # doctest: +SKIP
    torch.Size([2, 8192])
    """

    def __init__(self, spec: DenseSpec, device: str = "cuda") -> None:
        check_supported(spec)
        self.spec, self._gpu = spec, Gpu(device, spec.decay)
        import torch

        algebra: Any = spec.algebra()
        made: Any = MixedOnGpu if spec.composition == "mixed" else ProductOnGpu
        self._composition = made(algebra, self._gpu)
        self._prepare_on = torch.cuda.Stream(self.device, priority=-1)  # is served first
        self._lock = RLock()  # all calls share label tables and working memory
        self._memory = [torch.empty(0, dtype=torch.int32) for _ in range(3)]

    @property
    def nbytes(self) -> int:
        """The GPU memory of the labels met so far."""
        return sum(table.numel() * table.element_size() for table in self._composition.labels.tables)

    @property
    def device(self) -> Any:
        """The device of all tensors."""
        return self._gpu.device

    def encode(self, forest: Forest, out: Any = None, n_jobs: int | None = -1) -> Any:
        """Return the vectors of all trees, one row each, as a tensor on the GPU.

        Parameters
        ----------
        forest : Forest
            The trees.
        out : tensor of shape (number of trees, n_components), default=None
            Where to write the vectors: contiguous, of type float32, on the same device.
        n_jobs : int, default=-1
            Threads of this machine that prepare the work; -1 for all cores.

        Returns
        -------
        tensor of shape (n_trees, n_components)
            The vectors; ``out`` if it is given.
        """
        import torch

        check_forest(forest)
        shape = (len(forest), self.spec.n_components)
        if out is None:
            with clear_memory_errors(self.device, f"{len(forest):,} vectors"):
                out = torch.empty(shape, dtype=torch.float32, device=self.device)
        elif (out.shape, out.dtype, out.device) != (shape, torch.float32, self.device):
            raise DeviceError(f"out must be a float32 tensor of shape {shape} on {self.device}")
        elif not out.is_contiguous():
            raise DeviceError("out must be contiguous")
        self._encode(forest, out, np.arange(1, len(forest) + 1), n_jobs)
        self._require_finite(out)
        return out

    def _encode(self, forest: Forest, out: Any, numbers: IntArray, n_jobs: int | None) -> None:
        """Write the vectors of trees to ``out``; errors name the trees by ``numbers``."""
        import torch

        if self.spec.composition != "product" or not (wide := wide_trees(forest)).any():
            self._encode_here(forest, out, n_jobs)
            return
        by_processor, here = wide.nonzero()[0], (~wide).nonzero()[0]
        vectors = _encode_on_processor(self.spec, forest[by_processor], numbers[by_processor], n_jobs)
        out[wide] = self._gpu.sent(vectors)
        with clear_memory_errors(self.device, f"{here.size:,} vectors"):
            shape = (here.size, self.spec.n_components)
            others = torch.empty(shape, dtype=torch.float32, device=self.device)
        self._encode_here(forest[here], others, n_jobs)
        out[~wide] = others

    def _encode_here(self, forest: Forest, out: Any, n_jobs: int | None) -> None:
        """Write the vectors of trees on the GPU, in one Python thread at a time."""
        import torch

        with (
            self._lock,
            clear_memory_errors(self.device, f"{len(forest):,} trees"),
            torch.cuda.device(self.device),
            open_threads(n_jobs, len(forest)) as threads,
        ):
            if len(forest.labels) <= self._composition.labels.capacity:
                self._encode_section(forest, out, threads)
            else:
                for first, last in forest_chunks(forest, len(forest), self._composition.labels.capacity):
                    self._encode_section(forest[first:last], out[first:last], threads)

    def transform(self, forest: Forest, out: Matrix | None = None, n_jobs: int | None = -1) -> Matrix:
        """Return the vectors of all trees as a NumPy array.

        Parameters
        ----------
        forest : Forest
            The trees.
        out : array of float32 of shape (n_trees, n_components), default=None
            Where to write the vectors.
        n_jobs : int, default=-1
            Threads of this machine that prepare the work; -1 for all cores.

        Returns
        -------
        array of shape (n_trees, n_components)
            The vectors; ``out`` if it is given.
        """
        shape = (len(forest), self.spec.n_components)
        if out is None:
            out = np.empty(shape, np.float32)
        elif out.shape != shape or out.dtype != np.float32:
            raise ParameterError(f"out must be a float32 array of shape {shape}")
        for first, last, vectors in self._in_parts(forest, n_jobs):
            out[first:last] = vectors.cpu().numpy()
            self._require_finite(vectors, first)
        return out

    def scores(self, forest: Forest, weights: Any, n_jobs: int | None = -1) -> Matrix:
        """Return the dot products of all trees' vectors with rows of weights as a NumPy array.

        The vectors stay on the GPU, which holds only some of them at a time.

        Parameters
        ----------
        forest : Forest
            The trees.
        weights : tensor or array of float32 of shape (rows, n_components)
            The weights.
        n_jobs : int, default=-1
            Threads of this machine that prepare the work; -1 for all cores.

        Returns
        -------
        array of shape (n_trees, rows)
            The dot products.
        """
        import torch

        if isinstance(weights, np.ndarray):
            weights = weights.copy()  # those of a model are read-only, which PyTorch warns of
        weights = torch.as_tensor(weights, dtype=torch.float32, device=self.device)
        if weights.ndim != 2 or weights.shape[1] != self.spec.n_components:
            wanted = f"(rows, {self.spec.n_components})"
            raise ParameterError(f"weights must be of shape {wanted}, not {tuple(weights.shape)}")
        scores = torch.empty((len(weights), len(forest)), dtype=torch.float32, device=self.device)
        for first, last, vectors in self._in_parts(forest, n_jobs):
            scores[:, first:last] = weights @ vectors.T  # faster than vectors @ weights.T
        self._require_finite(scores.T)  # at the end, so that parts do not wait for each other
        return np.ascontiguousarray(scores.cpu().numpy().T)

    def _in_parts(self, forest: Forest, n_jobs: int | None) -> Iterator[tuple[int, int, Any]]:
        """Yield limits and vectors of parts of the trees that fit into a quarter of the free memory."""
        import torch

        check_forest(forest)
        free = torch.cuda.mem_get_info(self.device)[0]
        most = max(1, min(MOST_VECTORS, free // 4 // (4 * self.spec.n_components)))
        vectors = torch.empty((min(most, len(forest)), self.spec.n_components), device=self.device)
        for first, last in forest_chunks(forest, most, max(1, forest.n_nodes)):
            part = forest if last - first == len(forest) else forest[first:last]
            self._encode(part, vectors[: last - first], np.arange(first + 1, last + 1), n_jobs)
            yield first, last, vectors[: last - first]

    def _encode_section(self, forest: Forest, out: Any, threads: Threads) -> None:
        """Encode trees whose labels fit into the table; prepare operations while the GPU runs others."""
        import torch

        row = self._composition.labels.rows(forest.labels, threads)
        root_decay = self.spec.decay**0.5
        run_on = torch.cuda.current_stream()
        self._prepare_on.wait_stream(run_on)

        def list_chunk(first: int, last: int) -> Operations:
            offsets = forest.offsets[first : last + 1]
            return list_operations(
                forest.arity, offsets, forest.label, row, root_decay, threads, self._next_memory
            )

        chunks = list(forest_chunks(forest, len(forest), CHUNK_NODES))
        for (first, _), operations in zip(chunks, one_ahead(list_chunk, chunks), strict=True):
            with torch.cuda.stream(self._prepare_on):
                parts = list(self._composition.send(operations))
            self._prepare_on.synchronize()  # the memory of operations is soon reused
            run_on.wait_stream(self._prepare_on)
            for start, stop, sent in parts:
                for tensor in sent.tensors():
                    tensor.record_stream(run_on)
                self._composition.run(sent, self.spec.normalize, out[first + start : first + stop])

    def _next_memory(self, count: int) -> IntArray:
        """Return pinned memory for ``count`` operations, not used by the last two calls."""
        import torch

        self._memory.append(self._memory.pop(0))
        if self._memory[0].numel() < 4 * count:
            self._memory[0] = torch.empty(4 * count, dtype=torch.int32, pin_memory=True)
        memory: IntArray = self._memory[0].numpy()[: 4 * count].reshape(count, 4)
        return memory

    def _require_finite(self, rows: Any, before: int = 0) -> None:
        """Raise if the GPU found a vector that is not finite.

        Parameters
        ----------
        rows : tensor
            The vectors, or values computed from them, one row per tree.
        before : int
            The number of trees before the first row.
        """
        if not int(self._gpu.not_finite):
            return
        self._gpu.not_finite.zero_()
        for row in (~rows.isfinite()).any(dim=1).nonzero()[:1, 0].tolist():
            raise _refused(self.spec, before + row + 1)


def _refused(spec: DenseSpec, number: int) -> RangeError:
    """Return the error for a vector that is not finite; without normalisation it is too large."""
    wrong, use = "too large for float32", "normalize=True or a smaller decay"
    if spec.normalize:
        wrong = "not finite in float32"
        use = "device='cpu' or a smaller decay; this is a bug, please report the tree"
    return RangeError(f"the vector of tree {number} is {wrong} with decay={spec.decay}: use {use}")


def _encode_on_processor(spec: DenseSpec, forest: Forest, numbers: IntArray, n_jobs: int | None) -> Matrix:
    """Return the vectors of trees, made by the processor; errors name the trees by ``numbers``."""
    encoder = DenseEncoder(spec)
    try:
        return encoder.encode(forest, n_jobs=n_jobs)
    except RangeError:
        for k, number in enumerate(numbers.tolist()):
            try:
                encoder.encode(forest[[k]])
            except RangeError:
                raise _refused(spec, number) from None
        raise


def wide_trees(forest: Forest) -> BoolArray:
    """Return which trees have nodes with more children than the product supports on a GPU."""
    if not len(forest):
        return np.zeros(0, bool)
    wide: BoolArray = np.maximum.reduceat(forest.arity, forest.offsets[:-1]) > MOST_CHILDREN
    return wide


def check_supported(spec: DenseSpec) -> None:
    """Raise DeviceError if a GPU cannot make vectors with these settings."""
    if spec.kernel != "subset":
        raise DeviceError(f"kernel={spec.kernel!r} needs device='cpu'")
    if spec.composition not in ("mixed", "product"):
        raise DeviceError(f"composition={spec.composition!r} needs device='cpu'")
    if spec.dtype != "float32":
        raise DeviceError(f"dtype={spec.dtype!r} needs device='cpu'")
    if spec.n_components % ELEMENTS or not 0 < spec.n_components <= MOST_ELEMENTS:
        raise DeviceError(
            f"on a GPU, n_components must be a multiple of {ELEMENTS} up to {MOST_ELEMENTS}, "
            f"not {spec.n_components}: use device='cpu'"
        )
