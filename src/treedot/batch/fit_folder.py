"""The work folder of a training by many processes: all that a task needs, and all that it leaves.

==================================== ===================================================================
``request.json``                     what was asked for; never changed
``trees/_treedot.json``              the inputs, and the shards that they are cut into; never changed
``trees/000007/``                    the trees of a shard, packed, in blocks, and what is known of them
``training.json``                    the settings that were chosen, the problems; never changed
``weights-0003.safetensors``         the weights after three rounds
``partition-0003-00007.safetensors`` what partition 7 found in round three: its α, and local weights
``written.json``                     what is known of the model, before it is written and the folder removed
==================================== ===================================================================

Every file appears whole, and what it holds follows from its name: a task whose file is there is done, and one
that is done twice does no harm.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray, Matrix
from treedot._storage.safetensors import read_sealed, write_arrays
from treedot.errors import SourceError
from treedot.models.training.block_visits import key_of, shuffled
from treedot.models.training.training_folder import (
    ALPHA,
    FACTS,
    TREES,
    damaged,
    read_json,
    refused,
    training_identity,
    write_json,
)
from treedot.models.training.tree_blocks import Block, BlockFacts, belonging, read_block
from treedot.vectors.spec import SparseSpec

TRAINING = "training.json"


class PackedShards:
    """The labelled trees of all shards; classes are numbered in the order in which they are met.

    Parameters
    ----------
    folder : Path
        The folder of the shards.
    shards : sequence of BlockFacts
        What is known of each.
    identity : str
        That of the training: blocks of others are refused.
    """

    def __init__(self, folder: Path, shards: Sequence[BlockFacts], identity: str) -> None:
        self._folder, self._identity = folder, identity
        self._places = [(shard, own) for shard, each in enumerate(shards) for own in range(len(each.sizes))]
        names: dict[str, int] = {}
        self._classes = [
            np.array([names.setdefault(name, len(names)) for name in each.names], np.int64) for each in shards
        ]
        counts = np.zeros(len(names), np.int64)
        for numbers, each in zip(self._classes, shards, strict=True):
            counts[numbers] += np.array(each.counts, np.int64)
        digest = hashlib.blake2b("\n".join(each.digest for each in shards).encode(), digest_size=16)
        sizes = [size for each in shards for size in each.sizes]
        self.facts = BlockFacts(sizes, list(names), counts.tolist(), digest.hexdigest())

    def block(self, number: int) -> Block:
        """Return a block, whose numbers of classes are those of all shards."""
        shard, own = self._places[number]
        folder = self._folder / shard_name(shard)
        with refused(folder):  # which is packed again where it is missing
            trees, classes = read_block(folder, own, shard_of(self._identity, shard))
        return Block(trees, self._classes[shard][classes])


class Job(NamedTuple):
    """All that partitions have in common, as JSON values."""

    shards: list[Any]  # BlockFacts
    choice: dict[str, Any]
    spec: dict[str, Any]
    targets: list[int]
    cost: list[list[float]]  # with C
    seed: int
    partitions: int
    rounds: int
    visits: int


class Weights(NamedTuple):
    """Weights of all columns, and the bias, of some problems."""

    weights: Matrix  # (columns, problems), float32
    bias: FloatArray
    gap: FloatArray  # the duality gap when the last round began, divided by P

    @classmethod
    def begin(cls, columns: int, problems: int) -> Weights:
        """Return the weights before the first round."""
        return cls(np.zeros((columns, problems), np.float32), np.zeros(problems), np.full(problems, np.inf))


class Update(NamedTuple):
    """What a partition found in a round: its α, and the local weights, which have changed in some columns."""

    alpha: Matrix
    columns: IntArray
    weights: Matrix
    bias: FloatArray
    loss: FloatArray  # what its trees added to P when the round began
    excess: FloatArray  # and to the duality gap


class FitFolder:
    """A work folder whose trees are read.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def identity(self) -> str:
        """The digest of the request, which all files hold."""
        return training_identity(self.path)

    def read_facts(self, number: int) -> BlockFacts:
        """Return what is known of a shard that was packed."""
        path = self.path / TREES / shard_name(number) / FACTS
        found = read_json(path, shard_of(self.identity, number))
        if set(found) != set(BlockFacts._fields):
            raise damaged(path, path.parent)
        return BlockFacts(**found)

    @cached_property
    def job(self) -> Job:
        """What partitions have in common."""
        found = read_json(self.path / TRAINING, self.identity)
        if set(found) != set(Job._fields):
            raise self.damaged(TRAINING)
        return Job(**found)

    def write_job(self, job: Job) -> None:
        """Keep what partitions have in common."""
        write_json(self.path / TRAINING, job._asdict(), self.identity)

    @cached_property
    def trees(self) -> PackedShards:
        """All trees."""
        return self.packed([BlockFacts(*facts) for facts in self.job.shards])

    def packed(self, shards: Sequence[BlockFacts]) -> PackedShards:
        """Return the trees of shards."""
        return PackedShards(self.path / TREES, shards, self.identity)

    @cached_property
    def spec(self) -> SparseSpec:
        """The settings of rows."""
        return SparseSpec.from_dict(self.job.spec)

    def blocks(self, rounds: int, partition: int) -> list[int]:
        """Return which blocks a partition has in the round that follows on some rounds.

        They are dealt out at random, anew in every round: of what two partitions would settle between them,
        fixed ones settle little in a round.
        """
        seed = key_of(key_of(self.job.seed, rounds), self.job.partitions)
        dealt = shuffled(len(self.trees.facts.sizes), seed)[partition :: self.job.partitions]
        return sorted(dealt.tolist())

    def n_trees(self, rounds: int, partition: int) -> int:
        """Return how many trees a partition has in a round."""
        return sum(self.trees.facts.sizes[block] for block in self.blocks(rounds, partition))

    def rounds_done(self) -> int:
        """Return after how many rounds there are weights."""
        names = (re.fullmatch(r"weights-(\d+)\.safetensors", path.name) for path in self.path.iterdir())
        return max((int(name[1]) for name in names if name), default=0)

    def read_weights(self, rounds: int) -> Weights:
        """Return the weights after some rounds."""
        begin = Weights.begin(self.spec.n_features or 0, len(self.job.targets))
        if not rounds:
            return begin
        path = self._weights_path(rounds)
        arrays = self._read(path, {"columns", "weights", "bias", "gap"})
        try:
            begin.weights[arrays["columns"]] = arrays["weights"]
            begin.bias[:], begin.gap[:] = arrays["bias"], arrays["gap"]
        except (IndexError, ValueError):
            raise self.damaged(path.name) from None
        return begin

    def write_weights(self, rounds: int, weights: Weights) -> None:
        """Keep the weights after some rounds, and remove what was needed for the last one alone."""
        used = np.flatnonzero(weights.weights.any(axis=1)).astype(np.int32)
        arrays = {"columns": used, "weights": weights.weights[used], "bias": weights.bias, "gap": weights.gap}
        self._write(self._weights_path(rounds), arrays)
        for partition in range(self.job.partitions):
            self.update_path(rounds - 1, partition).unlink(missing_ok=True)
        self._weights_path(rounds - 1).unlink(missing_ok=True)

    def read_update(self, rounds: int, partition: int) -> Update:
        """Return what a partition found in the last of some rounds."""
        path = self.update_path(rounds, partition)
        update, problems = Update(**self._read(path, set(Update._fields))), len(self.job.targets)
        rows = {"alpha": self.n_trees(rounds - 1, partition), "weights": update.columns.size}
        shapes = {name: (rows[name], problems) if name in rows else (problems,) for name in Update._fields}
        shapes["columns"] = update.columns.shape
        if shapes != {name: array.shape for name, array in update._asdict().items()} or not (
            0 <= update.columns.min(initial=0) <= update.columns.max(initial=0) < (self.spec.n_features or 0)
        ):
            raise self.damaged(path.name)
        return update

    def read_alpha(self, rounds: int, partition: int) -> Matrix:
        """Return the α, after some rounds, of the blocks that a partition has next."""
        sizes, wanted = self.trees.facts.sizes, self.blocks(rounds, partition)
        alpha = np.zeros((self.n_trees(rounds, partition), len(self.job.targets)), ALPHA)
        if rounds:
            own = dict(zip(wanted, _pieces(alpha, [sizes[block] for block in wanted]), strict=True))
            for other in range(self.job.partitions):
                theirs = self.blocks(rounds - 1, other)
                if own.keys() & set(theirs):
                    found = _pieces(self.read_update(rounds, other).alpha, [sizes[k] for k in theirs])
                    for block, piece in zip(theirs, found, strict=True):
                        if block in own:
                            own[block][...] = piece
        return alpha

    def write_update(self, rounds: int, partition: int, update: Update) -> None:
        """Keep what a partition found in a round."""
        self._write(self.update_path(rounds, partition), update._asdict())

    def update_path(self, rounds: int, partition: int) -> Path:
        """Return where it is kept what a partition found in a round."""
        return self.path / f"partition-{rounds:04d}-{partition:05d}.safetensors"

    def _weights_path(self, rounds: int) -> Path:
        return self.path / f"weights-{rounds:04d}.safetensors"

    def _read(self, path: Path, names: set[str]) -> dict[str, Array]:
        with refused(self.path):
            arrays = read_sealed(path, belonging(path, self.identity))
        if set(arrays) != names:
            raise self.damaged(path.name)
        return arrays

    def _write(self, path: Path, arrays: dict[str, Array]) -> None:
        write_arrays(path, belonging(path, self.identity), arrays, sealed=True)

    def damaged(self, name: str) -> SourceError:
        """Return the error for a file that does not hold what it should."""
        return damaged(self.path / name, self.path)


def _pieces(rows: Matrix, sizes: list[int]) -> list[Matrix]:
    """Return rows in pieces of some sizes, sharing their memory."""
    return np.split(rows, np.cumsum(sizes)[:-1])


def shard_name(number: int) -> str:
    """Return the name of the folder of a shard."""
    return f"{number:06d}"


def shard_of(identity: str, number: int) -> str:
    """Return the identity of the files of a shard, by that of the training."""
    return f"{identity}/{shard_name(number)}"
