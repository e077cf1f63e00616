"""The folder of a training: trees, α, weights, and the results of each partition.

==================================== ===================================================================
``request.json``                     the inputs and settings; never changed ``trees/_treedot.json`` the
inputs, and the shards that they are cut into; never changed ``trees/000007/``                    the trees of
a shard, packed, in blocks, and their facts ``training.json``                    the settings that were
chosen, the problems; never changed ``weights-0003.safetensors``         the state after three rounds
``partition-0003-00007.safetensors`` the result of partition 7 in round three: local weights
``partition-0003-00007.alpha``       the α of its trees after round three ``written.json`` the facts of the
model, before it is written and the folder removed
==================================== ===================================================================

The name of a file determines its content. So a task is done if its file exists, and repeating it does no
harm. All files except the α are written atomically. A task writes its α first, and then the digest of each
block, so the α of a killed task are never used.

The folder of ``train_files`` has one partition and is used by one process. It differs:

====================== ================================================================================
``trees/``             the trees, in blocks; never changed
``facts.json``         the sizes of the blocks, the classes; never changed
``choice.json``        the settings that cross-validation chose
``alpha.0, alpha.1``   the α of all trees; pass n reads those of pass n - 1, and writes those of pass n
``state.safetensors``  the state, which is also kept now and then during a pass
====================== ================================================================================
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray, Matrix
from treedot._storage.files import open_plain, reason
from treedot._storage.safetensors import read_sealed, write_arrays
from treedot._storage.seals import DIGEST_BYTES, new_hash
from treedot.batch.checkpoint import (
    REQUEST,
    check_request,
    damaged,
    outdated,
    read_json,
    refused,
    sole_training,
    training_identity,
    write_json,
)
from treedot.errors import SourceError
from treedot.models.training.block_visits import key_of, shuffled, sums_of_column_squares
from treedot.models.training.tree_blocks import Block, BlockFacts, belonging, read_block, write_blocks
from treedot.parameters import checked_path
from treedot.trees import Forest
from treedot.vectors.spec import SparseSpec

TREES, FACTS, TRAINING, CHOICE = "trees", "facts.json", "training.json", "choice.json"
ALPHA = np.dtype("<f4")


class ShardPlace(NamedTuple):
    """The location of the packed trees of a shard."""

    folder: Path
    identity: str  # stored in its files
    whole: Path  # the folder to delete if they are damaged


class PackedShards:
    """The trees of all shards, with their classes, numbered in the order of their first occurrence.

    Parameters
    ----------
    places : sequence of ShardPlace
        The location of each shard's trees.
    shards : sequence of BlockFacts
        The facts of each shard.
    """

    def __init__(self, places: Sequence[ShardPlace], shards: Sequence[BlockFacts]) -> None:
        self._shards = places
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
        """Return a block, with the class numbers of all shards."""
        shard, own = self._places[number]
        place = self._shards[shard]
        with refused(place.whole):
            trees, classes = read_block(place.folder, own, place.identity)
        return Block(trees, self._classes[shard][classes])


class Job(NamedTuple):
    """Everything that partitions have in common, as JSON values."""

    shards: list[Any]  # BlockFacts
    choice: dict[str, Any]
    spec: dict[str, Any]
    targets: list[int]
    cost: list[list[float]]  # including the factor C
    seed: int
    partitions: int
    rounds: int
    visits: int


class State(NamedTuple):
    """The state of a training; its arrays are changed in place."""

    weights: Matrix  # (columns, problems), float32
    mean_weights: Matrix  # over the visits of this round, or of the last one before it starts
    bias: FloatArray
    mean_bias: FloatArray
    loss: FloatArray  # contribution to P of the trees visited in this round
    excess: FloatArray  # their contribution to the duality gap
    gap: FloatArray  # the gap of the last complete round
    progress: IntArray  # complete rounds, and groups of blocks visited in the next one
    alpha_digests: Array  # digests of every block's α, after an even and after an odd number of rounds

    @classmethod
    def begin(cls, columns: int, problems: int, blocks: int) -> Self:
        """Return the state before the first round."""
        weights, mean_weights = np.zeros((2, columns, problems), np.float32)
        bias, mean_bias, loss, excess = np.zeros((4, problems))
        gap, progress = np.full(problems, np.inf), np.zeros(2, np.int64)
        digests = np.zeros((2, blocks, DIGEST_BYTES), np.uint8)
        return cls(weights, mean_weights, bias, mean_bias, loss, excess, gap, progress, digests)

    @property
    def penalty(self) -> FloatArray:
        """The contribution of weights and bias to P."""
        penalty: FloatArray = (self.bias**2 + sums_of_column_squares(self.weights)) / 2
        return penalty


class Update(NamedTuple):
    """The result of a partition in a round: the local weights of the columns that changed."""

    columns: IntArray
    weights: Matrix
    bias: FloatArray
    loss: FloatArray  # its trees' contribution to P at the start of the round
    excess: FloatArray  # and to the duality gap
    alpha_digests: Array  # digests of the α of its blocks


class Deal(NamedTuple):
    """The assignment of blocks to partitions in a round."""

    blocks: list[IntArray]  # the blocks of every partition, ascending
    partition: IntArray  # the partition of every block
    first: IntArray  # the position of each block's first tree within its partition


class TrainingFolder:
    """The folder of a training by many processes, after its trees have been read.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.deal = lru_cache(maxsize=2)(self._deal)

    @cached_property
    def identity(self) -> str:
        """The digest of the request, stored in all files."""
        return training_identity(self.path)

    def shard_place(self, number: int) -> ShardPlace:
        """Return the location of a shard's trees; missing trees are packed again."""
        folder = self.path / TREES / f"{number:06d}"
        return ShardPlace(folder, f"{self.identity}/{folder.name}", folder)

    def packed(self, shards: Sequence[BlockFacts]) -> PackedShards:
        """Return the trees of shards."""
        return PackedShards([self.shard_place(number) for number in range(len(shards))], shards)

    def read_facts(self, number: int) -> BlockFacts:
        """Return the facts of a packed shard."""
        place = self.shard_place(number)
        return BlockFacts(**read_json(place.folder / FACTS, place.identity))

    @cached_property
    def job(self) -> Job:
        """The settings that all partitions share."""
        return Job(**read_json(self.path / TRAINING, self.identity))

    def write_job(self, job: Job) -> None:
        """Store the settings that all partitions share."""
        write_json(self.path / TRAINING, job._asdict(), self.identity)

    @cached_property
    def trees(self) -> PackedShards:
        """All trees."""
        return self.packed([BlockFacts(*facts) for facts in self.job.shards])

    @cached_property
    def spec(self) -> SparseSpec:
        """The settings of rows."""
        return SparseSpec.from_dict(self.job.spec)

    @cached_property
    def sizes(self) -> IntArray:
        """The number of trees of every block."""
        return np.array(self.trees.facts.sizes)

    def _deal(self, rounds: int) -> Deal:
        """Return the assignment of blocks in the round after ``rounds`` complete ones.

        Blocks are dealt at random, anew in every round: with fixed partitions, a round does little for
        interactions between two of them.
        """
        partitions = self.job.partitions
        order = shuffled(self.sizes.size, key_of(key_of(self.job.seed, rounds), partitions))
        dealt = [np.sort(order[number::partitions]) for number in range(partitions)]
        partition, first = np.zeros((2, self.sizes.size), np.int64)
        for number, blocks in enumerate(dealt):
            partition[blocks] = number
            first[blocks] = np.cumsum(self.sizes[blocks]) - self.sizes[blocks]
        return Deal(dealt, partition, first)

    def n_trees(self, rounds: int, partition: int) -> int:
        """Return the number of trees that a partition has in the round after ``rounds`` complete ones."""
        return int(self.sizes[self.deal(rounds).blocks[partition]].sum())

    def new_state(self) -> State:
        """Return the state before the first round."""
        return State.begin(self.spec.n_features or 0, len(self.job.targets), self.sizes.size)

    def rounds_done(self) -> int:
        """Return the number of complete rounds, from the files of weights."""
        names = (re.fullmatch(r"weights-(\d+)\.safetensors", path.name) for path in self.path.iterdir())
        return max((int(name[1]) for name in names if name), default=0)

    def load(self, rounds: int) -> State:
        """Return the state after ``rounds`` rounds."""
        state = self.new_state()
        if rounds:
            kept = ("bias", "gap", "alpha_digests")
            arrays = self._read(self._weights_path(rounds), {"columns", "weights", *kept})
            state.weights[arrays["columns"]] = arrays["weights"]
            for name in kept:
                getattr(state, name)[...] = arrays[name]
            state.progress[0] = rounds
        return state

    def save(self, state: State) -> None:
        """Store the state after a round, and remove files that only this round needed."""
        rounds, used = int(state.progress[0]), np.flatnonzero(state.weights.any(axis=1)).astype(np.int32)
        arrays = {"columns": used, "weights": state.weights[used], "bias": state.bias, "gap": state.gap}
        self._write(self._weights_path(rounds), {**arrays, "alpha_digests": state.alpha_digests})
        for partition in range(self.job.partitions):
            self.update_path(rounds, partition).unlink(missing_ok=True)
            self.alpha_path(rounds - 1, partition).unlink(missing_ok=True)
        self._weights_path(rounds - 1).unlink(missing_ok=True)

    def read_alpha(self, state: State, blocks: IntArray) -> Matrix:
        """Return the α of some blocks after the complete rounds, concatenated."""
        alpha = np.zeros((self.sizes[blocks].sum(), len(self.job.targets)), ALPHA)
        rounds = int(state.progress[0])
        if rounds:
            for block, part in zip(blocks, self._pieces(alpha, blocks), strict=True):
                path, place = self._alpha_place(rounds, block)
                with refused(self.path):
                    file = open_plain(path)
                with file:
                    file.seek(place)
                    whole = file.readinto(part.data) == part.nbytes
                if not whole or _digest_of(part) != state.alpha_digests[rounds % 2, block].tobytes():
                    raise damaged(path, self.path)
        return alpha

    def write_alpha(self, state: State, blocks: IntArray, alpha: Matrix) -> None:
        """Store the α of some blocks after the next round."""
        rounds = int(state.progress[0]) + 1
        for block, part in zip(blocks, self._pieces(alpha, blocks), strict=True):
            path, place = self._alpha_place(rounds, block)
            try:
                path.touch()
                with path.open("r+b") as file:
                    file.seek(place)
                    file.write(part.data)
            except OSError as error:
                raise SourceError(f"cannot write {path}: {reason(error)}") from error
            state.alpha_digests[rounds % 2, block] = np.frombuffer(_digest_of(part), np.uint8)

    def alpha_path(self, rounds: int, partition: int) -> Path:
        """Return the file with the α of a partition's trees after ``rounds`` rounds."""
        return self.update_path(rounds, partition).with_suffix(".alpha")

    def _alpha_place(self, rounds: int, block: int) -> tuple[Path, int]:
        """Return the file, and the position in it, of the α of a block after ``rounds`` rounds."""
        deal = self.deal(rounds - 1)
        path = self.alpha_path(rounds, int(deal.partition[block]))
        return path, int(deal.first[block]) * len(self.job.targets) * ALPHA.itemsize

    def _pieces(self, rows: Matrix, blocks: IntArray) -> list[Matrix]:
        """Split rows by block; the results share their memory."""
        return np.split(rows, np.cumsum(self.sizes[blocks])[:-1])

    def read_update(self, rounds: int, partition: int) -> Update:
        """Return the result of a partition in round ``rounds``."""
        path = self.update_path(rounds, partition)
        return Update(**self._read(path, set(Update._fields)))

    def write_update(self, rounds: int, partition: int, update: Update) -> None:
        """Store the result of a partition in round ``rounds``."""
        self._write(self.update_path(rounds, partition), update._asdict())

    def update_path(self, rounds: int, partition: int) -> Path:
        """Return the file for the result of a partition in round ``rounds``."""
        return self.path / f"partition-{rounds:04d}-{partition:05d}.safetensors"

    def _weights_path(self, rounds: int) -> Path:
        return self.path / f"weights-{rounds:04d}.safetensors"

    def _read(self, path: Path, names: set[str]) -> dict[str, Array]:
        with refused(self.path):
            arrays = read_sealed(path, belonging(path, self.identity))
        if set(arrays) != names:  # the file itself is intact
            raise outdated(self.path)
        return arrays

    def _write(self, path: Path, arrays: dict[str, Array]) -> None:
        write_arrays(path, belonging(path, self.identity), arrays, sealed=True)


