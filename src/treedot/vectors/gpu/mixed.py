"""The mixed product on a GPU: see ``mixed.cu`` and ``treedot.vectors.dense.mixed``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, IntArray, SignWords
from treedot._runtime.simd import LANES
from treedot._runtime.threads import Threads
from treedot.vectors.dense.compositions import MixedProduct
from treedot.vectors.dense.mixed import MixedEncoder
from treedot.vectors.gpu.device import Gpu, Kernel, shared_bytes
from treedot.vectors.gpu.labels import LabelTables
from treedot.vectors.gpu.operations import ROOT_TAG, TAG_FIRST, TAG_NEXT, Operations

TAG_BYTES = 1 << 33  # the limit of the vectors of pre-terminals, which is also a quarter of the free memory
THREADS = 1024  # on a multiprocessor, with 64 registers each
STATIC = 1536  # bytes of a block's shared memory that are not for rows; mixed.cu uses up to 1412
OF_SYSTEM = 1024  # further bytes that each block on a multiprocessor takes
TREES = 2  # trees that a block encodes before it ends, so that other streams can run


class Way(NamedTuple):
    """A way to encode trees that need at most ``rows`` rows."""

    rows: int
    blocks: int  # on a multiprocessor
    in_global: bool  # whether rows are in global memory


class Group(NamedTuple):
    """Trees that are encoded in the same way."""

    way: Way
    large: bool  # whether their elements may overflow float32
    rows: int
    trees: Any


class Sent(NamedTuple):
    """Operations on the GPU; those on pre-terminals contain the index of a pair of labels in ``pairs``."""

    words: Any
    offsets: Any
    pairs: Any
    groups: list[Group]

    def tensors(self) -> list[Any]:
        """Return all tensors, which are in the GPU's memory."""
        return [self.words, self.offsets, self.pairs, *(group.trees for group in self.groups)]


