"""Choose among settings by cross-validation, with successive halving."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot._runtime.threads import thread_map
from treedot.models.training.candidates import Candidate, plain_candidate
from treedot.models.training.folds import Fold, Task, folds_of, smallest_class, split_folds
from treedot.models.training.scoring import Truth, kept, scored
from treedot.models.training.thresholds import chosen_threshold
from treedot.models.training.train import Penalty, Trainer, plain_penalty
from treedot.models.training.trials import Trial
from treedot.parameters import checked_integer

Progress = Callable[[int, int], object]
FEW = 12  # settings that are all tried on all folds
FINALISTS = 2  # settings that are tried on all folds, if there are more
LEAST = 500  # examples that a training of the search gets at least, if there are this many
ROUGH = 0.1  # the least tolerance of trainings on a part of the examples


class HeldOut(NamedTuple):
    """The positions of the test examples of a fold, and their scores."""

    test: IntArray
    scores: FloatArray  # (examples, problems)


class Selection(NamedTuple):
    """The outcome of a search.

    ``best`` is the number of the best setting, ``threshold`` is what to subtract from the scores of two
    classes, and ``held_out`` holds the scores of the best setting on all folds, less the threshold.
    """

    trials: list[Trial]
    best: int
    threshold: float
    held_out: list[HeldOut]


class Rung(NamedTuple):
    """A step of successive halving: which folds train on which share of their examples."""

    first: int
    end: int
    share: float
    keep: int  # settings that stay after this rung

    def of(self, folds: list[tuple[IntArray, IntArray]], y: Array) -> list[tuple[IntArray, IntArray]]:
        """Return the folds of this rung, each with its share of training examples of every class."""
        step = 1 / self.share
        cut = []
        for train, test in folds[self.first : self.end]:
            by_class = train[np.argsort(y[train], kind="stable")]
            which = np.arange(0, train.size, step).astype(np.int64)
            cut.append((np.sort(by_class[which]), test))
        return cut


def rungs(n_settings: int, n_folds: int, n_examples: int) -> list[Rung]:
    """Plan successive halving; a few settings are all tried on all folds.

    A quarter of the settings stay after training on a ninth of the examples of the first fold, and a quarter
    of these after training on a third of them. The rest is trained on all examples of two folds, and the best
    two on all folds. With few examples, a single training on ``LEAST`` leaves an eighth; if there are fewer
    in all, two whole folds leave an eighth for all folds.

    Examples
    --------
    >>> [rung.keep for rung in rungs(64, 5, 5000)]
    [16, 4, 2, 1]
    """
    if n_settings <= FEW:
        return [Rung(0, n_folds, 1.0, 1)]
    n_train = n_examples - n_examples // n_folds
    share = max(1 / 9, LEAST / n_train)
    eighth = max(n_settings // 8, FINALISTS)
    if share < 1 / 4:
        planned = [Rung(0, 1, share, max(n_settings // 4, FINALISTS))]
        planned.append(Rung(0, 1, 1 / 3, max(n_settings // 16, FINALISTS)))
    else:  # a third would not tell much more
        planned = [Rung(0, 1, share, eighth)] if share < 1 else []
    two = min(2, n_folds)
    return [
        *planned,
        Rung(0, two, 1.0, FINALISTS if planned else eighth),
        Rung(two, n_folds, 1.0, 1),
    ]


def selected(
    candidates: list[Candidate],
    penalties: list[Penalty],
    task: Task,
    trainer: Trainer,
    groups: Array | None,
    cv: Any,
    scoring: str,
    n_jobs: int | None,
    progress: Progress | None,
) -> Selection:
    """Choose among all candidates and penalties; warn and take usual ones if a class has a single example."""
    n_folds = checked_integer("cv", cv, at_least=2)
    if smallest_class(task.y) > 1:
        folds = split_folds(task.y, n_folds, groups)
        return select(candidates, penalties, task, folds, trainer, scoring, n_jobs, progress)
    candidate, penalty = plain_candidate(candidates, len(task.y)), plain_penalty(penalties)
    settings = candidates[candidate].settings
    values = {"decay": settings.decay, "C": penalties[penalty].C}
    shown = ", ".join(f"{name} {value:g}" for name, value in values.items() if value is not None)
    warnings.warn(
        f"a class has a single tree, so no settings can be chosen by cross-validation: taking {shown}"
        f"{', idf' if settings.idf else ''}; give every class at least two trees",
        UserWarning,
        stacklevel=3,
    )
    return Selection([], candidate * len(penalties) + penalty, 0.0, [])


def select(
    candidates: list[Candidate],
    penalties: list[Penalty],
    task: Task,
    folds: list[tuple[IntArray, IntArray]],
    trainer: Trainer,
    scoring: str,
    n_jobs: int | None,
    progress: Progress | None,
) -> Selection:
    """Try every candidate with every penalty by successive halving."""
    search = _Search(candidates, penalties, task, trainer, scoring)
    plan = rungs(len(search.alive), len(folds), len(task.table))
    sizes = [len(search.alive), *(rung.keep for rung in plan)]
    done, total = 0, sum(n * (rung.end - rung.first) for n, rung in zip(sizes, plan, strict=False))
    for rung in plan:
        if rung.first == 0:  # trainings on fewer examples do not count any more
            search.forget()
        for _ in search.try_alive(rung.of(folds, task.y), rung.share < 1, n_jobs):
            done += 1
            if progress is not None:
                progress(done, total)
        search.keep(rung.keep)
    (best,) = search.alive
    threshold = search.threshold(best)
    return Selection(search.trials(), best, threshold, search.held_out(best, threshold))


class _Result:
    """The results of one setting: its trainings, and the scores of the test examples that count."""

    def __init__(self) -> None:
        self.tested: list[IntArray] = []
        self.found: list[Array] = []
        self.examples, self.seconds = 0, 0.0

    def add(self, fold: Fold, found: Array, seconds: float) -> None:
        self.examples = self.examples if self.tested else fold.train.size
        self.tested.append(fold.test)
        self.found.append(found)
        self.seconds += seconds

    def forget(self) -> None:
        """Forget everything but the time that it took."""
        self.tested, self.found = [], []


class _Search:
    """The settings of a search, numbered by candidate and then by penalty, and their results so far."""

    def __init__(
        self,
        candidates: list[Candidate],
        penalties: list[Penalty],
        task: Task,
        trainer: Trainer,
        scoring: str,
    ) -> None:
        self._candidates, self._penalties = candidates, penalties
        self._task, self._trainer, self._scoring = task, trainer, scoring
        self.alive = list(range(len(candidates) * len(penalties)))
        self._results = [_Result() for _ in self.alive]
        self._scores = np.zeros(len(self.alive))
        self._truth = Truth(task.number, task.sample_weight, task.classes.size)

    def forget(self) -> None:
        """Forget the results of all settings that are alive."""
        for number in self.alive:
            self._results[number].forget()

    def try_alive(
        self, folds: list[tuple[IntArray, IntArray]], rough: bool, n_jobs: int | None
    ) -> Iterator[int]:
        """Try the settings that are alive on folds; yield their numbers as they are done."""
        by_candidate = groupby(self.alive, lambda number: number // len(self._penalties))
        own = {candidate: list(numbers) for candidate, numbers in by_candidate}
        trainer = self._trainer._replace(tol=max(ROUGH, self._trainer.tol)) if rough else self._trainer
        inputs = [self._candidates[candidate].inputs for candidate in own]
        names = list(own)
        with thread_map(n_jobs) as run_all:
            for place, fold in folds_of(inputs, self._task, folds, n_jobs):
                numbers = own[names[place]]
                penalties = [self._penalties[number % len(self._penalties)] for number in numbers]
                done = run_all(self._try, [trainer] * len(numbers), [fold] * len(numbers), penalties)
                for number, (scores, seconds) in zip(numbers, done, strict=True):
                    found = kept(self._scoring, scores) if rough else scores
                    self._results[number].add(fold, found, seconds)
                    yield number

    def _try(self, trainer: Trainer, fold: Fold, penalty: Penalty) -> tuple[Array, float]:
        """Train on a fold; return the scores of its test examples, and the processor time."""
        start, task = time.thread_time(), self._task
        fit = trainer(fold.rows, task.positive[fold.train], penalty.costs, task.sample_weight[fold.train])
        scores = (fold.left_out @ fit.weights + fit.bias).astype(np.float32)
        return scores, time.thread_time() - start

    def keep(self, count: int) -> None:
        """Keep the best settings alive; of equally good ones, those with the lowest numbers."""
        for number in self.alive:
            result = self._results[number]
            truth = self._truth.take(np.concatenate(result.tested))
            self._scores[number] = scored(self._scoring, np.concatenate(result.found), truth)
        ranked = sorted(self.alive, key=lambda number: -self._scores[number])
        self.alive = sorted(ranked[:count])
        for number in ranked[count:]:
            self._results[number].found.clear()

    def threshold(self, number: int) -> float:
        """Return the threshold of a setting that was tried on all folds; 0 for more than two classes."""
        result = self._results[number]
        if len(self._task.classes) > 2:
            return 0.0
        tested = np.concatenate(result.tested)
        fold = np.repeat(np.arange(len(result.tested)), [test.size for test in result.tested])
        scores = np.concatenate(result.found)[:, 0].astype(np.float64)
        return chosen_threshold(self._scoring, scores, self._truth.take(tested), fold)

    def held_out(self, number: int, threshold: float) -> list[HeldOut]:
        """Return the scores of a setting that was tried on all folds, less a threshold."""
        result = self._results[number]
        return [HeldOut(t, f - threshold) for t, f in zip(result.tested, result.found, strict=True)]

    def trials(self) -> list[Trial]:
        """Return all settings with their results: first those that got furthest, the best of them first."""
        settings = list(product((each.settings for each in self._candidates), self._penalties))
        results, scores = self._results, self._scores

        def order(number: int) -> tuple[Any, ...]:
            result = results[number]
            return -len(result.tested), -result.examples, -scores[number], number

        return [
            Trial(
                C=settings[number][1].C,
                balanced=settings[number][1].balanced,
                score=float(scores[number]),
                folds=len(results[number].tested),
                examples=results[number].examples,
                seconds=results[number].seconds,
                chosen=[number] == self.alive,
                **settings[number][0]._asdict(),
            )
            for number in sorted(range(len(results)), key=order)
        ]
