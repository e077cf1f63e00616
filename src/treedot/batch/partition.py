"""The tasks of a training by many processes: a shard that is packed, and a partition that is visited.

The method is CoCoA+ (Ma et al. 2015, *Adding vs. Averaging in Distributed Primal-Dual Optimization*): in
every round, each of K partitions solves for its own α, as if the changes of all others were its own. From the
weights w of all, partition k finds changes Δα that make ::

    Σᵢ ((αᵢ + Δαᵢ) - (αᵢ + Δαᵢ)² / (4 Cᵢ)) - w · Δw - K/2 ‖Δw‖²,    Δw = Σᵢ Δαᵢ yᵢ xᵢ

large, and w becomes w + Σₖ Δwₖ: by that, the dual of the whole problem never falls. With local weights
u = w + K Δw, the best step for one αᵢ is that of ``coordinate_descent`` with K αᵢ for αᵢ, K Cᵢ for Cᵢ and u
for w. So the compiled pass is used as it is, the α that are kept are K times those of the problem, and
Δw = (u - w) / K.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, Matrix
from treedot._storage.files import write_folder
from treedot.batch.fit_folder import TRAINING, FitFolder, Update, Weights, shard_name, shard_of
from treedot.batch.plan import Plan
from treedot.batch.shard import MAX_MESSAGES, Outcome
from treedot.batch.work import first_to_compile
from treedot.errors import SourceError, TreedotError
from treedot.models.training.block_visits import EncodedBlock, Group, groups, key_of, sums_of_column_squares
from treedot.models.training.coordinate_descent import PassFigures
from treedot.models.training.training_folder import ALPHA, FACTS, TREES, training_identity, write_json
from treedot.models.training.tree_blocks import BLOCK_TREES, Block, write_blocks
from treedot.readers import read_trees
from treedot.readers.on_bad import OnBad
from treedot.readers.ranges import iter_range
from treedot.trees import Forest
from treedot.vectors.parts import PLAN
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.spec import SparseSpec


def pack_shard(folder: str, number: int) -> Outcome:
    """Read the trees of a shard, and keep them packed; by one thread."""
    return _outcome(number, lambda: _pack(Path(folder), number))


def do_partition(folder: str, rounds: int, number: int) -> Outcome:
    """Do a partition's part of the round that follows on some rounds; by one thread."""
    return _outcome(number, lambda: _solve(_opened(folder), rounds, number))


def warm_up() -> None:
    """Use all compiled code that tasks use, on one tree."""
    block = Block(read_trees(["(S (A a) (B b c))"]), np.zeros(1, np.int64))
    spec = SparseSpec(n_features=32)
    group = Group([EncodedBlock.of(block, SparseEncoder(spec))], np.zeros(1, np.int64))
    _Local.begin(Weights.begin(32, 1)).visit(group, np.zeros((1, 1), ALPHA), np.ones((1, 2)), (0, 1), 0, 1)


@cache
def _warm() -> None:
    """Compile what is not compiled yet, once in a process, and one process of a machine before the others."""
    with first_to_compile():
        warm_up()


def _outcome(number: int, work: Callable[[], Outcome]) -> Outcome:
    """Return what becomes of a task; errors are returned, since an engine may change those it passes on."""
    try:
        _warm()
        return work()
    except (TreedotError, OSError, MemoryError) as error:
        return Outcome(number, error=str(error) or type(error).__name__)
    except Exception:
        return Outcome(number, error=traceback.format_exc())


def _pack(folder: Path, number: int) -> Outcome:
    plan, errors = _plan(folder), list[SourceError]()
    shard, label = plan.shards[number], plan.work["label"]
    source = plan.inputs[shard.file]
    source.check_unchanged()
    on_bad = OnBad(errors.append if plan.reading.skip_bad else None)
    of = shard_of(training_identity(folder), number)
    with write_folder(folder / TREES / shard_name(number)) as aside:
        batches = iter_range(source.path, shard.range, plan.reading, BLOCK_TREES, on_bad)
        facts = write_blocks(aside, (labelled(*batch, label) for batch in batches), label, of)
        write_json(aside / FACTS, facts._asdict(), of)
        source.check_unchanged()
    return Outcome(number, sum(facts.sizes), "", len(errors), tuple(map(str, errors[:MAX_MESSAGES])))


