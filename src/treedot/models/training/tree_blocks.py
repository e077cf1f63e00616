"""Store labelled trees in packed blocks on disk, which are read much faster than trees are parsed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, IntArray
from treedot._runtime.ragged import ends_of
from treedot._storage.safetensors import dump_arrays, read_sealed
from treedot.errors import SourceError
from treedot.models.classes import class_names
from treedot.trees import Forest
from treedot.trees.forest import used_labels
from treedot.trees.packed import pack_texts, unpack_texts
from treedot.vectors.chunks import forest_chunks

BLOCK_TREES = 4096
BLOCK_NODES = 1 << 18


class BlockFacts(NamedTuple):
    """Facts about all blocks; the number of a class is its position in ``names``."""

    sizes: list[int]  # trees of every block
    names: list[str]  # the classes, in the order of their first trees
    counts: list[int]  # trees of every class
    digest: str  # a digest of trees and classes


class Block(NamedTuple):
    """The trees of a block, and the numbers of their classes."""

    trees: Forest
    classes: IntArray


def write_blocks(folder: Path, batches: Iterable[Forest], column: str, of: str = "") -> BlockFacts:
    """Write trees in blocks, with the classes in ``column``, without holding them all in memory.

    ``of`` names the owner of the blocks; ``read_block`` needs the same name, and rejects damaged blocks.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> trees = Forest([0, 0], [0, 0], [0, 1, 2], ["a"], {"kind": ["x", "y"]})
    >>> facts = write_blocks(folder, [trees], "kind")
    >>> facts.sizes, facts.names, facts.counts
    ([2], ['x', 'y'], [1, 1])
    >>> read_block(folder, 0).trees == trees
    True
    """
    content = hashlib.blake2b(digest_size=16)
    numbers: dict[str, int] = {}
    sizes: list[int] = []
    counts = np.zeros(0, np.int64)
    for forest in _cut(batches):
        names = class_names(forest, column, sum(sizes))
        classes = np.array([numbers.setdefault(name, len(numbers)) for name in names])
        counts = np.bincount(classes, minlength=len(numbers)) + np.pad(
            counts, (0, len(numbers) - counts.size)
        )
        label, labels = used_labels(forest.label, forest.labels)
        text, ends = pack_texts(labels)
        arrays = {
            "label": label,
            "arity": forest.arity,
            "nodes": forest.sizes,
            "class": classes,
            "text": text,
            "text_length": np.diff(ends),
        }
        arrays = {name: _narrow(array) for name, array in arrays.items()}
        for name in sorted(arrays):
            content.update(arrays[name].tobytes())
        path = _path(folder, len(sizes))
        dump_arrays(path, belonging(path, of), arrays, sealed=True)
        sizes.append(len(forest))
    content.update("\0".join(numbers).encode())
    return BlockFacts(sizes, list(numbers), counts.tolist(), content.hexdigest())


def read_block(folder: Path, number: int, of: str = "") -> Block:
    """Read a block; ``of`` is the name given to ``write_blocks``."""
    path = _path(folder, number)
    try:
        arrays = read_sealed(path, belonging(path, of))
        labels = unpack_texts(arrays["text"], ends_of(arrays["text_length"]))
        forest = Forest(arrays["label"], arrays["arity"], ends_of(arrays["nodes"]), labels)
        return Block(forest, arrays["class"].astype(np.int64))
    except (KeyError, ValueError) as error:
        raise SourceError(f"{path} is damaged: {error}") from None


def belonging(path: Path, of: str) -> dict[str, str]:
    """Return the description of a file: its name and its owner."""
    return {"of": of, "file": path.name}


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.safetensors"


def _narrow(array: Array) -> Array:
    """Convert non-negative integers to the narrowest unsigned type."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def _cut(batches: Iterable[Forest]) -> Iterator[Forest]:
    """Regroup batches of trees into forests of at most one block each; a huge tree is a block of its own."""
    waiting: list[Forest] = []
    trees, nodes = 0, 0
    for batch in batches:
        for first, last in forest_chunks(batch, BLOCK_TREES, BLOCK_NODES):
            part = batch if last - first == len(batch) else batch[first:last]
            if waiting and (trees + len(part) > BLOCK_TREES or nodes + part.n_nodes > BLOCK_NODES):
                yield Forest.concat(waiting)
                waiting, trees, nodes = [], 0, 0
            waiting.append(part)
            trees, nodes = trees + len(part), nodes + part.n_nodes
    if waiting:
        yield Forest.concat(waiting)