class MixedOnGpu:
    """Encodes trees with the mixed product."""

    def __init__(self, algebra: MixedProduct, gpu: Gpu) -> None:
        mixed = MixedEncoder(algebra)
        self._gpu, self._size = gpu, algebra.size
        self._defined = {"D": algebra.size, "ROTATION1": mixed.m1.rotation, "ROTATION2": mixed.m2.rotation}
        self._tag_bytes = 4 * algebra.size + algebra.size // 8
        self._ways = ways(gpu.properties, algebra.size)
        self.labels = LabelSigns(mixed, gpu, self._kernel("lay_labels"))

    def send(self, operations: Operations) -> Iterator[tuple[int, int, Sent]]:
        """Send the operations of trees to the GPU; yield the limits of parts of the trees, and the tensors.

        There is one part, unless the distinct pre-terminals do not fit into the memory.
        """
        import torch

        words = torch.from_numpy(operations.words).to(self._gpu.device, non_blocking=True)
        kind = words[:, 0] & 255
        (at,) = ((kind == TAG_FIRST) | (kind == TAG_NEXT) | (kind == ROOT_TAG)).nonzero(as_tuple=True)
        pairs, number = torch.unique((words[at, 2].long() << 32) | words[at, 3], return_inverse=True)
        free = min(TAG_BYTES, torch.cuda.mem_get_info(self._gpu.device)[0] // 4)
        n_trees = len(operations.rows)
        if len(pairs) * self._tag_bytes > free and n_trees > 1:
            half = n_trees // 2
            for first, last in ((0, half), (half, n_trees)):
                for start, stop, sent in self.send(operations.part(first, last)):
                    yield first + start, first + stop, sent
            return
        words[at, 2] = number.int()
        offsets = torch.from_numpy(operations.offsets).to(self._gpu.device)
        sent_pairs = torch.stack([pairs >> 32, pairs & 0xFFFFFFFF], dim=1)
        yield 0, n_trees, Sent(words, offsets, sent_pairs, self._groups(operations))

    def _groups(self, operations: Operations) -> list[Group]:
        """Group the trees by the way in which they are encoded."""
        import torch

        groups, above = [], 0
        for way in self._ways:
            fitting = (operations.rows >= above) & (operations.rows <= way.rows)
            above = way.rows + 1
            for large in (False, True):
                (trees,) = (fitting & (operations.large == large)).nonzero()
                if trees.size:
                    rows = int(operations.rows[trees].max()) if way.in_global else way.rows
                    sent = torch.from_numpy(trees.astype(np.int32)).to(self._gpu.device)
                    groups.append(Group(way, large, rows, sent))
        return groups

    def run(self, sent: Sent, normalize: bool, out: Any) -> None:
        """Run the operations that were sent, and write the vectors of their trees to ``out``."""
        tags = self._make_tags(sent.pairs)
        for group in sent.groups:
            self._run_group(group, sent, tags, normalize, out)

    def _run_group(self, group: Group, sent: Sent, tags: tuple[Any, Any], normalize: bool, out: Any) -> None:
        import torch

        size, labels, way, n_trees = self._size, self.labels, group.way, len(group.trees)
        at_a_time = min(n_trees, way.blocks * self._gpu.properties.multi_processor_count)
        trees = n_trees if way.in_global else min(TREES, n_trees // at_a_time)  # per block
        blocks = at_a_time if way.in_global else -(-n_trees // trees)
        kernel = self._kernel(
            "encode", BLOCKS=way.blocks, ROWS_IN_GLOBAL=int(way.in_global), RESCALED=int(group.large)
        )
        row_bytes = 4 * size * group.rows
        global_rows = torch.empty(
            blocks * row_bytes if way.in_global else 0, dtype=torch.uint8, device=self._gpu.device
        )
        arguments = [
            sent.words, sent.offsets, group.trees, n_trees, trees,
            torch.zeros(1, dtype=torch.int32, device=self._gpu.device), labels.signs, *tags,
            labels.target1, labels.target2, labels.sign2, global_rows, group.rows,
            self._gpu.root_decay, int(normalize), out, self._gpu.not_finite,
        ]  # fmt: skip
        kernel((blocks, 1), size // 16, arguments, 0 if way.in_global else row_bytes)

    def _make_tags(self, pairs: Any) -> tuple[Any, Any]:
        """Return the vectors of pre-terminals, as children, and their signs."""
        import torch

        size, labels = self._size, self.labels
        tags = torch.empty((len(pairs), size), dtype=torch.float32, device=self._gpu.device)
        signs = torch.empty((len(pairs), size // 16), dtype=torch.int16, device=self._gpu.device)
        if len(pairs):
            arguments = [
                pairs, labels.head, labels.child, labels.signs, labels.target1, labels.target2, labels.sign2,
                self._gpu.root_decay, tags, signs,
            ]  # fmt: skip
            self._kernel("make_tags")((len(pairs), 1), size // 16, arguments, 4 * size)
        return tags, signs

    def _kernel(self, name: str, BLOCKS: int = 1, ROWS_IN_GLOBAL: int = 0, RESCALED: int = 0) -> Kernel:
        return self._gpu.compiled(
            "mixed.cu", name, BLOCKS=BLOCKS, ROWS_IN_GLOBAL=ROWS_IN_GLOBAL, RESCALED=RESCALED, **self._defined
        )


class LabelSigns(LabelTables):
    """The signs of labels: in the order of elements, and in the order of threads."""

    def __init__(self, mixed: MixedEncoder, gpu: Gpu, lay: Kernel) -> None:
        self._mixed, self._lay = mixed, lay
        self._size = mixed.algebra.size
        words = self._size // LANES
        super().__init__(gpu, [words, words], "int16", besides=4 * words)
        self.signs = gpu.empty((0, 4 * words), "int16")
        self.target1, self.target2, self.sign2 = map(
            gpu.sent_words,
            (
                mixed.m1.target // LANES,
                mixed.m2.target // LANES,
                by_target(mixed.m2.signs[None], mixed.m2.target // LANES)[0],
            ),
        )

    @property
    def head(self) -> Any:
        """Labels as nodes, in the order of elements."""
        return self.tables[0]

    @property
    def child(self) -> Any:
        """Labels as children, in the order of elements."""
        return self.tables[1]

    def make(self, texts: Sequence[str]) -> Sequence[Array]:
        """Return the signs of labels."""
        return [words.view(np.int16) for words in self._mixed.label_table(texts)]

    def _draw(self, texts: list[str], threads: Threads) -> tuple[int, int]:
        """Add the signs of new labels, in both orders."""
        first, last = super()._draw(texts, threads)
        if len(self.signs) < len(self.head):
            signs = self._gpu.empty((len(self.head), self.signs.shape[1]), "int16")
            signs[: len(self.signs)] = self.signs
            self.signs = signs
        arguments = [self.head[first:], self.child[first:], self.target1, self.target2, self.signs[first:]]
        self._lay((last - first, 1), self._size // 16, arguments, 0)
        return first, last


def ways(properties: Any, size: int) -> list[Way]:
    """Return the ways to encode trees on a device, those for few rows first.

    With more blocks at a time, latencies overlap, but each block has less memory for rows.
    """
    row_bytes, most_blocks = 4 * size, max(1, 16 * THREADS // size)
    here = int(properties.shared_memory_per_multiprocessor)
    at_most = shared_bytes(properties)
    found: list[Way] = []
    for blocks in (most_blocks, 1):
        rows = max(0, min(here // blocks - OF_SYSTEM, at_most) - STATIC) // row_bytes
        if rows > (found[-1].rows if found else 0):
            found.append(Way(rows, blocks, False))
    return [*found, Way(255, 1, True)]


def by_target(signs: SignWords, target: IntArray) -> SignWords:
    """Return signs in the order of threads, from words of sixteen signs in the order of elements.

    Bit ``k`` of word ``t`` is the sign of the element to which butterfly ``k`` of thread ``t`` is written.
    """
    threads = np.arange(signs.shape[1])
    where = target.reshape(16, -1)[:, threads // LANES]  # the target block of each butterfly and thread
    bits = (signs[:, where] >> (threads % LANES).astype(np.uint16)) & 1
    words: SignWords = (bits << np.arange(16, dtype=np.uint16)[:, None]).sum(axis=1, dtype=np.uint16)
    return words