def labelled(trees: Forest, columns: Mapping[str, Any], label: str) -> Forest:
    """Return trees with the column of classes alone; with all columns where there is none of that name."""
    wanted = [label] if label in columns else list(columns)
    values = {name: columns[name] for name in wanted}
    lists = {name: x.to_pylist() if hasattr(x, "to_pylist") else x for name, x in values.items()}
    return Forest(trees.label, trees.arity, trees.offsets, trees.labels, lists)


def _plan(folder: Path) -> Plan:
    return _loaded_plan(folder / TREES, *_version(folder / TREES / PLAN))


def _opened(folder: str) -> FitFolder:
    return _loaded_folder(Path(folder), *_version(Path(folder, TRAINING)))


def _version(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ino


@lru_cache(maxsize=1)
def _loaded_plan(folder: Path, *version: int) -> Plan:
    return Plan.load(folder)


@lru_cache(maxsize=1)
def _loaded_folder(folder: Path, *version: int) -> FitFolder:
    return FitFolder(folder)


class _Local(NamedTuple):
    """The weights of a partition in a round; they are changed in place."""

    weights: Matrix
    bias: FloatArray
    mean_weights: Matrix  # over the visits of the round
    mean_bias: FloatArray

    @classmethod
    def begin(cls, at: Weights) -> _Local:
        """Return the weights as they are when a round begins."""
        return cls(at.weights.copy(), at.bias.copy(), at.weights.copy(), at.bias.copy())

    def visit(
        self, group: Group, alpha: Matrix, cost: FloatArray, at: tuple[int, int], key: int, turns: int
    ) -> None:
        """Visit the rows of a group some times over, after so many of all visits of the round."""
        as_met = np.zeros((2, self.bias.size))  # of no use: local losses do not tell of the weights of all
        figures = PassFigures(self.mean_weights, self.mean_bias, as_met[0], as_met[1], *at)
        group.visit(alpha, self.weights, self.bias, cost, figures, key, turns)


def _solve(folder: FitFolder, rounds: int, number: int) -> Outcome:
    """Visit the trees of a partition, and keep what was found."""
    job, sizes, blocks = folder.job, folder.trees.facts.sizes, folder.blocks(rounds, number)
    before, alpha = folder.read_weights(rounds), folder.read_alpha(rounds, number)
    local, encoder, targets = _Local.begin(before), SparseEncoder(folder.spec), np.array(job.targets)
    cost, added = np.array(job.cost), np.zeros((2, targets.size))
    rows_of_block = np.split(np.arange(len(alpha)), np.cumsum([sizes[block] for block in blocks])[:-1])
    visited, seed = 0, key_of(job.seed, rounds)
    for place, which in enumerate(groups(len(blocks), seed)):
        group = Group([EncodedBlock.of(folder.trees.block(blocks[k]), encoder) for k in which], targets)
        rows = np.concatenate([rows_of_block[k] for k in which])
        own, at = alpha[rows], (job.visits * visited, job.visits * len(alpha))
        added += group.loss_and_excess(own / job.partitions, before.weights, before.bias, cost)
        local.visit(group, own, cost * job.partitions, at, key_of(seed, place), job.visits)
        alpha[rows] = own
        visited += rows.size
    # The model is the mean over all visits of the last round.
    weights, bias = local[2:] if rounds + 1 == job.rounds else local[:2]
    changed = np.flatnonzero((weights != before.weights).any(axis=1)).astype(np.int32)
    folder.write_update(rounds + 1, number, Update(alpha, changed, weights[changed], bias, *added))
    return Outcome(number, len(alpha))


def add_up(folder: FitFolder, rounds: int) -> Weights:
    """Keep and return the weights after one more round, from what all partitions found in it.

    They are added in the order of the partitions and in double precision: the same bytes whoever was first.
    """
    job, before = folder.job, folder.read_weights(rounds)
    total, bias = np.zeros(before.weights.shape), np.zeros(before.bias.size)
    loss, excess = np.zeros((2, bias.size))
    for number in range(job.partitions):
        update = folder.read_update(rounds + 1, number)
        total[update.columns] += update.weights.astype(np.float64) - before.weights[update.columns]
        bias += update.bias - before.bias
        loss += update.loss
        excess += update.excess
    total /= job.partitions
    total += before.weights
    weights, bias = total.astype(np.float32), before.bias + bias / job.partitions
    penalty = (before.bias**2 + sums_of_column_squares(before.weights)) / 2
    found = Weights(weights, bias, excess / (loss + penalty))
    folder.write_weights(rounds + 1, found)
    return found
