"""Training on the trees of many files by many processes, on one machine or on many."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from treedot._storage.files import remove_folder, remove_stale
from treedot.batch.checkpoint import (
    REQUEST,
    check_apart,
    check_request,
    is_written,
    save_model,
    sole_training,
    write_json,
)
from treedot.batch.engines import Engine, Task, opened
from treedot.batch.partition import add_up, do_partition, pack_shard, with_classes
from treedot.batch.plan import SHARD_SIZE, Plan, find_inputs
from treedot.batch.retries import first_failure, outcomes
from treedot.batch.rounds import Progress, Rounds, Tell, make_job
from treedot.batch.shard import Outcome
from treedot.batch.training_folder import TRAINING, TREES, State, TrainingFolder
from treedot.errors import IncompleteError, ParameterError
from treedot.models.classes import class_names
from treedot.models.linear_model import LinearModel
from treedot.models.model_folder import MODEL
from treedot.models.training.training_settings import (
    choose,
    described_settings,
    make_classifier,
    make_problems,
)
from treedot.models.tree_classifier import DECAYS, TreeClassifier
from treedot.parameters import checked_integer, checked_path
from treedot.readers.on_bad import OnBad
from treedot.readers.ranges import Reading, checked_reading, iter_range

ROUNDS = 10
VISITS = 5
TREES_OF_A_PARTITION = 1 << 14  # at least, if the number of partitions is not given
MAX_PARTITIONS = 16
SHARDS_OF_A_PARTITION = 4  # at least, so that the blocks can be dealt to partitions in many ways
AS_IT_COMES = Reading()
PLANNED = "the plan of its trees"  # in the request: the plan's fingerprint


def fit(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    vectorizer: Any = None,
    client: Any = None,
    *,
    label: str,
    decay: Any = DECAYS,
    damping: Any = None,
    C: Any = "auto",
    cv: int = 5,
    scoring: str = "auto",
    class_weight: Any = None,
    random_state: int = 0,
    rounds: int = ROUNDS,
    visits: int = VISITS,
    partitions: int | None = None,
    workers: int | None = None,
    reading: Reading = AS_IT_COMES,
    shard_size: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    on_done: Callable[[Outcome, int], object] | None = None,
    progress: Tell | None = None,
) -> LinearModel:
    """Train a linear model on the trees of many files, or of one large file, and write its folder.

    It minimises the same objective as ``TreeClassifier`` and ``train_files``, by CoCoA+ (Ma et al. 2015). The
    trees are dealt to K partitions, anew in every round. Starting from the common weights w, each partition
    optimises the α of its own trees by dual coordinate descent, as if all partitions changed w in the same
    way. Then the changes of w are added up. This converges to the optimum of the whole problem; averages of
    separately trained models do not.

    The trees are read once and kept packed in a work folder, at 100 bytes for a tree of 30 nodes; each round
    encodes them again. Every task stores its result in this folder, in a file named after its round and
    partition. So the same call resumes an interrupted training, any worker can take any partition, and the
    model has the same bytes whatever the engine and the number of workers.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files of trees, patterns such as ``"shards/*.parquet"``, and folders.
    out : path
        The folder of the model.
    vectorizer : FragmentVectorizer, default=None
        The vectorizer of the rows. It must hash; by default it has ``2**22`` columns, each with a weight.
    client : object, default=None
        What runs the tasks: None for processes on this machine, a Dask client, the module ``ray``, or any
        ``concurrent.futures.Executor``. All machines must reach files and folders by the same paths.
    label : str
        The column of the classes; its values are converted to strings.
    decay : float or sequence of float, default=(0.2, 0.4)
        The decay λ. If several λ, C or kinds of damping are given, the calling process chooses among them on
        a random sample of 20,000 trees.
    damping : {"linear", "sqrt", "log1p"}, sequence of these, or None, default=None
        The function of the number of times that a fragment occurs, as in ``TreeClassifier``.
    C : float, sequence of float or "auto", default="auto"
        The cost of errors, as in ``TreeClassifier``.
    cv : int, default=5
        The number of folds of the cross-validation.
    scoring : str, default="auto"
        The score by which they are chosen, as for ``TreeClassifier``.
    class_weight : dict or "balanced", default=None
        The factor of C of each class, as in ``TreeClassifier``.
    random_state : int, default=0
        The seed for the order in which examples are visited.
    rounds : int, default=10
        The number of rounds; partitions exchange their results after each.
    visits : int, default=5
        The number of visits to each tree per round. More visits make rounds longer, but fewer are needed.
    partitions : int, default=None
        K, the number of partitions, which are the tasks of a round. By default one for every 16,384 trees, at
        most 16. More partitions need more rounds. The model depends on K.
    workers : int, default=None
        Local processes, each with one thread; by default one for every core.
    reading : Reading, default=Reading()
        How the trees are read: ``Reading(format, column, unit, skip_bad)``.
    shard_size : int, default=None
        The number of bytes of a file that one task reads; by default 16 MiB, or less if ``partitions`` is
        given.
    checkpoint : path, default=None
        The work folder, by default ``out`` with ``.training`` appended. It is removed once the model is
        written.
    overwrite : bool, default=False
        Replace an existing model.
    on_done : callable, default=None
        Called with the ``Outcome`` of every shard that is read, and the number of shards to read.
    progress : callable, default=None
        Called with a ``Progress``, in which passes are rounds, after every task and every round.

    Returns
    -------
    LinearModel
        The model that was written: the mean over all visits of the last round. ``facts["training"]["gap"]``
        is the duality gap at the start of that round, divided by P.

    Raises
    ------
    IncompleteError
        Some tasks failed; the results of the others are kept.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from treedot import FragmentVectorizer, batch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with ThreadPoolExecutor(2) as pool:
    ...     model = batch.fit(
    ...         "docs/examples/questions.tsv", folder / "model", FragmentVectorizer(n_features=2**14), pool,
    ...         label="label", decay=0.2, C=1, partitions=2,
    ...     )
    >>> print(*model.predict(["(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"]))
    person
    """
    target = checked_path("out", out)
    usual = Path(f"{target}.training")
    folder = usual if checkpoint is None else checked_path("checkpoint", checkpoint)
    MODEL.check_target(target, overwrite or is_written(folder, target))
    check_apart(target, folder)
    settings = {"decay": decay, "C": C, "cv": cv, "scoring": scoring, "class_weight": class_weight}
    settings |= {"random_state": random_state, "damping": damping}
    classifier = make_classifier({"vectorizer": vectorizer, **settings})
    request = {
        **described_settings(classifier),
        "label": label,
        "rounds": checked_integer("rounds", rounds, at_least=1),
        "visits": checked_integer("visits", visits, at_least=1),
        "partitions": None if partitions is None else checked_integer("partitions", partitions, at_least=1),
    }
    opened_folder = _opened_folder(folder, request, paths, reading, shard_size)
    with opened(client, workers) as engine, opened_folder:
        training = _Training(Path(os.path.abspath(folder)), engine, progress or (lambda _: None))
        training.read(on_done)
        try:
            training.begin(classifier, request)
        except ParameterError:
            remove_folder(folder)
            raise
        model = training.run()
        if reading.column is not None:
            model.facts["data"]["column"] = reading.column
        save_model(model, target, folder, overwrite)
    return model


@contextlib.contextmanager
def _opened_folder(
    folder: Path, request: dict[str, Any], paths: Any, reading: Reading, shard_size: int | None
) -> Iterator[None]:
    """Hold a work folder, created if it does not exist; raise if it belongs to another training."""
    label, partitions = request["label"], request["partitions"]
    inputs = find_inputs(paths, checked_reading(reading).format, folder)
    work = {"task": "fit", "label": label}

    def fill(aside: Path) -> None:
        size = shard_size
        if size is None and partitions is not None:
            total = sum(source.size for source in inputs)
            size = min(SHARD_SIZE, max(1, total // (partitions * SHARDS_OF_A_PARTITION)))
        plan = Plan.make(work, reading, size, inputs)
        _check_classes(plan, label)
        (aside / TREES).mkdir()
        plan.save(aside / TREES)
        write_json(aside / REQUEST, {**request, PLANNED: plan.fingerprint})

    with sole_training(folder, fill):
        plan = Plan.load(folder / TREES)
        check_request(folder, {**request, PLANNED: plan.fingerprint})
        size = plan.shard_size if shard_size is None else shard_size
        plan.check_same(Plan(work, reading, size, inputs, ()), folder)
        yield


def _check_classes(plan: Plan, class_column: str) -> None:
    """Raise if the first tree has no class, before the long work starts."""
    on_bad = OnBad((lambda _: None) if plan.reading.skip_bad else None)
    for shard in plan.shards:
        path = plan.inputs[shard.file].path
        for trees, columns in iter_range(path, shard.range, plan.reading, 1, on_bad):
            class_names(with_classes(trees, columns, class_column), class_column)
            return


class _Training:
    """The steps of a training in a work folder, run by an engine."""

    def __init__(self, path: Path, engine: Engine, tell: Tell) -> None:
        self._path, self._engine, self._tell = path, engine, tell
        self._plan = Plan.load(path / TREES)
        self._folder = TrainingFolder(path)
        remove_stale(path)
        remove_stale(path / TREES)

    def read(self, on_done: Callable[[Outcome, int], object] | None) -> None:
        """Pack the trees of all shards that are not packed yet."""
        numbers = range(len(self._plan.shards))
        left = [number for number in numbers if not self._folder.shard_place(number).folder.exists()]
        trees = 0
        for outcome in self._all_done(pack_shard, [(number,) for number in left], self._plan.where):
            trees += outcome.rows
            self._tell(Progress(-1, trees, 0, np.inf))
            if on_done is not None:
                on_done(outcome, len(left))

    def begin(self, classifier: TreeClassifier, request: dict[str, Any]) -> None:
        """Choose the settings and store what partitions need, unless that is done already."""
        if (self._path / TRAINING).exists():
            return
        shards = [self._folder.read_facts(number) for number in range(len(self._plan.shards))]
        trees = self._folder.packed(shards)
        make_problems(classifier, trees.facts)  # raises if the classes cannot be trained on
        blocks, n_trees = len(trees.facts.sizes), sum(trees.facts.sizes)
        usual = min(max(1, n_trees // TREES_OF_A_PARTITION), MAX_PARTITIONS, blocks)
        partitions = request["partitions"] or usual
        if partitions > blocks:
            raise ParameterError(
                f"{n_trees} trees in {blocks} block(s) are too few for {partitions} partitions: use fewer, "
                "or a smaller shard_size"
            )
        how = {"partitions": partitions, "rounds": request["rounds"], "visits": request["visits"]}
        job = make_job(classifier, shards, trees.facts, choose(trees, classifier), **how)
        self._folder.write_job(job)

    def run(self) -> LinearModel:
        """Do the remaining rounds, and return the model."""
        job, rounds = self._folder.job, Rounds(self._folder, self._tell)
        state = rounds.run(self._folder.load(self._folder.rounds_done()), partial(self._round, rounds))
        training = {"gap": float(state.gap.max()), "rounds": job.rounds, "partitions": job.partitions}
        return rounds.model(state.weights, state.bias, self._plan.work["label"], training)

    def _round(self, rounds: Rounds, state: State) -> State:
        """Run the remaining partitions of a round, and add up their results."""
        folder, done, numbers = self._folder, int(state.progress[0]), range(self._folder.job.partitions)
        left = [number for number in numbers if not folder.update_path(done + 1, number).exists()]
        trees = sum(folder.n_trees(done, number) for number in numbers if number not in left)
        tasks = [(done, number) for number in left]
        for outcome in self._all_done(do_partition, tasks, "partition {}".format):
            trees += outcome.rows
            rounds.tell(state, trees)
        return add_up(folder, state)

    def _all_done(
        self, function: Callable[..., Outcome], tasks: list[Task], name: Callable[[int], str]
    ) -> Iterator[Outcome]:
        """Yield the outcomes of all tasks; raise at the end if some failed."""
        folder, failed = os.fspath(self._path), list[Outcome]()
        for outcome in outcomes(self._engine, function, [(folder, *task) for task in tasks]):
            if outcome.error:
                failed.append(outcome)
            else:
                yield outcome
        remove_stale(self._path)
        if failed:
            raise IncompleteError(
                f"{len(failed)} of {len(tasks)} tasks failed ({first_failure(failed, name)}); the results of "
                f"the others are kept in {folder}. Run it again to try only these, or delete the folder to "
                "start again with other files"
            )
