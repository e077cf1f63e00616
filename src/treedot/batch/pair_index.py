"""The index for finding similar pairs: files that workers map into memory.

The arrays are those of ``clones.similarity``: all distinct trees by size and content, as numbers of their
productions, the rarest first; and for each production the trees that it leads to. One process builds them
from the lists in all parts, which it reads in batches. Keys of trees identify equal trees; counts of
productions, in cells, show which are rare. Then each tree's list is written to its place, and its index
entries to one of several temporary files, chosen by their first bits. Each file is sorted separately.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, IntArray, WordArray
from treedot._runtime.ragged import places_of
from treedot._storage.files import open_plain
from treedot._storage.growing_array import GrowingArray
from treedot._storage.seals import new_hash
from treedot.clones.production_keys import RarestFirst, content_order, low_bits, n_cells
from treedot.clones.similarity import Multisets, PrefixIndex, index_of, indexed_lengths, turned
from treedot.errors import SourceError

ARRAYS = ("elements", "bounds", "index_elements", "index_start", "index_trees", "tree_row", "copies")
SORTED_AT_A_TIME = 1 << 22  # the approximate number of index entries
TURNED_BITS = 63
MOST_BITS = 7  # leading bits that distribute the entries: at most 256 temporary files


class PairIndex(NamedTuple):
    """The index that workers search for similar pairs, and the copies of trees, which it leaves out.

    Rows are numbered across all parts. ``tree_row`` is the row of the first copy of each tree, by size; each
    line of ``copies`` holds the row of a first copy and that of another copy.
    """

    by_size: Multisets
    prefixes: PrefixIndex
    tree_row: IntArray
    copies: IntArray  # shape (n, 2)

    @classmethod
    def load(cls, folder: Path, digests: dict[str, str]) -> PairIndex:
        """Map the files of a folder into memory; check their digests."""
        arrays = {name: _mapped(folder / f"{name}.bin", digests.get(name)) for name in ARRAYS}
        elements, bounds, *index, tree_row, copies = (arrays[name] for name in ARRAYS)
        return cls(Multisets(elements, bounds), PrefixIndex(*index), tree_row, copies.reshape(-1, 2))


def _mapped(path: Path, digest: str | None) -> IntArray:
    """Map the numbers in a file into memory; the system can drop and reread them."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        raw = np.asarray(np.memmap(file, np.uint8, "r")) if size else np.zeros(0, np.uint8)
    if new_hash(raw.data).hexdigest() != digest:
        raise SourceError(f"{path} is damaged: repeat the call to rebuild it")
    return raw.view(np.int64)


def file_digests(folder: Path) -> dict[str, str]:
    """Return the digests of the index files that exist."""
    found = {}
    for name in ARRAYS:
        with contextlib.suppress(SourceError), open_plain(folder / f"{name}.bin") as file:
            found[name] = hashlib.file_digest(file, new_hash).hexdigest()
    return found


def write_pair_index(parts: Sequence[Path], folder: Path, threshold: float) -> None:
    """Write the index of the trees in parts to a folder."""
    trees = _Trees.read(parts)
    is_first, copies = _told_apart(trees.key)
    first_rows = np.flatnonzero(is_first)
    order = content_order(trees.size[first_rows], trees.key[first_rows])
    tree_row = first_rows[order]
    place = np.full(len(is_first), -1, np.int64)  # the place of each row in the order of size
    place[tree_row] = np.arange(len(tree_row))
    bounds = np.concatenate([[0], np.cumsum(trees.size[tree_row])])
    for name, array in (("tree_row", tree_row), ("copies", copies), ("bounds", bounds)):
        array.astype(np.int64).tofile(folder / f"{name}.bin")
    n_elements, n_entries = int(bounds[-1]), int(indexed_lengths(np.diff(bounds), threshold).sum())
    numbers = RarestFirst(_counted(parts, place, n_cells(n_elements)))
    elements = _writable(folder / "elements.bin", n_elements)
    with _Entries(folder, n_entries) as entries:
        for keys, starts, places in _lists(parts, place):
            _put_sorted(numbers.numbers(keys), starts, bounds[places], elements)
            lengths = indexed_lengths(np.diff(starts), threshold)
            rarest = Multisets(elements, bounds).first(places, lengths)
            entries.add(turned(rarest.elements), np.repeat(places, lengths))
        entries.write(folder)


def _writable(path: Path, count: int) -> IntArray:
    """Return an array in a new file; reserve its disk space, since a full disk would kill the process."""
    with path.open("wb") as file:
        if count and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, 8 * count)
        file.truncate(8 * count)
    return np.asarray(np.memmap(path, np.int64, "r+")) if count else np.zeros(0, np.int64)


