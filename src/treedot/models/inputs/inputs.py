"""Compute scores from all inputs of a model, and store and restore the inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot.errors import RangeError, SourceError
from treedot.models.inputs.model_input import ModelInput, StoredInput
from treedot.models.inputs.number_input import NumberInput
from treedot.models.inputs.overlap import OverlapInput
from treedot.models.inputs.table import Columns, Table
from treedot.models.inputs.term_input import TermInput
from treedot.models.inputs.text_input import TextInput
from treedot.models.inputs.tree_inputs import DenseInput, FragmentInput, KernelInput

KINDS: dict[str, type[StoredInput]] = {
    kind.kind: kind
    for kind in (FragmentInput, DenseInput, KernelInput, TermInput, NumberInput, TextInput, OverlapInput)
}
MAX_INPUTS = 1000

Inputs = Sequence[ModelInput]


def columns_of(inputs: Inputs) -> Columns:
    """Return the names of all columns that the inputs read, each once."""
    kinds = zip(*(each.reads for each in inputs), strict=True)
    return Columns._make(tuple(dict.fromkeys(sum(names, ()))) for names in kinds)


def spans(inputs: Inputs, columns: IntArray, weights: Array) -> Iterator[tuple[ModelInput, IntArray, Array]]:
    """Yield every input, the columns of its rows that have weights, and these weights."""
    if len(inputs) == 1:
        yield inputs[0], columns, weights
        return
    first = start = 0
    for each in inputs:
        end = first + each.width
        stop = int(np.searchsorted(columns, end))
        yield each, columns[start:stop] - first, weights[start:stop]
        first, start = end, stop


def linear_scores(
    inputs: Inputs, table: Table, columns: IntArray, weights: Array, bias: FloatArray,
    n_jobs: int | None = None,
) -> FloatArray:  # fmt: skip
    """Return ``w · x + b`` of every example, with weights for ``columns`` only; one score for two classes."""
    scores: FloatArray = bias
    with np.errstate(over="ignore", invalid="ignore"):
        for each, which, own in spans(inputs, columns, weights):
            scores = scores + each.scores(table, which, own, n_jobs)
        if not math.isfinite(scores.sum()):
            _check_finite(scores)
    return scores[:, 0] if bias.size == 1 else scores


def _check_finite(scores: FloatArray) -> None:
    bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if bad.size:
        raise RangeError(f"the scores of example {bad[0] + 1} are too large for a float: check its numbers")


def described(inputs: Sequence[StoredInput]) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return inputs as JSON values and arrays; ``restored`` is the inverse."""
    arrays = {
        f"input{k}.{name}": array for k, each in enumerate(inputs) for name, array in each.arrays().items()
    }
    return [{"kind": each.kind, **each.config()} for each in inputs], arrays


def restored(configs: Sequence[Any], arrays: Mapping[str, Array]) -> list[StoredInput]:
    """Return the inputs that ``described`` described; raise SourceError if they are inconsistent."""
    if not 1 <= len(configs) <= MAX_INPUTS:
        raise SourceError(f"expected 1 to {MAX_INPUTS} inputs, found {len(configs)}")
    made, left = [], dict(arrays)
    for k, config in enumerate(configs):
        kind = KINDS.get(str(config.get("kind"))) if isinstance(config, dict) else None
        if kind is None:
            raise SourceError(f"an input has an unknown kind; the known kinds are {', '.join(KINDS)}")
        own = {name: left.pop(name) for name in list(left) if name.startswith(f"input{k}.")}
        made.append(kind.restored(config, {n.removeprefix(f"input{k}."): x for n, x in own.items()}))
    if left:
        raise SourceError(f"some arrays belong to no input: {', '.join(list(left)[:3])}")
    columns = columns_of(made)
    read = [
        name for each in made if not isinstance(each, TermInput) for names in each.reads[:3] for name in names
    ]
    extra = {each.column for each in made if isinstance(each, TermInput)}.union(columns.pair).difference(read)
    if sum(bool(each.reads.pair) for each in made) > 1:
        raise SourceError("the inputs read more than one pair")
    if extra or not columns.trees or len(set(read)) != len(read) or (None in read and len(read) > 1):
        raise SourceError("the inputs read no trees, or read a column twice, or lack the name of a column")
    return made
