"""A forest as arrays for a file: packed at once or batch by batch, unpacked at once or tree by tree.

Indexes, models with support vectors and the blocks of a training store their trees in this form. For Parquet
and Arrow files, which other programs read, see ``trees.arrow``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from treedot._runtime.array_types import Array, IntArray
from treedot._runtime.ragged import ends_of
from treedot._storage.growing_array import GrowingArray
from treedot.errors import SourceError
from treedot.trees.columns import rows_to_columns
from treedot.trees.forest import Forest

FOREST = {
    "label": np.int32, "arity": np.int32, "offsets": np.int64,
    "label_text": np.uint8, "label_offsets": np.int64,
}  # fmt: skip
COLUMNS = {"column_text": np.uint8, "column_offsets": np.int64}


def pack(forest: Forest) -> dict[str, Array]:
    """Return a forest, without its columns, as arrays with the names and types of ``FOREST``.

    Examples
    --------
    >>> forest = Forest([0, 0, 1], [0, 0, 2], [0, 3], ["b", "A"])
    >>> unpack(pack(forest)) == forest
    True
    """
    text, ends = pack_texts(forest.labels)
    return dict(zip(FOREST, (forest.label, forest.arity, forest.offsets, text, ends), strict=True))


def unpack(arrays: Mapping[str, Array]) -> Forest:
    """Return the forest that ``pack`` packed; raise SourceError if the arrays are damaged."""
    labels = unpack_texts(arrays["label_text"], arrays["label_offsets"])
    return Forest(arrays["label"], arrays["arity"], arrays["offsets"], labels)


def pack_texts(texts: Iterable[str]) -> tuple[Array, IntArray]:
    """Return the concatenated UTF-8 bytes of texts, and the n + 1 offsets that separate them."""
    coded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return np.frombuffer(b"".join(coded), np.uint8), ends_of([len(text) for text in coded])


def unpack_texts(text: Array, ends: IntArray) -> list[str]:
    """Return the texts that ``pack_texts`` packed; raise SourceError if they are damaged."""
    if not ends.size or ends[0] != 0 or ends[-1] != text.size or (np.diff(ends) < 0).any():
        raise SourceError("the stored texts are damaged: their offsets do not match their length")
    raw = text.tobytes()
    try:
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends.tolist())]
    except UnicodeDecodeError as error:
        raise SourceError(f"the stored texts are not UTF-8: {error}") from None


class PackedWriter(contextlib.ExitStack):
    """Packs trees batch by batch, in unnamed temporary files in the folder of the target file.

    All batches share one numbering of labels; the columns of each tree become one JSON object.
    """

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._files = {
            name: self.enter_context(GrowingArray(dtype, target))
            for name, dtype in {**FOREST, **COLUMNS}.items()
        }
        for name in ("offsets", "label_offsets", "column_offsets"):
            self._files[name].append([0])
        self._numbers: dict[str, int] = {}

    def add(self, forest: Forest) -> None:
        """Pack the next trees."""
        files = self._files
        known = len(self._numbers)
        number = [self._numbers.setdefault(text, len(self._numbers)) for text in forest.labels]
        self._add_texts("label", [text for text, n in zip(forest.labels, number, strict=True) if n >= known])
        files["offsets"].append(forest.offsets[1:] + len(files["label"]))
        files["label"].append(np.array(number, np.int32)[forest.label])
        files["arity"].append(forest.arity)
        first = len(files["offsets"]) - len(forest)
        self._add_texts("column", [_row_text(forest, i, first + i) for i in range(len(forest))])

    def _add_texts(self, kind: str, texts: Iterable[str]) -> None:
        text, ends = pack_texts(texts)
        self._files[f"{kind}_offsets"].append(ends[1:] + len(self._files[f"{kind}_text"]))
        self._files[f"{kind}_text"].append(text)

    def finish(self) -> dict[str, GrowingArray]:
        """Return the arrays."""
        return self._files


def _row_text(forest: Forest, i: int, number: int) -> str:
    """Return the columns of tree ``i`` as a JSON object, "" if there are none; errors call it ``number``."""
    if not forest.columns:
        return ""
    try:
        row = {name: _plain(values[i]) for name, values in forest.columns.items()}
        return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"cannot store the columns of tree {number} as JSON: {error}; convert them to text"
        ) from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class PackedTrees:
    """Random access to packed trees, whose arrays may be memory-mapped."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        for name, dtype in {**FOREST, **COLUMNS}.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise SourceError(f"the array {name!r} is missing or has the wrong type")
        for inner, outer in (("label", "offsets"), ("arity", "offsets"), ("label_text", "label_offsets"),
                             ("column_text", "column_offsets")):  # fmt: skip
            ends = arrays[outer]
            if ends.size == 0 or ends[0] != 0 or ends[-1] != arrays[inner].size:
                raise SourceError(f"the length of the array {inner!r} does not match {outer!r}")
        if arrays["offsets"].size != arrays["column_offsets"].size:
            raise SourceError("the number of trees differs from the number of their column rows")
        self._arrays = arrays

    def __len__(self) -> int:
        return int(self._arrays["offsets"].size) - 1

    def take(self, rows: IntArray) -> Forest:
        """Return the trees ``rows`` with their columns; None where a tree lacks a column."""
        label, offsets = self._pieces("label", "offsets", rows)
        arity, _ = self._pieces("arity", "offsets", rows)
        used, label = np.unique(label, return_inverse=True)
        n_labels = self._arrays["label_offsets"].size - 1
        if used.size and not 0 <= used[0] <= used[-1] < n_labels:
            raise SourceError("the stored trees are damaged: a label has no text")
        found = self.rows(rows)
        columns = rows_to_columns(found, dict.fromkeys(name for row in found for name in row))
        return Forest(label, arity, offsets, self._texts("label", used), columns)

    def column(self, name: str, rows: IntArray) -> list[Any]:
        """Return a column of the trees ``rows``; None where a tree lacks it."""
        return [row.get(name) for row in self.rows(rows)]

    def rows(self, rows: IntArray) -> list[dict[str, Any]]:
        """Return the columns of the trees ``rows``, as a mapping for each tree."""
        found = [json.loads(text) if text else {} for text in self._texts("column", rows)]
        if not all(isinstance(row, dict) for row in found):
            raise SourceError("the stored trees are damaged: the columns of a tree are not a JSON object")
        return found

    def _texts(self, kind: str, which: IntArray) -> list[str]:
        return unpack_texts(*self._pieces(f"{kind}_text", f"{kind}_offsets", which))

    def _pieces(self, name: str, offsets: str, which: IntArray) -> tuple[Array, IntArray]:
        """Return the concatenated pieces ``which`` of an array, and their offsets."""
        values, ends = self._arrays[name], self._arrays[offsets]
        start, stop = ends[which], ends[which + 1]
        if not ((start >= 0) & (start <= stop) & (stop <= values.size)).all():
            raise SourceError(f"the stored trees are damaged: {offsets!r} point outside {name!r}")
        pieces = [values[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
        return np.concatenate([values[:0], *pieces]), ends_of(stop - start)
