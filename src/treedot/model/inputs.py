"""All inputs of a model, side by side: their scores, and how they are written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from treedot.array_types import Array, FloatArray, IntArray
from treedot.errors import RangeError, SourceError
from treedot.model.model_input import ModelInput, StoredInput
from treedot.model.number_input import NumberInput
from treedot.model.table import Columns, Table
from treedot.model.text_input import TextInput
from treedot.model.tree_inputs import DenseInput, FragmentInput, KernelInput

KINDS: dict[str, type[StoredInput]] = {
    kind.kind: kind for kind in (FragmentInput, DenseInput, KernelInput, NumberInput, TextInput)
}
MAX_INPUTS = 1000

Inputs = Sequence[ModelInput]


def columns_of(inputs: Inputs) -> Columns:
    """Return the names of all columns that inputs read."""
    return Columns._make(sum(names, ()) for names in zip(*(each.reads for each in inputs), strict=True))


def spans(inputs: Inputs, columns: IntArray) -> Iterator[tuple[ModelInput, slice, int]]:
    """Yield every input, which of the columns with weights are its own, and the first column of its rows."""
    first = 0
    for each in inputs:
        start, stop = np.searchsorted(columns, [first, first + each.width])
        yield each, slice(int(start), int(stop)), first
        first += each.width


def linear_scores(
    inputs: Inputs, table: Table, columns: IntArray, weights: Array, bias: FloatArray,
    n_jobs: int | None = None,
) -> FloatArray:  # fmt: skip
    """Return ``w · x + b`` of examples, whose other columns weigh nothing; one score each for two classes."""
    scores = np.tile(bias, (len(table), 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for each, span, first in spans(inputs, columns):
            own = columns[span] - first if first else columns[span]
            scores += each.scores(table, own, weights[span], n_jobs)
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise RangeError(
            f"the scores of example {row + 1} are too large for a float: its numbers are far off"
        )
    return scores[:, 0] if bias.size == 1 else scores


def described(inputs: Sequence[StoredInput]) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return inputs as JSON values and arrays, which ``restored`` makes inputs of again."""
    arrays = {
        f"input{k}.{name}": array for k, each in enumerate(inputs) for name, array in each.arrays().items()
    }
    return [{"kind": each.kind, **each.config()} for each in inputs], arrays


def restored(configs: Sequence[Any], arrays: Mapping[str, Array]) -> list[StoredInput]:
    """Return the inputs that ``described`` wrote down; what makes no sense is refused."""
    if not 1 <= len(configs) <= MAX_INPUTS:
        raise SourceError(f"it has {len(configs)} inputs, and not 1 to {MAX_INPUTS}")
    made, left = [], dict(arrays)
    for k, config in enumerate(configs):
        kind = KINDS.get(str(config.get("kind"))) if isinstance(config, dict) else None
        if kind is None:
            raise SourceError(f"an input is of a kind that is not known: {', '.join(KINDS)} are")
        own = {name: left.pop(name) for name in list(left) if name.startswith(f"input{k}.")}
        made.append(kind.restored(config, {n.removeprefix(f"input{k}."): x for n, x in own.items()}))
    if left:
        raise SourceError(f"it has arrays that belong to no input: {', '.join(list(left)[:3])}")
    trees, numbers, texts = columns_of(made)
    every = [*trees, *numbers, *texts]
    if not trees or len(set(every)) != len(every) or (None in every and len(every) > 1):
        raise SourceError("its inputs read no trees, or a column twice, or one without a name")
    return made