class SoleFolder(TrainingFolder):
    """The folder of a training by one process, which stores the state also during a pass.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.facts = BlockFacts(**read_json(path / FACTS, self.identity))

    def shard_place(self, number: int) -> ShardPlace:
        """Return the location of all trees."""
        return ShardPlace(self.path / TREES, self.identity, self.path)

    @cached_property
    def trees(self) -> PackedShards:
        """All trees."""
        trees = self.packed([self.facts])
        trees.facts = self.facts
        return trees

    def choice(self, choose: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the chosen settings; if there are none yet, choose and store them."""
        path = self.path / CHOICE
        if not path.exists():
            write_json(path, choose(), self.identity)
        return read_json(path, self.identity)

    def write_job(self, job: Job) -> None:
        """Set the settings of a pass. They are not stored, since they follow from the others."""
        self.job = job

    def load(self, rounds: int = 0) -> State:
        """Return the state that was stored last."""
        state, path = self.new_state(), self._state_path
        if path.exists():
            for name, array in self._read(path, set(State._fields)).items():
                getattr(state, name)[...] = array
        return state

    def save(self, state: State) -> None:
        """Store the state, replacing the previous one."""
        self._write(self._state_path, state._asdict())

    @property
    def _state_path(self) -> Path:
        return self.path / "state.safetensors"

    def alpha_path(self, rounds: int, partition: int) -> Path:
        """Return the file with the α of all trees after ``rounds`` rounds."""
        return self.path / f"alpha.{rounds % 2}"


@contextlib.contextmanager
def sole_folder(
    path: str | os.PathLike[str],
    request: dict[str, Any],
    class_column: str,
    read: Callable[[], Iterable[Forest]],
    check: Callable[[BlockFacts], object],
) -> Iterator[SoleFolder]:
    """Open the folder of a training by one process; create it if it does not exist.

    Parameters
    ----------
    path : path
        The folder. Raises if it was made for another request, or if another process has it open.
    request : dict
        Everything that the training depends on, as JSON values.
    class_column : str
        The column of the classes.
    read : callable
        Returns the trees, in forests.
    check : callable
        Raises if these trees cannot be trained on; then no folder is created.
    """
    folder = checked_path("checkpoint", path)

    def fill(aside: Path) -> None:
        write_json(aside / REQUEST, request)
        identity = training_identity(aside)
        (aside / TREES).mkdir()
        facts = write_blocks(aside / TREES, read(), class_column, identity)
        check(facts)
        write_json(aside / FACTS, facts._asdict(), identity)

    with sole_training(folder, fill):
        check_request(folder, request)
        yield SoleFolder(folder)


def _digest_of(alpha: Matrix) -> bytes:
    found: bytes = new_hash(alpha.data).digest()
    return found
