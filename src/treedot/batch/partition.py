"""The tasks of a training by many processes: pack a shard, and visit a partition.

The method is CoCoA+ (Ma et al. 2015, *Adding vs. Averaging in Distributed Primal-Dual Optimization*): in
every round, each of K partitions optimises its own α, as if the others changed w in the same way. Starting
from the common weights w, partition k looks for changes Δα that maximise ::

    Σᵢ ((αᵢ + Δαᵢ) - (αᵢ + Δαᵢ)² / (4 Cᵢ)) - w · Δw - K/2 ‖Δw‖²,    Δw = Σᵢ Δαᵢ yᵢ xᵢ

Then w becomes w + Σₖ Δwₖ. The dual of the whole problem never falls. With local weights u = w + K Δw, the
best step for one αᵢ is that of ``coordinate_descent`` with K αᵢ for αᵢ, K Cᵢ for Cᵢ and u for w. So the
compiled pass is used unchanged, the stored α are K times those of the problem, and Δw = (u - w) / K.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from treedot._runtime.array_types import FloatArray, Matrix
from treedot._runtime.jit import compiles
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot._storage.files import write_folder
from treedot.batch.checkpoint import write_json
from treedot.batch.plan import Plan
from treedot.batch.shard import Outcome
from treedot.batch.training_folder import ALPHA, FACTS, TRAINING, TREES, State, TrainingFolder, Update
from treedot.batch.work import first_to_compile, kept
from treedot.errors import SourceError
from treedot.models.training.block_visits import EncodedBlock, Group, groups, key_of
from treedot.models.training.coordinate_descent import PassFigures
from treedot.models.training.tree_blocks import BLOCK_TREES, Block, write_blocks
from treedot.readers import read_trees
from treedot.readers.on_bad import OnBad
from treedot.readers.ranges import iter_range
from treedot.trees import Forest
from treedot.vectors.parts import PLAN
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.spec import SparseSpec

LEAD = 16  # blocks encoded ahead of the visits


def pack_shard(folder: str, number: int) -> Outcome:
    """Read the trees of a shard and store them packed, in one thread."""
    return _outcome(number, lambda: _pack(Path(folder), number))


def do_partition(folder: str, rounds: int, number: int) -> Outcome:
    """Do a partition's part of the round after ``rounds`` complete ones, in one thread."""
    return _outcome(number, lambda: _solve(kept(TrainingFolder, Path(folder), TRAINING), rounds, number))


def warm_up() -> None:
    """Run all compiled code of the tasks on one tree."""
    block = Block(read_trees(["(S (A a) (B b c))"]), np.zeros(1, np.int64))
    spec = SparseSpec(n_features=32)
    group = Group([EncodedBlock.of(block, SparseEncoder(spec))], np.zeros(1, np.int64))
    state = State.begin(32, 1, 1)
    figures = PassFigures(state.mean_weights, state.mean_bias, state.loss, state.excess, 0, 1)
    group.visit(np.zeros((1, 1), ALPHA), state.weights, state.bias, np.ones((1, 2)), figures, 0, 1)


@cache
def _warm() -> None:
    """Compile missing code, once per process; the first process of a machine does it before the others."""
    with first_to_compile():
        warm_up()


def _outcome(number: int, work: Callable[[], Outcome]) -> Outcome:
    """Return the outcome of a task, or its error, since an engine may change errors that are raised."""
    try:
        _warm()
        return work()
    except Exception as error:
        return Outcome.failed(number, error)


def _pack(folder: Path, number: int) -> Outcome:
    plan, errors = kept(Plan.load, folder / TREES, PLAN), list[SourceError]()
    shard, class_column = plan.shards[number], plan.work["label"]
    source = plan.inputs[shard.file]
    source.check_unchanged()
    on_bad = OnBad(errors.append if plan.reading.skip_bad else None)
    place = TrainingFolder(folder).shard_place(number)
    with write_folder(place.folder) as aside:
        batches = iter_range(source.path, shard.range, plan.reading, BLOCK_TREES, on_bad)
        trees = (with_classes(*batch, class_column) for batch in batches)
        facts = write_blocks(aside, trees, class_column, place.identity)
        write_json(aside / FACTS, facts._asdict(), place.identity)
        source.check_unchanged()
    return Outcome.of(number, sum(facts.sizes), errors)


def with_classes(trees: Forest, columns: Mapping[str, Any], class_column: str) -> Forest:
    """Return trees with only the column of classes; with all columns if there is no such column."""
    wanted = [class_column] if class_column in columns else list(columns)
    values = {name: columns[name] for name in wanted}
    lists = {name: x.to_pylist() if hasattr(x, "to_pylist") else x for name, x in values.items()}
    return Forest(trees.label, trees.arity, trees.offsets, trees.labels, lists)


