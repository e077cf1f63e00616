"""Training on more trees than memory holds: passes over blocks of trees on disk, that may be killed.

The problem and the method are those of ``coordinate_descent``. Each pass visits the blocks in another random
order, some of them at a time as a *group* whose rows are visited in random order. While a group is visited,
other threads encode the next ones. The model is the mean of the weights over all visits of the last pass:
after few passes it is much better than the weights after the last visit.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_matrix, vstack

from treedot.algebra.splitmix import GOLDEN, mix
from treedot.array_types import Array, FloatArray, IntArray, Matrix
from treedot.encode import SparseEncoder, SparseSpec
from treedot.encode.sparse.rows import sums_of_squares
from treedot.errors import ParameterError, SourceError
from treedot.learn.candidates import Candidate, candidates
from treedot.learn.coordinate_descent import Descent, PassFigures, Rows, shuffle, visit_rows
from treedot.learn.fragment_vectorizer import FragmentVectorizer
from treedot.learn.one_vs_rest import class_costs
from treedot.learn.training_folder import State, TrainingFolder, training_folder
from treedot.learn.tree_blocks import BLOCK_TREES, Block, BlockFacts
from treedot.learn.tree_classifier import TreeClassifier
from treedot.model import LinearModel
from treedot.model.fragment_rows import FragmentRows
from treedot.model.tree_inputs import FragmentInput
from treedot.parameters import checked_integer, checked_positive, n_threads
from treedot.readers import iter_trees
from treedot.timing import Stopwatch
from treedot.trees import Forest

N_FEATURES = 2**22
MAX_WEIGHTS = 2**30  # all columns have weights, whether or not they occur
MAX_PASSES = 20
GROUP = 8  # blocks whose trees are visited in one random order
SAMPLE = 20_000  # trees that settings are chosen on
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
    format, column, unit, on_bad
        As ``read_trees`` takes them.
    progress : callable, optional
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
    classifier = TreeClassifier(**{"max_passes": MAX_PASSES, **settings})
    if classifier.vectorizer is None and classifier.kernel is None:
        classifier.vectorizer = FragmentVectorizer(n_features=N_FEATURES)
    tell = progress or (lambda _: None)
    files = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    reading: dict[str, Any] = {"format": format, "column": column, "unit": unit}

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
        **_described_settings(classifier),
    }
    check = partial(_problems, classifier)
    with training_folder(checkpoint, request, label, read, check) as folder:
        return _train(folder, classifier, label, tell)


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


def _described_settings(classifier: TreeClassifier) -> dict[str, Any]:
    """Return the settings that a model depends on, checked, as JSON values."""
    choices, costs = candidates(classifier)
    specs = [_spec(choice) for choice in choices]
    checked_positive("tol", classifier.tol)
    checked_integer("max_passes", classifier.max_passes, at_least=1)
    weight = classifier.class_weight
    if isinstance(weight, dict):
        weight = {str(name): checked_positive("class_weight", value) for name, value in weight.items()}
    else:
        class_costs(weight, np.arange(2), np.ones(2))
    return {
        "decay": [spec.decay for spec in specs],
        "rows": [spec.fingerprint for spec in specs],
        "C": costs,
        "cv": checked_integer("cv", classifier.cv, at_least=2) if len(specs) * len(costs) > 1 else None,
        "class_weight": weight,
        "random_state": checked_integer("random_state", classifier.random_state),
    }


def _spec(choice: Candidate) -> SparseSpec:
    """Return the settings of rows that are streamed; those that need all trees in memory are refused."""
    vectorizer: Any
    vectorizer, *others = (getattr(each, "vectorizer", None) for each in choice.inputs)
    plain = isinstance(vectorizer, FragmentVectorizer) and vectorizer.n_features is not None
    plain = plain and vectorizer.rest is None and vectorizer.idf is False
    if others or choice.inputs[0].reads.are_named or not plain:
        raise ParameterError(
            "a training that may be killed is one on the trees of one column (column=, or --column), as rows "
            "with hashed columns, no rest and no idf, as FragmentVectorizer(n_features=2**22) makes them: "
            "train on all else in memory"
        )
    spec: SparseSpec = vectorizer.spec
    return spec


class _Problems(NamedTuple):
    """The problems of one class against the rest; a single one for two classes."""

    classes: Array  # ascending
    targets: IntArray  # the number of the class on the positive side of each problem
    cost: FloatArray  # (problems, 2), for C = 1


def _problems(classifier: TreeClassifier, facts: BlockFacts) -> _Problems:
    """Return the problems of some trees; raise where they cannot be trained on."""
    classes, order = np.unique(np.array(facts.names, str), return_index=True)
    if classes.size < 2:
        raise ParameterError(f"there must be trees of at least two classes: all are of {facts.names}")
    targets = order[1:] if classes.size == 2 else order
    spec = _spec(candidates(classifier)[0][0])
    if (spec.n_features or 0) * targets.size > MAX_WEIGHTS:
        raise ParameterError(
            f"{spec.n_features} columns are too many for {classes.size} classes, since all have weights: "
            "give vectorizer=FragmentVectorizer(n_features=...) with fewer"
        )
    cost = class_costs(classifier.class_weight, classes, np.array(facts.counts)[order])
    return _Problems(classes, targets, cost)


def _train(
    folder: TrainingFolder, classifier: TreeClassifier, label: str, tell: Callable[[Progress], object]
) -> LinearModel:
    """Choose the settings, make the passes that are left, and return the model."""
    classes, targets, cost = _problems(classifier, folder.facts)
    choice = folder.choice(lambda: _choose(folder, classifier))
    specs = map(_spec, candidates(classifier)[0])
    spec = next(spec for spec in specs if spec.decay == choice["decay"])
    training = _Training(folder, spec, targets, cost * choice["C"], int(classifier.random_state), tell)
    state = training.run(classifier.tol, classifier.max_passes, classifier.n_jobs)
    used = np.flatnonzero(state.mean_weights.any(axis=1))
    facts = {
        "training": {**choice, "gap": float(state.gap.max()), "passes": int(state.progress[0])},
        "data": {"trees": folder.n_trees, "digest": folder.facts.digest, "label": label},
    }
    trees = FragmentInput(None, FragmentRows(spec))
    return LinearModel([trees], classes, used, state.mean_weights[used], state.mean_bias, facts)


def _choose(folder: TrainingFolder, classifier: TreeClassifier) -> dict[str, Any]:
    """Return λ and C: the only ones, or those that are best on a sample."""
    choices, costs = candidates(classifier)
    if len(choices) * len(costs) == 1:
        return {"decay": choices[0].decay, "C": costs[0], "trials": []}
    sample, numbers = _sample(folder, int(classifier.random_state))
    chosen = TreeClassifier(**{**classifier.get_params(deep=False), "max_passes": 1000})
    chosen.fit(sample, np.array(folder.facts.names)[numbers])
    trials = [trial._asdict() for trial in chosen.trials_]
    return {"decay": chosen.decay_, "C": chosen.C_, "trials": trials}


def _sample(folder: TrainingFolder, seed: int) -> Block:
    """Return random trees of every block, and the first tree of every class."""
    share = -(-SAMPLE // len(folder.facts.sizes))
    met, parts = 0, []
    for number in range(len(folder.facts.sizes)):
        trees, classes = folder.block(number)
        chosen = _shuffled(len(trees), _key(seed, number))[:share]
        # Classes have numbers in the order in which they were met.
        new = [np.flatnonzero(classes == name)[0] for name in range(met, max(met, classes.max() + 1))]
        met += len(new)
        which = np.unique([*chosen.tolist(), *new])
        parts.append(Block(trees[which], classes[which]))
    return Block(Forest.concat(part.trees for part in parts), np.concatenate([p.classes for p in parts]))


class _Rows(NamedTuple):
    """Rows of some trees, and the numbers of the classes."""

    rows: csr_matrix
    classes: IntArray


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
                self._pass(pool, lead=2 * GROUP if threads > 1 else 0)
        return state

    def _pass(self, pool: ThreadPoolExecutor, lead: int) -> None:
        """Visit what is left of a pass, and keep the state after it and now and then."""
        state, watch = self._state, Stopwatch()
        passes, done = state.progress.tolist()
        order = _shuffled(len(self._folder.facts.sizes), _key(self._seed, passes))
        if done == 0:
            state.mean_weights[...], state.mean_bias[:] = state.weights, state.bias
        groups = [order[i : i + GROUP] for i in range(0, order.size, GROUP)]
        trees = sum(self._folder.facts.sizes[block] for block in order[: done * GROUP])
        blocks = _ahead(pool, self._encoded, order[done * GROUP :].tolist(), lead)
        for group in groups[done:]:
            trees = self._visit(group, [next(blocks) for _ in group], trees)
            state.progress[1] += 1
            self._tell_of_pass(trees)
            if watch.seconds > SECONDS:
                self._folder.save(state)
                watch.lap()
        penalty = (state.bias**2 + _squares(state.weights)) / 2
        state.gap[:] = state.excess / (state.loss + penalty)
        state.loss[:], state.excess[:] = 0, 0
        state.progress[:] = passes + 1, 0
        self._folder.save(state)
        self._tell_of_pass()

    def _tell_of_pass(self, trees: int = 0) -> None:
        passes, gap = int(self._state.progress[0]), float(self._state.gap.max())
        self._tell(Progress(passes, trees, self._folder.n_trees, gap))

    def _encoded(self, number: int) -> _Rows:
        trees, classes = self._folder.block(number)
        return _Rows(self._encoder.encode(trees), classes)

    def _visit(self, group: IntArray, blocks: list[_Rows], visited: int) -> int:
        """Visit the trees of a group in random order; return how many were visited in the pass."""
        state, (passes, done) = self._state, self._state.progress.tolist()
        matrix = vstack([block.rows for block in blocks], "csr")
        rows = Rows(matrix.indptr, matrix.indices, matrix.data)
        positive = np.concatenate([block.classes for block in blocks])[:, None] == self._targets
        alpha = self._folder.read_alpha(passes, group, self._targets.size)
        order = _shuffled(len(alpha), _key(_key(self._seed, passes), done))
        descent = Descent(positive, self._cost, alpha, state.weights, state.bias)
        figures = PassFigures(
            state.mean_weights, state.mean_bias, state.loss, state.excess, visited, self._folder.n_trees
        )
        visit_rows(rows, sums_of_squares(np.diff(rows.indptr), rows.data), order, descent, figures)
        self._folder.write_alpha(passes + 1, group, alpha)
        return visited + len(alpha)


def _squares(weights: Matrix) -> FloatArray:
    """Return the sum of the squares of every column, in double precision, some rows at a time."""
    parts = np.array_split(weights, max(1, len(weights) >> 16))
    return sum((np.square(part, dtype=np.float64).sum(axis=0) for part in parts), np.zeros(weights.shape[1]))


def _key(seed: int, number: int) -> int:
    return mix(seed + (number + 1) * GOLDEN)


def _shuffled(count: int, key: int) -> IntArray:
    order = np.arange(count)
    shuffle(order, np.uint64(key))
    return order


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
