"""The course of a training: prepare the job, run its rounds, and make the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, Matrix
from treedot._version import __version__
from treedot.batch.training_folder import Job, State, TrainingFolder
from treedot.models.linear_model import LinearModel
from treedot.models.training.training_settings import chosen_spec, make_model, make_problems
from treedot.models.training.tree_blocks import BlockFacts
from treedot.models.tree_classifier import TreeClassifier


class Progress(NamedTuple):
    """The progress of a training."""

    passes: int  # complete passes; -1 while trees are read
    trees: int  # trees read so far, or visited in the current pass
    of_trees: int  # the number of all trees; 0 while they are read
    gap: float  # after the last complete pass


Tell = Callable[[Progress], object]


def make_job(
    classifier: TreeClassifier,
    shards: list[BlockFacts],
    facts: BlockFacts,
    choice: dict[str, Any],
    **how: int,
) -> Job:
    """Return the settings that all partitions share, from the classifier and the facts of all trees.

    ``how`` holds the numbers of partitions, rounds and visits.
    """
    problems = make_problems(classifier, facts)
    return Job(
        shards=shards,
        choice=choice,
        spec=chosen_spec(classifier, choice).to_dict(),
        targets=problems.targets.tolist(),
        cost=(problems.cost * choice["C"]).tolist(),
        seed=int(classifier.random_state),
        **how,
    )


class Rounds:
    """The rounds of a training, with reports of their progress.

    Parameters
    ----------
    folder : TrainingFolder
        The folder; its job must be stored already.
    tell : callable
        Called with a ``Progress``.
    """

    def __init__(self, folder: TrainingFolder, tell: Tell) -> None:
        self._folder, self._tell = folder, tell
        self._n_trees = int(folder.sizes.sum())

    def run(self, state: State, make: Callable[[State], State], tol: float = -np.inf) -> State:
        """Run rounds until the gap is at most ``tol``, or all rounds are done; return the last state."""
        self.tell(state)
        # An interrupted round is always completed: its state is not a model.
        while state.progress[1] or (state.progress[0] < self._folder.job.rounds and state.gap.max() > tol):
            state = make(state)
            self.tell(state)
        return state

    def tell(self, state: State, trees: int = 0) -> None:
        """Report the state, and the number of trees visited in the current round."""
        self._tell(Progress(int(state.progress[0]), trees, self._n_trees, float(state.gap.max())))

    def model(
        self, weights: Matrix, bias: FloatArray, class_column: str, training: dict[str, Any]
    ) -> LinearModel:
        """Return the model with these weights, and the facts of its training."""
        facts = self._folder.trees.facts
        known = {
            "training": {**self._folder.job.choice, **training},
            "data": {"trees": self._n_trees, "digest": facts.digest, "label": class_column},
            "treedot": __version__,
        }
        classes = np.unique(np.array(facts.names, str))
        return make_model(self._folder.spec, classes, weights, bias, known)
