"""From the scores of a model to probabilities."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot.errors import ParameterError, SourceError


class IfCalibrated:
    """A method of a classifier that is missing, with the reason, if the classifier is known to lack it.

    scikit-learn's ``available_if`` does the same, but its message lacks the reason.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __get__(self, classifier: Any, owner: type) -> Any:
        if classifier is None:
            return self._method
        is_missing = vars(classifier).get("calibration_", self) is None
        if classifier.calibrate is False or (classifier.calibrate == "auto" and is_missing):
            raise AttributeError(
                f"this {owner.__name__} has no {self._method.__name__}, since it has no calibration: fit it "
                "with calibrate=True. By default there is one if cross-validation chooses settings, which "
                "needs several values of decay or C, and at least two trees of every class"
            )
        return MethodType(self._method, classifier)


class Calibration(NamedTuple):
    """Probabilities ``(1 - doubt) softmax(scale · scores + bias) + doubt / n_classes``.

    There is a bias for each class. Of two classes, the first has the score 0.
    """

    scale: float  # at least 0: probabilities rise with the scores
    bias: FloatArray  # (classes,)
    doubt: float = 0.0  # the share of examples about which the scores say nothing

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return the probability of every class, given the scores of a model.

        Examples
        --------
        >>> Calibration(2.0, np.array([0.0, 0.0])).probabilities(np.array([0.0, 1.0])).round(3)
        array([[0.5  , 0.5  ],
               [0.119, 0.881]])
        """
        table = of_every_class(scores)
        logits = self.scale * (table - table.max(axis=1, keepdims=True)) + self.bias
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        sure = weights / weights.sum(axis=1, keepdims=True)
        found: FloatArray = (1.0 - self.doubt) * sure + self.doubt / self.bias.size
        return found

    def moved(self, threshold: float) -> Self:
        """Return the calibration of scores of two classes from which a threshold was subtracted."""
        return self._replace(bias=self.bias + self.scale * threshold * np.eye(2)[1]) if threshold else self

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"scale": self.scale, "bias": self.bias.tolist(), "doubt": self.doubt}

    @classmethod
    def of_dict(cls, stored: Any, n_classes: int) -> Self:
        """Check JSON values and return the calibration."""
        try:
            scale, doubt = float(stored["scale"]), float(stored["doubt"])
            bias = np.array(stored["bias"], np.float64)
        except (KeyError, TypeError, ValueError):
            raise SourceError("the calibration lacks its scale, its biases or its doubt") from None
        in_range = 0 <= scale < np.inf and 0 <= doubt <= 1 and np.isfinite(bias).all()
        if bias.shape != (n_classes,) or not in_range:
            raise SourceError(
                "the calibration does not have a scale from 0, a finite bias for each class, and a doubt "
                "from 0 to 1"
            )
        return cls(scale, bias, doubt)


def of_every_class(scores: FloatArray) -> FloatArray:
    """Return the scores of every class, a column each; of two classes, the first has the score 0."""
    columns = scores[:, None] if scores.ndim == 1 else scores
    return np.concatenate([np.zeros_like(columns), columns], axis=1) if columns.shape[1] == 1 else columns


def checked_calibration(calibration: Calibration | None) -> Calibration:
    """Return the calibration; raise ParameterError if there is none."""
    if calibration is None:
        raise ParameterError(
            "the model has no calibration, so it gives scores but no probabilities: train it again with "
            "calibrate=True (treedot train --calibration), and with at least two trees of some class"
        )
    return calibration
