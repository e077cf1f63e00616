"""Train on more trees than fit in memory, in one process that can be killed and resumed.

A pass is a round with a single partition (``partition``). Each pass visits the blocks in a new random order,
and each of their rows three times. Meanwhile other threads encode the next blocks. The model is the mean of
the weights over all visits of the last pass: after few passes it is much better than the final weights.
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
VISITS = 3  # visits to every tree in a pass
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

    It minimises the same objective as ``TreeClassifier``, by the same steps, but with single-precision
    weights for all columns. The trees are read once and kept in a folder, at 100 bytes for a tree of 30
    nodes. Each pass stores its result there. So the same call resumes a training that was killed, and the
    model has the same bytes as without the interruption.

    Parameters
    ----------
    paths : path or sequence of paths
        Files of trees, as ``read_trees`` takes them.
    label : str
        The column of the classes; its values are converted to strings.
    checkpoint : path
        The folder of the training. It must not exist, or belong to the same training: the same unchanged
        files and the same settings, except ``tol``, ``max_passes`` and ``n_jobs``. So a finished training can
        be given more passes. The folder stays until you delete it.
    format : str, default=None
        The format of the files, as in ``read_trees``.
    column : str, default=None
        The column of trees, as in ``read_trees``.
    unit : str, default=None
        Which part of a file is a tree, as in ``read_trees``.
    on_bad : callable, default=None
        Called with the error of every tree that cannot be read; the tree is then skipped.
    progress : callable, default=None
        Called with a ``Progress`` after every batch.
    **settings
        The parameters of ``TreeClassifier``. If several λ or C are given, the choice is made on a random
        sample of 20,000 trees. The vectorizer must hash; by default it has ``2**22`` columns. ``max_passes``
        is 20 by default.

    Returns
    -------
    LinearModel
        The model; ``facts["training"]["gap"]`` is an estimate of the duality gap.

    Notes
    -----
    The weights are means over all visits of the last pass. After few passes they are much better than the
    final weights; in the limit they are the same. Their duality gap is at most the mean gap over the visits,
    since P is convex and D is concave. The mean gap is estimated: each row contributes to it with the weights
    at its visit.

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
    """Train as ``train_files`` does; keep other processes out of the folder while the model is in use."""
    classifier = make_classifier({"max_passes": MAX_PASSES, **settings})
    tell = progress or (lambda _: None)
    files = path_list(paths)
    request = {
        **_described(files),
        **reading,
        "label": class_column,
        "leaving out bad trees": on_bad is not None,  # stored: the name must not change
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
        model = _train(folder, classifier, class_column, tell)
        if reading["column"] is not None:
            model.facts["data"]["column"] = reading["column"]
        yield model


def _described(files: list[Any]) -> dict[str, Any]:
    """Return the path, size and modification time of files, to detect other or changed files."""
    if not files:
        raise SourceError("no files to train on")
    found: dict[str, Any] = {"files": [os.path.abspath(path) for path in files]}
    for path in files:
        if not os.path.isfile(path):
            raise SourceError(f"cannot train on {path}: with a checkpoint, only regular files can be read")
        status = os.stat(path)
        found[os.path.abspath(path)] = [status.st_size, status.st_mtime_ns]
    return found


def _train(folder: SoleFolder, classifier: TreeClassifier, class_column: str, tell: Tell) -> LinearModel:
    """Choose the settings, make the remaining passes, and return the model."""
    choice = folder.choice(lambda: choose(folder.trees, classifier))
    how = {"partitions": 1, "rounds": classifier.max_passes, "visits": VISITS}
    folder.write_job(make_job(classifier, [folder.facts], folder.facts, choice, **how))
    rounds = Rounds(folder, tell)
    with open_threads(classifier.n_jobs) as threads:
        state = rounds.run(folder.load(), lambda state: _pass(folder, state, threads, rounds), classifier.tol)
    training = {"gap": float(state.gap.max()), "passes": int(state.progress[0])}
    return rounds.model(state.mean_weights, state.mean_bias, class_column, training)


def _pass(folder: SoleFolder, state: State, threads: Threads, rounds: Rounds) -> State:
    """Visit the rest of a pass; store the state after it, and at intervals."""
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
