"""Write and read the folder of a model: ``config.json`` and ``weights.safetensors``.

The configuration holds the inputs, the classes (unless the model predicts numbers), the calibration of
probabilities if there is one, and further facts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array
from treedot._storage.described_folder import CONFIG, WEIGHTS, DescribedFolder
from treedot.errors import ParameterError, SourceError
from treedot.models.calibration import Calibration
from treedot.models.inputs.inputs import Inputs, described, restored, spans
from treedot.models.inputs.model_input import StoredInput

VERSION, NUMBERS_VERSION = 2, 3  # of models that predict classes, and of those that predict numbers
MODEL = DescribedFolder("model", (VERSION, NUMBERS_VERSION), "train again")
MAX_CLASSES = 1 << 20

DTYPES: dict[str, np.dtype[Any]] = {
    "columns": np.dtype(np.int64),
    "weights": np.dtype(np.float32),
    "bias": np.dtype(np.float64),
}


def write_model(
    path: str | os.PathLike[str],
    inputs: Sequence[StoredInput],
    classes: Array | None,
    arrays: Mapping[str, Array],
    facts: Mapping[str, Any],
    calibration: Calibration | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the folder of a model; ``overwrite`` allows replacing an existing model.

    ``classes`` is None for a model that predicts numbers.
    """
    if (
        classes is not None
        and classes.dtype.kind not in "Uiub"
        and not all(type(label) is str for label in classes.tolist())
    ):
        raise ParameterError(f"cannot save classes of type {classes.dtype}: use texts or integers as y")
    configs, learned = described(inputs)
    typed = {name: np.ascontiguousarray(arrays[name], dtype) for name, dtype in DTYPES.items()}
    config = {
        "version": NUMBERS_VERSION if classes is None else VERSION,
        "inputs": configs,
        **({} if classes is None else {"classes": classes.tolist()}),
        **({} if calibration is None else {"calibration": calibration.to_dict()}),
        "facts": dict(facts),
    }
    MODEL.write(path, config, typed | learned, overwrite=overwrite)


class StoredModel(NamedTuple):
    """The content of a model's folder."""

    inputs: list[StoredInput]
    classes: Array | None
    columns: Array
    weights: Array
    bias: Array
    facts: dict[str, Any]
    calibration: Calibration | None


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read and check the folder of a model."""
    return MODEL.read(path, _restored_model)


def _restored_model(config: dict[str, Any], arrays: dict[str, Array]) -> StoredModel:
    _check_kinds(config)
    classes = _checked_classes(config["classes"]) if "classes" in config else None
    linear = {name: array for name, array in arrays.items() if not name.startswith("input")}
    inputs = restored(config["inputs"], {n: x for n, x in arrays.items() if n not in linear})
    _check_arrays(linear, 1 if classes is None or classes.size == 2 else classes.size, inputs)
    calibration = None
    if classes is not None and "calibration" in config:
        calibration = Calibration.of_dict(config["calibration"], classes.size)
    return StoredModel(
        inputs, classes, linear["columns"], linear["weights"], linear["bias"], config["facts"], calibration
    )


def _check_kinds(config: Mapping[str, Any]) -> None:
    """Raise SourceError unless the parts of a configuration are there and have the right types."""
    kinds = {"inputs": list, "classes": list, "facts": dict, "weights": str}
    if config["version"] == NUMBERS_VERSION:
        del kinds["classes"]
        if "classes" in config:
            raise SourceError(f"{CONFIG} has classes, but its version is that of models that predict numbers")
    if not all(isinstance(config.get(name), kind) for name, kind in kinds.items()):
        raise SourceError(f"{CONFIG} lacks one of {', '.join(kinds)}")


def _checked_classes(values: list[Any]) -> Array:
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {str, int, bool} or not 2 <= len(set(values)) == len(values):
        raise SourceError("the classes must be at least two distinct texts or integers")
    if len(values) > MAX_CLASSES:
        raise SourceError(f"there are more than {MAX_CLASSES} classes")
    classes = np.array(values)
    if classes.dtype.kind not in "Uiub":
        raise SourceError("the classes are integers of more than 64 bits")
    return classes


def _check_arrays(arrays: Mapping[str, Array], problems: int, inputs: Inputs) -> None:
    """Raise SourceError unless types and shapes are right, columns ascend, and all values are finite."""
    if {name: array.dtype for name, array in arrays.items()} != DTYPES:
        raise SourceError(f"{WEIGHTS} does not hold the arrays {', '.join(DTYPES)} with the right types")
    columns, weights, bias = (arrays[name] for name in DTYPES)
    if columns.ndim != 1 or weights.shape != (columns.size, problems) or bias.shape != (problems,):
        raise SourceError(f"{WEIGHTS} has arrays whose shapes do not match {problems} score(s)")
    width = sum(each.width for each in inputs)
    if columns.size and (columns[0] < 0 or columns[-1] >= width or (np.diff(columns) <= 0).any()):
        raise SourceError(f"{WEIGHTS} has columns that are out of order or out of range")
    for each, which, _ in spans(inputs, columns, weights):
        if each.is_dense and which.size != each.width:
            raise SourceError(
                f"{WEIGHTS} does not have one weight for each of the {each.width} columns of an input"
            )
    if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        raise SourceError(f"{WEIGHTS} has weights that are not finite")
