"""Forest in, dense vectors on a GPU out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from treedot.array_types import IntArray, Matrix
from treedot.encode.chunks import check_forest, forest_chunks
from treedot.encode.dense.mixed import MixedEncoder
from treedot.encode.spec import DenseSpec
from treedot.errors import DeviceError, ParameterError, RangeError
from treedot.gpu.device import Kernel, compiled, open_device
from treedot.gpu.labels import LabelSigns
from treedot.gpu.operations import ROOT_TAG, TAG_FIRST, TAG_NEXT, Operations, list_operations
from treedot.threads import Threads, one_ahead, open_threads
from treedot.trees import Forest

CHUNK_NODES = 1 << 20  # whose operations are listed and sent at a time
TAG_BYTES = 1 << 33  # for the vectors of pre-terminals, at most; and a quarter of the memory
THREADS = 1024  # on a multiprocessor, with 64 registers each
RESERVED = 2048  # bytes of a block's shared memory that are not for rows
MOST_VECTORS = 1 << 18  # that are on the GPU at a time where only their products are asked for
MOST_ELEMENTS = 16 * THREADS
ELEMENTS = 512  # that the size of a vector is a multiple of: sixteen for each thread of a warp


class Way(NamedTuple):
    """A way to encode trees that need at most so many rows."""

    rows: int
    blocks: int  # on a multiprocessor
    in_global: bool  # whether rows lie in global memory


class Group(NamedTuple):
    """Trees that are encoded in one way."""

    way: Way
    large: bool  # whether their elements may outgrow their type
    rows: int
    trees: Any


class Sent(NamedTuple):
    """Operations on the GPU; those on pre-terminals say which of some pairs of labels it is."""

    words: Any
    offsets: Any
    pairs: Any
    groups: list[Group]

    def tensors(self) -> list[Any]:
        """Return everything that is in the GPU's memory."""
        return [self.words, self.offsets, self.pairs, *(group.trees for group in self.groups)]