class _Trees(NamedTuple):
    """The key and the size of every tree in the parts."""

    key: WordArray  # shape (n, 2)
    size: IntArray  # the number of productions

    @classmethod
    def read(cls, parts: Sequence[Path]) -> _Trees:
        keys, sizes = [np.zeros((0, 2), np.uint64)], [np.zeros(0, np.int64)]
        for batch in _batches(parts, "tree_key", "productions"):
            raw = batch.column("tree_key")
            words = np.frombuffer(raw.buffers()[1], "<u8", 2 * len(raw), 16 * raw.offset)
            keys.append(words.reshape(-1, 2).copy())
            sizes.append(np.asarray(batch.column("productions").value_lengths(), np.int64))
        return cls(np.concatenate(keys), np.concatenate(sizes))


def _told_apart(keys: WordArray) -> tuple[Array, IntArray]:
    """Return a mask of the first rows of equal trees, and each other row after its first one."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: equal trees stay in their order
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(keys[order], axis=0) != 0).any(axis=1)
    first = order[np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))]
    is_first = np.zeros(len(order), bool)
    is_first[order[is_new]] = True
    others = np.stack([first[~is_new], order[~is_new]], axis=1)
    return is_first, others[np.lexsort((others[:, 1], others[:, 0]))]


def _batches(parts: Sequence[Path], *names: str) -> Iterator[Any]:
    """Yield the named columns of all parts, validated, as record batches."""
    from treedot.trees.arrow import clear_errors, mapped, pa

    for part in parts:
        with clear_errors(str(part)), mapped(part) as raw, pa.ipc.open_file(raw) as file:
            for k in range(file.num_record_batches):
                batch = file.get_batch(k).select(list(names))
                batch.validate(full=True)
                yield batch


def _lists(parts: Sequence[Path], place: IntArray) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield batches of distinct trees: their keys, where each tree's keys start, and the places by size."""
    row = 0
    for batch in _batches(parts, "productions"):
        lists = batch.column("productions")
        places = place[row : row + len(lists)]
        row += len(lists)
        kept = lists.filter(places >= 0)
        starts = np.concatenate([[0], np.cumsum(np.asarray(kept.value_lengths(), np.int64))])
        yield np.asarray(kept.flatten(), np.int64), starts, places[places >= 0]


def _counted(parts: Sequence[Path], place: IntArray, cells: int) -> IntArray:
    """Return the number of elements of distinct trees in each cell."""
    counts = np.zeros(cells, np.int32)
    for keys, _, _ in _lists(parts, place):
        np.add.at(counts, keys >> low_bits(cells), 1)
    return counts


def _put_sorted(numbers: IntArray, starts: IntArray, to: IntArray, out: IntArray) -> None:
    """Sort the numbers of every tree, which begin at ``starts``, and write them to their place."""
    for first, last in itertools.pairwise(starts.tolist()):
        numbers[first:last].sort()
    out[places_of(to, np.diff(starts))[0]] = numbers


class _Entries(contextlib.ExitStack):
    """The entries of an index; temporary files hold them until they are sorted."""

    def __init__(self, folder: Path, count: int) -> None:
        super().__init__()
        self._bits = min(max(1, (count // SORTED_AT_A_TIME).bit_length()), MOST_BITS)
        self._files = [
            tuple(self.enter_context(GrowingArray(np.int64, folder / "index")) for _ in range(2))
            for _ in range(1 << self._bits)
        ]

    def add(self, elements: IntArray, trees: IntArray) -> None:
        """Add entries: ``elements``, turned, and the trees that they lead to."""
        part = elements >> (TURNED_BITS - self._bits)
        order = np.argsort(part, kind="stable")
        ends = np.cumsum(np.bincount(part, minlength=len(self._files)))[:-1]
        pieces = zip(np.split(elements[order], ends), np.split(trees[order], ends), strict=True)
        for (to_elements, to_trees), (some, theirs) in zip(self._files, pieces, strict=True):
            to_elements.append(some)
            to_trees.append(theirs)

    def write(self, folder: Path) -> None:
        """Sort the entries and write the index."""
        names = [folder / f"index_{name}.bin" for name in ("elements", "start", "trees")]
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(name.open("wb")) for name in names]
            n_entries = 0
            for elements, trees in self._files:
                some, theirs = elements.read(0, len(elements)), trees.read(0, len(trees))
                by_tree = np.argsort(theirs, kind="stable")
                index = index_of(some[by_tree], theirs[by_tree])
                for file, array in zip(files, index, strict=True):
                    (array[:-1] + n_entries if array is index.start else array).tofile(file)
                n_entries += len(theirs)
            np.array([n_entries]).tofile(files[1])
