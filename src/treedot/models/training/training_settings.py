"""Train on files of trees: check the settings, set up the problems, and make the model."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray, Matrix
from treedot.errors import ParameterError
from treedot.models.calibration import Calibration
from treedot.models.inputs.tree_inputs import FragmentInput
from treedot.models.linear_model import LinearModel
from treedot.models.training.block_visits import key_of, shuffled
from treedot.models.training.candidates import Candidate, candidates, is_auto
from treedot.models.training.one_vs_rest import class_costs
from treedot.models.training.train import chosen_scoring
from treedot.models.training.tree_blocks import Block, BlockFacts
from treedot.models.tree_classifier import TreeClassifier
from treedot.parameters import checked_flag, checked_integer, checked_positive
from treedot.trees import Forest
from treedot.vectors.fragment_vectorizer import FragmentVectorizer
from treedot.vectors.sparse.fitted_rows import FittedRows
from treedot.vectors.spec import SparseSpec

N_FEATURES = 2**22  # fewer than for training in memory, since all columns have weights
MAX_WEIGHTS = 2**30  # columns × problems; unused columns have weights, too
SAMPLE = 20_000  # trees used to choose the settings
CALIBRATION = "calibration"  # in a choice


class LabelledTrees(Protocol):
    """Trees with classes, in blocks."""

    @property
    def facts(self) -> BlockFacts:
        """The sizes of the blocks, and the classes."""

    def block(self, number: int) -> Block:
        """Return the block with this number."""


class Problems(NamedTuple):
    """The problems of one class against the rest; a single one for two classes."""

    classes: Array  # ascending
    targets: IntArray  # the number of the class on the positive side of each problem
    cost: FloatArray  # (problems, 2), for C = 1


def make_classifier(settings: dict[str, Any]) -> TreeClassifier:
    """Return a classifier that holds the settings; its default vectorizer has ``N_FEATURES`` columns."""
    classifier = TreeClassifier(**settings)
    if classifier.vectorizer is None and classifier.kernel is None:
        classifier.vectorizer = FragmentVectorizer(n_features=N_FEATURES)
    if is_auto(classifier.class_weight):
        classifier.class_weight = None
    return classifier


def described_settings(classifier: TreeClassifier) -> dict[str, Any]:
    """Check the settings that a model depends on, and return them as JSON values."""
    choices, costs = candidates(classifier)
    specs = [row_spec(choice) for choice in choices]
    checked_positive("tol", classifier.tol)
    checked_integer("max_passes", classifier.max_passes, at_least=1)
    scoring = chosen_scoring(classifier.scoring, np.ones(2))
    weight = classifier.class_weight
    if isinstance(weight, dict):
        weight = {str(name): checked_positive("class_weight", value) for name, value in weight.items()}
    else:
        class_costs(weight, np.arange(2), np.ones(2))
    calibrate = classifier.calibrate == "auto" or checked_flag("calibrate", classifier.calibrate)
    without = {} if calibrate else {"calibrate": False}
    return {
        **without,
        "decay": [spec.decay for spec in specs],
        "rows": [spec.fingerprint for spec in specs],
        "C": costs,
        "cv": checked_integer("cv", classifier.cv, at_least=2) if len(specs) * len(costs) > 1 else None,
        "class_weight": weight,
        "random_state": checked_integer("random_state", classifier.random_state),
        **({} if is_auto(classifier.scoring) else {"scoring": scoring}),
    }


def row_spec(choice: Candidate) -> SparseSpec:
    """Return the settings of the rows; raise ParameterError if they need all trees in memory."""
    vectorizer: Any
    vectorizer, *others = (getattr(each, "vectorizer", None) for each in choice.inputs)
    plain = isinstance(vectorizer, FragmentVectorizer) and vectorizer.n_features is not None
    plain = plain and vectorizer.rest is None and vectorizer.idf is False
    if others or choice.inputs[0].reads.are_named or not plain:
        raise ParameterError(
            "training on files needs a single tree column (column=…), and rows of FragmentVectorizer with "
            "hashed columns (n_features=2**22), without rest and idf: train in memory with other settings"
        )
    spec: SparseSpec = vectorizer.spec
    return spec


def make_problems(classifier: TreeClassifier, facts: BlockFacts) -> Problems:
    """Return the problems; raise ParameterError if there is one class only, or too many columns."""
    classes, order = np.unique(np.array(facts.names, str), return_index=True)
    if classes.size < 2:
        raise ParameterError(f"the trees must have at least two classes, not only {facts.names}")
    targets = order[1:] if classes.size == 2 else order
    spec = row_spec(candidates(classifier)[0][0])
    if (spec.n_features or 0) * targets.size > MAX_WEIGHTS:
        raise ParameterError(
            f"{spec.n_features} columns are too many for {classes.size} classes, since all have weights: "
            "use a vectorizer with a smaller n_features"
        )
    cost = class_costs(classifier.class_weight, classes, np.array(facts.counts)[order])
    return Problems(classes, targets, cost)


def choose(trees: LabelledTrees, classifier: TreeClassifier) -> dict[str, Any]:
    """Return λ, C and damping: the given ones, or the best of several on a sample of the trees.

    In the second case, the calibration of the sample belongs to the choice, if the sample has all classes.
    """
    choices, costs = candidates(classifier)
    if len(choices) * len(costs) == 1:
        return _chosen(choices[0].settings.decay, choices[0].settings.damping, costs[0], trials=[])
    sample, numbers = _sample(trees, int(classifier.random_state))
    chosen = TreeClassifier(**{**classifier.get_params(deep=False), "max_passes": 1000})
    common = np.bincount(numbers)[numbers] > 1  # folds cannot test classes of a single tree
    if np.unique(numbers[common]).size > 1:
        sample, numbers = sample[common], numbers[common]
    chosen.fit(sample, np.array(trees.facts.names)[numbers])
    trials = [trial.stored() for trial in chosen.selection_]
    choice = _chosen(chosen.decay_, chosen.damping_, chosen.C_, trials=trials, scoring=chosen.scoring_)
    if chosen.calibration_ is None or chosen.classes_.size < len(trees.facts.names):
        return choice
    # The threshold between two classes is not used.
    return {**choice, CALIBRATION: chosen.calibration_.moved(-chosen.threshold_).to_dict()}


def _chosen(decay: float | None, damping: str | None, C: float, **more: Any) -> dict[str, Any]:
    """Return a choice; the damping is a part of it unless the vectorizer determines it."""
    return {"decay": decay, **({} if damping is None else {"damping": damping}), "C": C, **more}


def _sample(trees: LabelledTrees, seed: int) -> Block:
    """Return random trees of every block, with the first two trees of every class in its first block."""
    share = -(-SAMPLE // len(trees.facts.sizes))
    met, parts = 0, []
    for number in range(len(trees.facts.sizes)):
        forest, classes = trees.block(number)
        chosen = shuffled(len(forest), key_of(seed, number))[:share]
        # Classes are numbered in the order of their first trees.
        new = range(met, max(met, classes.max() + 1))
        firsts = [np.flatnonzero(classes == name)[:2] for name in new]
        met += len(new)
        which = np.unique(np.concatenate([chosen, *firsts]))
        parts.append(Block(forest[which], classes[which]))
    return Block(Forest.concat(part.trees for part in parts), np.concatenate([p.classes for p in parts]))


def chosen_spec(classifier: TreeClassifier, choice: dict[str, Any]) -> SparseSpec:
    """Return the settings of the rows with the chosen λ and damping."""
    choices = candidates(classifier)[0]
    chosen = choice["decay"], choice.get("damping", choices[0].settings.damping)
    return next(row_spec(each) for each in choices if (each.settings.decay, each.settings.damping) == chosen)


def make_model(
    spec: SparseSpec, classes: Array, weights: Matrix, bias: FloatArray, facts: dict[str, Any]
) -> LinearModel:
    """Return the model with the non-zero weights among those of all columns.

    ``facts["training"]`` is the choice of the settings and more; the calibration is taken out of it.
    """
    used = np.flatnonzero(weights.any(axis=1))
    training = dict(facts["training"])
    stored = training.pop(CALIBRATION, None)
    calibration = None if stored is None else Calibration.of_dict(stored, classes.size)
    facts, inputs = {**facts, "training": training}, [FragmentInput(None, FittedRows(spec))]
    return LinearModel(inputs, classes, used, weights[used], bias, facts, calibration)
