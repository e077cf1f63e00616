"""Training on more trees than memory holds, by one process that may be killed: one partition, in passes.

A pass is a round of a single partition (``partition``). It visits the blocks in another random order each
time, and each of their rows three times. While some are visited, other threads encode the next ones. The
model is the mean of the weights over all visits of the last pass: after few passes it is much better than the
weights after the last visit.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from treedot._runtime.threads import Threads, open_threads
from treedot._runtime.timing import Stopwatch
from treedot._storage.files import path_list
from treedot.batch.partition import visit_partition
from treedot.batch.rounds import Progress, Rounds, Tell, make_job
from treedot.batch.training_folder import SoleFolder, State, sole_folder
from treedot.errors import SourceError
from treedot.models.linear_model import LinearModel
from treedot.models.training.training_settings import (
    choose,
    described_settings,
    make_classifier,
    make_problems,
)
from treedot.models.training.tree_blocks import BLOCK_TREES
from treedot.models.tree_classifier import TreeClassifier
from treedot.readers import iter_trees
from treedot.trees import Forest

MAX_PASSES = 20
VISITS = 3  # of every tree in a pass
SECONDS = 30.0  # between checkpoints


def train_files(
    paths: Any,
    label: str,
    *,
    checkpoint: str | os.PathLike[str],
    format: str | None = None,
    column: str | None = None,
    unit: str | None = None,
    on_bad: Callable[[SourceError], object] | None = None,
    progress: Tell | None = None,
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
        The column of trees, as in ``read_trees``.
    unit : str, default=None
        Which part of a file is a tree, as in ``read_trees``.
    on_bad : callable, default=None
        Called with the error of every tree that cannot be read, which is then left out.
    progress : callable, default=None
        Called with a ``Progress`` after every batch.
    **settings
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
    class_column: str,
    checkpoint: str | os.PathLike[str],
    reading: dict[str, Any],
    on_bad: Callable[[SourceError], object] | None,
    progress: Tell | None,
    settings: dict[str, Any],
) -> Iterator[LinearModel]:
    """Train as ``train_files`` does; no other process gets the folder while the model is in use."""
    classifier = make_classifier({"max_passes": MAX_PASSES, **settings})
    tell = progress or (lambda _: None)
    files = path_list(paths)
    request = {
        **_described(files),
        **reading,
        "label": class_column,
        "leaving out bad trees": on_bad is not None,
        **described_settings(classifier),
    }

    def batches() -> Iterator[Forest]:
        trees = 0
        for path in files:
            for batch in iter_trees(path, **reading, batch_size=BLOCK_TREES, on_bad=on_bad):
                yield batch
                trees += len(batch)
                tell(Progress(-1, trees, 0, np.inf))

    check = partial(make_problems, classifier)
    with sole_folder(checkpoint, request, class_column, batches, check) as folder:
        yield _train(folder, classifier, class_column, tell)


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


def _train(folder: SoleFolder, classifier: TreeClassifier, class_column: str, tell: Tell) -> LinearModel:
    """Choose the settings, make the passes that are left, and return the model."""
    choice = folder.choice(lambda: choose(folder.trees, classifier))
    how = {"partitions": 1, "rounds": classifier.max_passes, "visits": VISITS}
    folder.write_job(make_job(classifier, [folder.facts], folder.facts, choice, **how))
    rounds = Rounds(folder, tell)
    with open_threads(classifier.n_jobs) as threads:
        state = rounds.run(folder.load(), lambda state: _pass(folder, state, threads, rounds), classifier.tol)
    training = {"gap": float(state.gap.max()), "passes": int(state.progress[0])}
    return rounds.model(state.mean_weights, state.mean_bias, class_column, training)


def _pass(folder: SoleFolder, state: State, threads: Threads, rounds: Rounds) -> State:
    """Visit what is left of a pass, and keep the state after it and now and then."""
    watch = Stopwatch()

    def after(trees: int) -> None:
        rounds.tell(state, trees)
        if watch.seconds > SECONDS:
            folder.save(state)
            watch.lap()

    visit_partition(folder, state, 0, threads=threads, after=after)
    state.gap[:] = state.excess / (state.loss + state.penalty)
    state.loss[:], state.excess[:] = 0, 0
    state.progress[:] = state.progress[0] + 1, 0
    folder.save(state)
    return state