class GpuEncoder:
    """Turns forests into matrices on a GPU: the vectors of ``DenseEncoder``, but for rounding.

    No element differs by more than about 1e-6 of the largest.

    Parameters
    ----------
    spec : DenseSpec
        What a vector depends on besides its tree: with ``composition="mixed"`` and ``dtype="float32"``, and
        ``n_components`` a multiple of 512 up to 16384.
    device : str
        "cuda", or "cuda:1" for the second one.

    Examples
    --------
    >>> from treedot import read_trees
    >>> from treedot.encode import DenseSpec
    >>> forest = read_trees(["(S (NP Ann) (VP runs))", "(S (NP Bob) (VP runs))"])
    >>> GpuEncoder(DenseSpec()).encode(forest).shape  # doctest: +SKIP
    torch.Size([2, 8192])
    """

    def __init__(self, spec: DenseSpec, device: str = "cuda") -> None:
        _check(spec)
        self.spec, self.device = spec, open_device(device)
        import torch

        algebra: Any = spec.algebra()
        mixed = MixedEncoder(algebra)
        self._defined = {"D": algebra.size, "ROTATION1": mixed.m1.rotation, "ROTATION2": mixed.m2.rotation}
        self._labels = LabelSigns(mixed, self.device, self._kernel)
        self._tag_bytes = 4 * algebra.size + algebra.size // 8
        self._root_decay = torch.tensor([spec.decay**0.5], dtype=torch.float32, device=self.device)
        self._too_large = torch.zeros(1, dtype=torch.int32, device=self.device)
        self._prepare_on = torch.cuda.Stream(self.device)
        self._memory = [torch.empty(0, dtype=torch.int32) for _ in range(3)]
        self._properties = torch.cuda.get_device_properties(self.device)
        self._ways = ways(self._properties, algebra.size)

    def encode(self, forest: Forest, out: Any = None, n_jobs: int | None = -1) -> Any:
        """Return the vectors of all trees, one row each, as a tensor on the GPU.

        Parameters
        ----------
        forest : Forest
            The trees.
        out : tensor of shape (number of trees, n_components), optional
            Where to write the vectors: contiguous, of type float32, on the same device.
        n_jobs : int, optional
            Threads of this machine that prepare the work; -1 for all cores.
        """
        import torch

        check_forest(forest)
        shape = (len(forest), self.spec.n_components)
        if out is None:
            out = torch.empty(shape, dtype=torch.float32, device=self.device)
        elif (out.shape, out.dtype, out.device) != (shape, torch.float32, self.device):
            raise DeviceError(f"out must be a float32 tensor of shape {shape} on {self.device}")
        elif not out.is_contiguous():
            raise DeviceError("out must be contiguous")
        with torch.cuda.device(self.device), open_threads(n_jobs, len(forest)) as threads:
            if len(forest.labels) <= self._labels.capacity:
                self._encode_section(forest, out, 0, threads)
            else:
                for first, last in forest_chunks(forest, len(forest), self._labels.capacity):
                    self._encode_section(forest[first:last], out[first:last], first, threads)
        return out

    def transform(self, forest: Forest, out: Matrix | None = None, n_jobs: int | None = -1) -> Matrix:
        """Return the vectors of all trees as an array of this machine's memory."""
        shape = (len(forest), self.spec.n_components)
        if out is None:
            out = np.empty(shape, np.float32)
        elif out.shape != shape or out.dtype != np.float32:
            raise ParameterError(f"out must be a float32 array of shape {shape}")
        for first, last, vectors in self._in_parts(forest, n_jobs):
            out[first:last] = vectors.cpu().numpy()
        return out

    def scores(self, forest: Forest, weights: Any, n_jobs: int | None = -1) -> Matrix:
        """Return the dot products of all trees' vectors with rows of weights, as an array of this machine.

        Vectors stay on the GPU, and only some of them are there at a time.

        Parameters
        ----------
        weights : tensor or array of shape (rows, n_components)
            Of float32.
        """
        import torch

        weights = torch.as_tensor(weights, dtype=torch.float32, device=self.device)
        scores = torch.empty((len(forest), len(weights)), dtype=torch.float32, device=self.device)
        for first, last, vectors in self._in_parts(forest, n_jobs):
            torch.mm(vectors, weights.T, out=scores[first:last])
        return scores.cpu().numpy()

    def _in_parts(self, forest: Forest, n_jobs: int | None) -> Iterator[tuple[int, int, Any]]:
        """Yield the vectors of some trees at a time, as many as a quarter of the free memory holds."""
        import torch

        check_forest(forest)
        free = torch.cuda.mem_get_info(self.device)[0]
        most = max(1, min(MOST_VECTORS, free // 4 // (4 * self.spec.n_components)))
        vectors = torch.empty((min(most, len(forest)), self.spec.n_components), device=self.device)
        for first, last in forest_chunks(forest, most, max(1, forest.n_nodes)):
            part = forest if last - first == len(forest) else forest[first:last]
            yield first, last, self.encode(part, vectors[: last - first], n_jobs)

    def _encode_section(self, forest: Forest, out: Any, before: int, threads: Threads) -> None:
        """Encode trees whose labels fit the table: operations are prepared while others are being done."""
        import torch

        row = self._labels.rows(forest.labels, threads)
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
                parts = list(self.send(operations))
            run_on.wait_stream(self._prepare_on)
            for start, stop, sent in parts:
                for tensor in sent.tensors():
                    tensor.record_stream(run_on)
                self.run(sent, out[first + start : first + stop])
            if not self.spec.normalize:
                self._require_range(before + first)

    def _next_memory(self, count: int) -> IntArray:
        """Return memory that the GPU reads quickly: not that of the last two calls, which may be in use."""
        import torch

        self._memory.append(self._memory.pop(0))
        if self._memory[0].numel() < 4 * count:
            self._memory[0] = torch.empty(4 * count, dtype=torch.int32, pin_memory=True)
        memory: IntArray = self._memory[0].numpy()[: 4 * count].reshape(count, 4)
        return memory

    def send(self, operations: Operations) -> Iterator[tuple[int, int, Sent]]:
        """Send the operations of trees to the GPU; yield the limits of parts of the trees, and what was sent.

        It is one part, except where it holds more different pre-terminals than there is memory for.
        """
        import torch

        words = torch.from_numpy(operations.words).to(self.device, non_blocking=True)
        kind = words[:, 0] & 255
        (at,) = ((kind == TAG_FIRST) | (kind == TAG_NEXT) | (kind == ROOT_TAG)).nonzero(as_tuple=True)
        pairs, number = torch.unique((words[at, 2].long() << 32) | words[at, 3], return_inverse=True)
        free = min(TAG_BYTES, torch.cuda.mem_get_info(self.device)[0] // 4)
        n_trees = len(operations.rows)
        if len(pairs) * self._tag_bytes > free and n_trees > 1:
            half = n_trees // 2
            for first, last in ((0, half), (half, n_trees)):
                for start, stop, sent in self.send(operations.part(first, last)):
                    yield first + start, first + stop, sent
            return
        words[at, 2] = number.int()
        offsets = torch.from_numpy(operations.offsets).to(self.device)
        sent_pairs = torch.stack([pairs >> 32, pairs & 0xFFFFFFFF], dim=1)
        yield 0, n_trees, Sent(words, offsets, sent_pairs, self._groups(operations))

    def _groups(self, operations: Operations) -> list[Group]:
        """Return which trees are encoded in which way."""
        import torch

        groups, above = [], 0
        for way in self._ways:
            fitting = (operations.rows >= above) & (operations.rows <= way.rows)
            above = way.rows + 1
            for large in (False, True):
                (trees,) = (fitting & (operations.large == large)).nonzero()
                if trees.size:
                    rows = int(operations.rows[trees].max()) if way.in_global else way.rows
                    sent = torch.from_numpy(trees.astype(np.int32)).to(self.device)
                    groups.append(Group(way, large, rows, sent))
        return groups

    def run(self, sent: Sent, out: Any) -> None:
        """Do operations that were sent, and write the vectors of their trees."""
        tags = self._make_tags(sent.pairs)
        for group in sent.groups:
            self._run_group(group, sent, tags, out)

    def _run_group(self, group: Group, sent: Sent, tags: tuple[Any, Any], out: Any) -> None:
        import torch

        size, labels, way, n_trees = self.spec.n_components, self._labels, group.way, len(group.trees)
        blocks = min(n_trees, way.blocks * self._properties.multi_processor_count)
        kernel = self._kernel(
            "encode", BLOCKS=way.blocks, ROWS_IN_GLOBAL=int(way.in_global), RESCALED=int(group.large)
        )
        row_bytes = 4 * size * group.rows
        global_rows = torch.empty(
            blocks * row_bytes if way.in_global else 0, dtype=torch.uint8, device=self.device
        )
        arguments = [
            sent.words, sent.offsets, group.trees, n_trees,
            torch.zeros(1, dtype=torch.int32, device=self.device), labels.signs, *tags,
            labels.target1, labels.target2, labels.sign2, global_rows, group.rows,
            self._root_decay, int(self.spec.normalize), out, self._too_large,
        ]  # fmt: skip
        kernel((blocks, 1), size // 16, arguments, 0 if way.in_global else row_bytes)

    def _make_tags(self, pairs: Any) -> tuple[Any, Any]:
        """Return the vectors of pre-terminals, as children, and their signs."""
        import torch

        size, labels = self.spec.n_components, self._labels
        tags = torch.empty((len(pairs), size), dtype=torch.float32, device=self.device)
        signs = torch.empty((len(pairs), size // 16), dtype=torch.int16, device=self.device)
        if len(pairs):
            arguments = [
                pairs, labels.head, labels.child, labels.signs, labels.target1, labels.target2, labels.sign2,
                self._root_decay, tags, signs,
            ]  # fmt: skip
            self._kernel("make_tags")((len(pairs), 1), size // 16, arguments, 4 * size)
        return tags, signs

    def _kernel(self, name: str, BLOCKS: int = 1, ROWS_IN_GLOBAL: int = 0, RESCALED: int = 0) -> Kernel:
        return compiled(
            "mixed.cu", name, self.device.index,
            BLOCKS=BLOCKS, ROWS_IN_GLOBAL=ROWS_IN_GLOBAL, RESCALED=RESCALED, **self._defined,
        )  # fmt: skip

    def _require_range(self, first: int) -> None:
        tree = int(self._too_large)
        if tree:
            self._too_large.zero_()
            raise RangeError(
                f"the vector of tree {first + tree} is too large for float32 with decay={self.spec.decay}: "
                "use normalize=True or a smaller decay"
            )


def ways(properties: Any, size: int) -> list[Way]:
    """Return the ways to encode trees on a device, those for few rows first.

    Many blocks at a time hide each other's waiting, but share the memory for rows.
    """
    row_bytes, most_blocks = 4 * size, max(1, 16 * THREADS // size)
    here = int(properties.shared_memory_per_multiprocessor)
    at_most = int(getattr(properties, "shared_memory_per_block_optin", 48 * 1024))
    found: list[Way] = []
    for blocks in (most_blocks, 1):
        rows = min(here // blocks, at_most) // row_bytes
        while rows and rows * row_bytes + RESERVED > min(here // blocks, at_most + RESERVED):
            rows -= 1
        if rows > (found[-1].rows if found else 0):
            found.append(Way(rows, blocks, False))
    return [*found, Way(255, 1, True)]


def _check(spec: DenseSpec) -> None:
    if spec.composition != "mixed":
        raise DeviceError(f"vectors with composition={spec.composition!r} are made by device='cpu' only")
    if spec.dtype != "float32":
        raise DeviceError(f"a GPU makes float32 vectors: {spec.dtype} ones are made by device='cpu' only")
    if spec.n_components % ELEMENTS or not 0 < spec.n_components <= MOST_ELEMENTS:
        raise DeviceError(
            f"a GPU makes vectors of a multiple of {ELEMENTS} elements up to {MOST_ELEMENTS}, "
            f"not of {spec.n_components}: use device='cpu'"
        )