def visit_partition(
    folder: TrainingFolder,
    state: State,
    number: int,
    *,
    threads: Threads = ONE_THREAD,
    after: Callable[[int], object] = lambda trees: None,
    common: tuple[Matrix, FloatArray] | None = None,
) -> int:
    """Visit the trees of a partition in a round, or in the rest of it; return the number of its trees.

    Parameters
    ----------
    folder : TrainingFolder
        The folder of the training; the α are written to it.
    state : State
        The state at the start of the round, or where it was interrupted; changed in place.
    number : int
        The partition.
    threads : Threads
        Threads that encode trees while others are visited.
    after : callable
        Called after every group of blocks with the number of trees visited in this round.
    common : (array, array), optional
        The common weights and bias at the start of the round. With them, the duality gap is that of this
        moment; by default each tree contributes to it at its visit.
    """
    compiles(math.inf)  # always: NumPy rounds float32 differently, but workers must give equal bytes
    job, (rounds, done) = folder.job, state.progress.tolist()
    encoder, targets, cost = SparseEncoder(folder.spec), np.array(job.targets), np.array(job.cost)
    blocks, key = folder.deal(rounds).blocks[number], key_of(job.seed, rounds)
    order = [blocks[places] for places in groups(blocks.size, key)]
    visited, of_trees = (
        int(sum(folder.sizes[some].sum() for some in which)) for which in (order[:done], order)
    )
    if done == 0:
        state.mean_weights[...], state.mean_bias[:] = state.weights, state.bias
    left = (block for group in order[done:] for block in group.tolist())
    encoded = threads.in_order(
        lambda k: EncodedBlock.of(folder.trees.block(k), encoder), left, -(-LEAD // threads.count)
    )
    for place, group in enumerate(order[done:], done):
        rows, alpha = Group([next(encoded) for _ in group], targets), folder.read_alpha(state, group)
        loss, excess = state.loss, state.excess
        if common is not None:
            added = rows.loss_and_excess(alpha / job.partitions, *common, cost)
            loss += added[0]
            excess += added[1]
            loss, excess = np.zeros((2, targets.size))  # not used: they belong to the local weights
        at = job.visits * visited, job.visits * of_trees
        figures = PassFigures(state.mean_weights, state.mean_bias, loss, excess, *at)
        rows.visit(
            alpha, state.weights, state.bias, cost * job.partitions, figures, key_of(key, place), job.visits
        )
        folder.write_alpha(state, group, alpha)
        visited += len(alpha)
        state.progress[1] += 1
        after(visited)
    return visited


def _solve(folder: TrainingFolder, rounds: int, number: int) -> Outcome:
    """Visit the trees of a partition, and store the result."""
    state = folder.load(rounds)
    common = state.weights.copy(), state.bias.copy()
    n_trees = visit_partition(folder, state, number, common=common)
    weights, bias = state.weights, state.bias
    if rounds + 1 == folder.job.rounds:  # the model is the mean over all visits of the last round
        weights, bias = state.mean_weights, state.mean_bias
    changed = np.flatnonzero((weights != common[0]).any(axis=1)).astype(np.int32)
    digests = state.alpha_digests[(rounds + 1) % 2, folder.deal(rounds).blocks[number]]
    update = Update(changed, weights[changed], bias, state.loss, state.excess, digests)
    folder.write_update(rounds + 1, number, update)
    return Outcome(number, n_trees)


def add_up(folder: TrainingFolder, before: State) -> State:
    """Add up the results of all partitions in a round; store and return the state after it.

    They are added in the order of the partitions, in double precision, so the bytes do not depend on the
    order in which the partitions finish.
    """
    partitions, rounds, after = folder.job.partitions, int(before.progress[0]), folder.new_state()
    total, bias = np.zeros(before.weights.shape), np.zeros(before.bias.size)
    loss, excess = np.zeros((2, bias.size))
    for number, blocks in enumerate(folder.deal(rounds).blocks):
        update = folder.read_update(rounds + 1, number)
        total[update.columns] += update.weights.astype(np.float64) - before.weights[update.columns]
        bias += update.bias - before.bias
        loss += update.loss
        excess += update.excess
        after.alpha_digests[(rounds + 1) % 2, blocks] = update.alpha_digests
    total /= partitions
    total += before.weights
    after.weights[...], after.bias[:] = total, before.bias + bias / partitions
    after.gap[:] = excess / (loss + before.penalty)
    after.progress[0] = rounds + 1
    folder.save(after)
    return after
