"""The paper's shuffled γ-product on a GPU: see ``product.cu`` and ``treedot.vectors.dense.product``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, IntArray
from treedot.errors import DeviceError
from treedot.vectors.dense.compositions import ShuffledProduct
from treedot.vectors.dense.product import GROUP, ProductEncoder
from treedot.vectors.gpu.device import Gpu, shared_bytes
from treedot.vectors.gpu.labels import LabelTables
from treedot.vectors.gpu.operations import LAST, Operations

STATIC = 1024  # further bytes of shared memory; product.cu uses up to 900
MOST_CHILDREN = GROUP  # wider nodes, in nested groups, are left to the processor


class Sent(NamedTuple):
    """Operations on the GPU."""

    words: Any
    offsets: Any
    rows: int

    def tensors(self) -> list[Any]:
        """Return all tensors, which are in the GPU's memory."""
        return [self.words, self.offsets]


class ProductOnGpu:
    """Encodes trees with the shuffled γ-product; no node may have more than ``MOST_CHILDREN`` children."""

    def __init__(self, algebra: ShuffledProduct, gpu: Gpu) -> None:
        encoder = ProductEncoder(algebra, "float32")
        self._gpu, self._size = gpu, algebra.size
        self._shared = 2 * 4 * algebra.size  # bytes for two children
        if self._shared + STATIC > shared_bytes(gpu.properties):
            raise DeviceError(
                f"{gpu.device} has too little shared memory for composition='product' with "
                f"{algebra.size} elements: use fewer, or device='cpu'"
            )
        self.labels = LabelVectors(encoder, gpu)
        self._shuffles = gpu.sent(in_pairs(encoder).view(np.int32))

    def send(self, operations: Operations) -> Iterator[tuple[int, int, Sent]]:
        """Send the operations of trees to the GPU; yield the limits of the trees, and the tensors."""
        words, offsets = self._gpu.sent(operations.words), self._gpu.sent(operations.offsets)
        yield 0, len(operations.rows), Sent(words, offsets, max(1, int(operations.rows.max(initial=0))))

    def run(self, sent: Sent, normalize: bool, out: Any) -> None:
        """Run the operations that were sent, and write the vectors of their trees to ``out``."""
        gpu, threads = self._gpu, self._size // 16
        blocks = min(len(out), gpu.properties.multi_processor_count * max(1, 1024 // threads))
        arguments = [
            sent.words, sent.offsets, len(out), gpu.zero(), *self.labels.tables, self._shuffles,
            gpu.empty((blocks, sent.rows, self._size), "float32"), sent.rows,
            gpu.root_decay, int(normalize), out, gpu.not_finite,
        ]  # fmt: skip
        kernel = gpu.compiled("product.cu", "encode", D=self._size)
        kernel((blocks, 1), threads, arguments, self._shared)


class LabelVectors(LabelTables):
    """The vectors of labels: plain, as left operands and as right operands."""

    def __init__(self, encoder: ProductEncoder, gpu: Gpu) -> None:
        super().__init__(gpu, [encoder.algebra.size] * 3, "float32")
        self._encoder = encoder

    def make(self, texts: Sequence[str]) -> Sequence[Array]:
        """Return the vectors of labels."""
        made: Sequence[Array] = self._encoder.label_table(texts)
        return made


def in_pairs(encoder: ProductEncoder) -> IntArray:
    """Return the shuffles of children in the order of threads, with two elements in each word.

    Row ``i`` is the shuffle of a child at place ``i``, row ``LAST + i`` that of a last child.
    """
    threads = encoder.algebra.size // 16
    all_of = np.zeros((LAST + GROUP + 1, encoder.algebra.size), np.uint32)
    all_of[: GROUP + 1], all_of[LAST:] = encoder.shuffles.inner, encoder.shuffles.last
    of_thread = all_of.reshape(len(all_of), 8, 2, threads)
    pairs: IntArray = np.ascontiguousarray(of_thread[:, :, 0] | (of_thread[:, :, 1] << 16))
    return pairs
