"""The signs of labels on a GPU: drawn once, and kept for the trees to come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treedot.array_types import IntArray, SignWords
from treedot.encode.dense.mixed import MixedEncoder
from treedot.gpu.device import Kernel
from treedot.simd import LANES
from treedot.threads import Threads

TABLE_BYTES = 1 << 32  # for labels that are kept
DRAWN = 64  # labels, at a time


class LabelSigns:
    """The labels met so far: as rows of signs in the order of elements, and as each thread wants them.

    Where they would take more than ``TABLE_BYTES``, all are forgotten first, but for those asked for.
    """

    def __init__(self, mixed: MixedEncoder, device: Any, kernel: Callable[[str], Kernel]) -> None:
        import torch

        self._mixed, self._device, self._kernel = mixed, device, kernel
        self._size = mixed.algebra.size
        self.target1 = self._sent(mixed.m1.target // LANES)
        self.target2 = self._sent(mixed.m2.target // LANES)
        self.sign2 = self._sent(by_target(mixed.m2.signs[None], mixed.m2.target // LANES)[0])
        words = self._size // LANES
        self.head, self.child = (torch.empty((0, words), dtype=torch.int16, device=device) for _ in range(2))
        self.signs = torch.empty((0, 4 * words), dtype=torch.int16, device=device)
        self._row: dict[str, int] = {}
        self.capacity = max(1, TABLE_BYTES // (12 * words))

    def rows(self, texts: Sequence[str], threads: Threads) -> IntArray:
        """Return which rows of the tables labels have."""
        new = [text for text in texts if text not in self._row]
        if len(self._row) + len(new) > self.capacity:
            self._row, new = {}, list(texts)
        if new:
            self._draw(new, threads)
        return np.array([self._row[text] for text in texts], np.int32)

    def _draw(self, texts: list[str], threads: Threads) -> None:
        head = np.empty((len(texts), self._size // LANES), np.uint16)
        child = np.empty_like(head)

        def draw(first: int, last: int) -> None:
            head[first:last], child[first:last] = self._mixed.label_table(texts[first:last])

        starts = range(0, len(texts), DRAWN)
        threads.run(draw, [(start, min(start + DRAWN, len(texts))) for start in starts])
        first, last = len(self._row), len(self._row) + len(texts)
        self._reserve(last)
        self.head[first:last] = self._sent(head)
        self.child[first:last] = self._sent(child)
        self._kernel("lay_labels")(
            (len(texts), 1), self._size // 16,
            [self.head[first:], self.child[first:], self.target1, self.target2, self.signs[first:]], 0,
        )  # fmt: skip
        self._row.update(zip(texts, range(first, last), strict=True))

    def _reserve(self, count: int) -> None:
        """Make room for so many labels, at least twice as much as there was."""
        import torch

        if count > len(self.head):
            more = max(count, 2 * len(self.head)) - len(self.head)
            self.head, self.child, self.signs = (
                torch.cat([table, table.new_empty((more, table.shape[1]))])
                for table in (self.head, self.child, self.signs)
            )

    def _sent(self, array: Any) -> Any:
        """Send words of 16 bits to the device, whose library has no such type without signs."""
        import torch

        return torch.from_numpy(np.ascontiguousarray(array, np.uint16).view(np.int16)).to(self._device)


def by_target(signs: SignWords, target: IntArray) -> SignWords:
    """Return signs as threads want them, from words of sixteen in the order of elements.

    Bit ``k`` of word ``t`` is the sign of the element that butterfly ``k`` of thread ``t`` goes to.
    """
    threads = np.arange(signs.shape[1])
    where = target.reshape(16, -1)[:, threads // LANES]  # of each butterfly and thread, the block it goes to
    bits = (signs[:, where] >> (threads % LANES).astype(np.uint16)) & 1
    words: SignWords = (bits << np.arange(16, dtype=np.uint16)[:, None]).sum(axis=1, dtype=np.uint16)
    return words
