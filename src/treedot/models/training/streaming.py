"""Training on more trees than memory holds: passes over blocks of trees on disk, that may be killed.

The problem and the method are those of ``coordinate_descent``. Each pass visits the blocks in another random
order, and each of their rows three times (``block_visits``). While some are visited, other threads encode the
next ones. The model is the mean of the weights over all visits of the last pass: after few passes it is much
better than the weights after the last visit.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.timing import Stopwatch
from treedot._storage.files import path_list
from treedot.errors import SourceError
from treedot.models.linear_model import LinearModel
from treedot.models.training.block_visits import EncodedBlock, Group, groups, key_of, sums_of_column_squares
from treedot.models.training.coordinate_descent import PassFigures
from treedot.models.training.training_folder import State, TrainingFolder, training_folder
from treedot.models.training.training_settings import (
    choose,
    chosen_spec,
    described_settings,
    make_classifier,
    make_model,
    make_problems,
)
from treedot.models.training.tree_blocks import BLOCK_TREES
from treedot.models.tree_classifier import TreeClassifier
from treedot.parameters import n_threads
from treedot.readers import iter_trees
from treedot.trees import Forest
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.spec import SparseSpec

MAX_PASSES = 20
VISITS = 3  # of every tree in a pass
LEAD = 16  # blocks that are encoded before they are visited
SECONDS = 30.0  # between checkpoints

T = TypeVar("T")
U = TypeVar("U")


class Progress(NamedTuple):
    """How far a training is."""

    passes: int  # complete ones; -1 while trees are read
    trees: int  # that have been read, or visited in the next pass
    of_trees: int  # in all; 0 while they are read
    gap: float  # after the last complete pass


def train_files(
    paths: Any,
    label: str,
    *,
    checkpoint: str | os.PathLike[str],
    format: str | None = None,
    column: str | None = None,
    unit: str | None = None,
    on_bad: Callable[[SourceError], object] | None = None,
    progress: Callable[[Progress], object] | None = None,
    **settings: Any,
) -> LinearModel:
    """Train a linear model on files of trees, in memory that does not grow with their number.

    It minimises what ``TreeClassifier`` minimises, and by the same steps, but with weights of single
    precision for all columns. The trees are read once and kept in a folder, 100 bytes for one of 30 nodes.
    There each pass leaves what it found: a training that was killed goes on with the same call, and ends with
    the same model, to the byte, as one that was not.

    Parameters
    ----------
    paths : path or sequence of paths
        Files of trees, as ``read_trees`` takes them.
    label : str
        The column that holds the classes, which are taken as texts.
    checkpoint : path
        The folder, which must not exist or be that of the same training: the same files, unchanged, and the
        same settings, but for ``tol``, ``max_passes`` and ``n_jobs``. So a training that ended can be given
        more passes. It stays until you delete it.
    format : str, default=None
        The format of the files, as in ``read_trees``.
    column : str, default=None
        The column that holds the trees, as in ``read_trees``.
    unit : str, default=None
        What a tree is, as in ``read_trees``.
    on_bad : callable, default=None
        Called with the error of every tree that cannot be read, as in ``read_trees``.
    progress : callable, default=None
        Called with a ``Progress`` after every batch.
    **settings : object
        The parameters of ``TreeClassifier``. Where there are several λ or C, they are chosen on a random
        sample of 20,000 trees. The vectorizer hashes, by default into ``2**22`` columns; ``max_passes`` is 20
        by default.

    Returns
    -------
    LinearModel
        The model; ``facts["training"]["gap"]`` is an estimate of the duality gap.

    Notes
    -----
    The weights are the means over all visits of the last pass, which are much better than the last ones after
    few passes, and the same in the end. Their duality gap is at most the mean of the gaps, since P is convex
    and D is concave, and that is estimated: each row adds to the gap, and is taken as the pass met it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treedot import train_files
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "training")
    >>> model = train_files("docs/examples/questions.tsv", "label", checkpoint=folder, decay=0.2, C=1)
    >>> print(*model.predict(["(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"]))
    person
    """
    reading = {"format": format, "column": column, "unit": unit}
    with held_training(paths, label, checkpoint, reading, on_bad, progress, settings) as model:
        return model


@contextlib.contextmanager
def held_training(
    paths: Any,
    label: str,
    checkpoint: str | os.PathLike[str],
    reading: dict[str, Any],
    on_bad: Callable[[SourceError], object] | None,
    progress: Callable[[Progress], object] | None,
    settings: dict[str, Any],
) -> Iterator[LinearModel]:
    """Train as ``train_files`` does; no other process gets the folder while the model is in use."""
    classifier = make_classifier({"max_passes": MAX_PASSES, **settings})
    tell = progress or (lambda _: None)
    files = path_list(paths)

    def read() -> Iterator[Forest]:
        trees = 0
        for path in files:
            for batch in iter_trees(path, **reading, batch_size=BLOCK_TREES, on_bad=on_bad):
                yield batch
                trees += len(batch)
                tell(Progress(-1, trees, 0, np.inf))

    request = {
        **_described(files),
        **reading,
        "label": label,
        "leaving out bad trees": on_bad is not None,
        **described_settings(classifier),
    }
    check = partial(make_problems, classifier)
    with training_folder(checkpoint, request, label, read, check) as folder:
        yield _train(folder, classifier, label, tell)


def _described(files: list[Any]) -> dict[str, Any]:
    """Return what tells files from others, and from what they are after a change."""
    if not files:
        raise SourceError("there are no files to train on")
    found: dict[str, Any] = {"files": [os.path.abspath(path) for path in files]}
    for path in files:
        if not os.path.isfile(path):
            raise SourceError(f"cannot train on {path}: a training that may be killed reads plain files")
        status = os.stat(path)
        found[os.path.abspath(path)] = [status.st_size, status.st_mtime_ns]
    return found


def _train(
    folder: TrainingFolder, classifier: TreeClassifier, label: str, tell: Callable[[Progress], object]
) -> LinearModel:
    """Choose the settings, make the passes that are left, and return the model."""
    classes, targets, cost = make_problems(classifier, folder.facts)
    choice = folder.choice(lambda: choose(folder, classifier))
    spec = chosen_spec(classifier, choice)
    training = _Training(folder, spec, targets, cost * choice["C"], int(classifier.random_state), tell)
    state = training.run(classifier.tol, classifier.max_passes, classifier.n_jobs)
    facts = {
        "training": {**choice, "gap": float(state.gap.max()), "passes": int(state.progress[0])},
        "data": {"trees": folder.n_trees, "digest": folder.facts.digest, "label": label},
    }
    return make_model(spec, classes, state.mean_weights, state.mean_bias, facts)


class _Training:
    """Passes over the blocks of a folder."""

    def __init__(
        self, folder: TrainingFolder, spec: SparseSpec, targets: IntArray, cost: FloatArray, seed: int,
        tell: Callable[[Progress], object],
    ) -> None:  # fmt: skip
        self._folder, self._encoder, self._tell = folder, SparseEncoder(spec), tell
        self._targets, self._cost, self._seed = targets, cost, seed
        self._state = folder.load(spec.n_features or 0, targets.size)

    def run(self, tol: float, max_passes: int, n_jobs: int | None) -> State:
        """Make passes until the gap is small, or there were enough."""
        state, threads = self._state, n_threads(n_jobs)
        self._tell_of_pass()
        with ThreadPoolExecutor(threads) as pool:
            # A pass that was begun is made to its end: what is kept of it is no model.
            while state.progress[1] or (state.progress[0] < max_passes and state.gap.max() > tol):
                self._pass(pool, lead=LEAD if threads > 1 else 0)
        return state

    def _pass(self, pool: ThreadPoolExecutor, lead: int) -> None:
        """Visit what is left of a pass, and keep the state after it and now and then."""
        state, watch = self._state, Stopwatch()
        passes, done = state.progress.tolist()
        sizes = self._folder.facts.sizes
        all_groups = groups(len(sizes), key_of(self._seed, passes))
        if done == 0:
            state.mean_weights[...], state.mean_bias[:] = state.weights, state.bias
        trees = sum(sizes[block] for group in all_groups[:done] for block in group)
        left = [block for group in all_groups[done:] for block in group.tolist()]
        blocks = _ahead(pool, self._encoded, left, lead)
        for group in all_groups[done:]:
            trees = self._visit(group, [next(blocks) for _ in group], trees)
            state.progress[1] += 1
            self._tell_of_pass(trees)
            if watch.seconds > SECONDS:
                self._folder.save(state)
                watch.lap()
        penalty = (state.bias**2 + sums_of_column_squares(state.weights)) / 2
        state.gap[:] = state.excess / (state.loss + penalty)
        state.loss[:], state.excess[:] = 0, 0
        state.progress[:] = passes + 1, 0
        self._folder.save(state)
        self._tell_of_pass()

    def _tell_of_pass(self, trees: int = 0) -> None:
        passes, gap = int(self._state.progress[0]), float(self._state.gap.max())
        self._tell(Progress(passes, trees, self._folder.n_trees, gap))

    def _encoded(self, number: int) -> EncodedBlock:
        return EncodedBlock.of(self._folder.block(number), self._encoder)

    def _visit(self, group: IntArray, blocks: list[EncodedBlock], visited: int) -> int:
        """Visit the trees of a group in random orders; return how many were visited in the pass."""
        state, (passes, done) = self._state, self._state.progress.tolist()
        alpha = self._folder.read_alpha(passes, group, self._targets.size)
        figures = PassFigures(
            state.mean_weights, state.mean_bias, state.loss, state.excess,
            VISITS * visited, VISITS * self._folder.n_trees,
        )  # fmt: skip
        key, rows = key_of(key_of(self._seed, passes), done), Group(blocks, self._targets)
        rows.visit(alpha, state.weights, state.bias, self._cost, figures, key, VISITS)
        self._folder.write_alpha(passes + 1, group, alpha)
        return visited + len(alpha)


def _ahead(pool: ThreadPoolExecutor, work: Callable[[T], U], items: Iterable[T], lead: int) -> Iterator[U]:
    """Yield the results for items in order, computed in other threads while earlier ones are used."""
    waiting: deque[Future[U]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > lead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
