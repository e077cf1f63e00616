"""The table of settings that were tried, as ``TreeClassifier.selection_`` holds it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

from treedot.errors import ParameterError
from treedot.models.training.candidates import checked_settings
from treedot.parameters import checked_flag, checked_integer, checked_positive


class Trial(NamedTuple):
    """Settings that were tried, with their score on the test examples of the folds.

    None stands for a parameter that the vectorizer or kernel determines. ``balanced`` is true for balanced
    class weights. ``folds`` is the number of folds that count, and ``examples`` the number of training
    examples of the first; settings with less were dropped early. ``seconds`` is the processor time of all
    trainings with these settings, also of those that do not count; a stored model does not hold it.
    """

    decay: float | None
    C: float
    score: float
    idf: bool | None = None
    damping: str | None = None
    words: bool = False
    labels: bool = False
    balanced: bool = False
    folds: int | None = None
    examples: int | None = None
    seconds: float | None = None
    chosen: bool = False

    def stored(self) -> dict[str, Any]:
        """Return JSON values that depend only on the data and the settings, not on the machine."""
        return {name: value for name, value in self._asdict().items() if name != "seconds"}

    @classmethod
    def restored(cls, C: Any, balanced: Any = False, chosen: Any = False, **stored: Any) -> Self:
        """Return a stored trial; raise an error if it is damaged. Older models name the score "accuracy"."""
        numbers: dict[str, Any] = {name: stored.pop(name, None) for name in ("folds", "examples")}
        for name, number in numbers.items():
            numbers[name] = None if number is None else checked_integer(name, number, at_least=1)
        score = float(stored.pop("score") if "score" in stored else stored.pop("accuracy"))
        if not math.isfinite(score):
            raise ParameterError(f"score must be a finite number, not {score}")
        unknown = stored.keys() - cls._fields
        if unknown:
            raise ParameterError(f"a trial has unknown entries: {', '.join(sorted(unknown))}")
        return cls(
            C=checked_positive("C", C),
            score=score,
            balanced=checked_flag("balanced", balanced),
            chosen=checked_flag("chosen", chosen),
            **numbers,
            **checked_settings(stored)._asdict(),
        )
