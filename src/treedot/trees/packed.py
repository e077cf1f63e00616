"""Packed trees in files: the arrays of a Forest, written batch by batch and read tree by tree."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from treedot._storage.growing_array import GrowingArray
from treedot.errors import SourceError
from treedot.trees import Forest

ARRAYS = {
    "label": np.int32,
    "arity": np.int32,
    "offsets": np.int64,
    "label_text": np.uint8,
    "label_offsets": np.int64,
    "column_text": np.uint8,
    "column_offsets": np.int64,
}


class PackedWriter(contextlib.ExitStack):
    """Collects trees: labels get one number for all of them, columns become a JSON object for each tree.

    The arrays are for a target, in nameless files beside it.
    """

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._files = {
            name: self.enter_context(GrowingArray(dtype, target)) for name, dtype in ARRAYS.items()
        }
        for name in ("offsets", "label_offsets", "column_offsets"):
            self._files[name].append([0])
        self._numbers: dict[str, int] = {}

    def add(self, forest: Forest) -> None:
        """Take the next trees."""
        files = self._files
        known = len(self._numbers)
        number = [self._numbers.setdefault(text, len(self._numbers)) for text in forest.labels]
        new = (text for text, n in zip(forest.labels, number, strict=True) if n >= known)
        self._add_texts("label", (text.encode("utf-8", "surrogatepass") for text in new))
        files["offsets"].append(forest.offsets[1:] + len(files["label"]))
        files["label"].append(np.array(number, np.int32)[forest.label])
        files["arity"].append(forest.arity)
        first = len(files["offsets"]) - len(forest)
        self._add_texts("column", [_row_text(forest, i, first + i) for i in range(len(forest))])

    def _add_texts(self, kind: str, texts: Iterable[bytes]) -> None:
        texts = list(texts)
        start = len(self._files[f"{kind}_text"])
        self._files[f"{kind}_text"].append(np.frombuffer(b"".join(texts), np.uint8))
        self._files[f"{kind}_offsets"].append(
            start + np.cumsum([len(text) for text in texts], dtype=np.int64)
        )

    def finish(self) -> dict[str, GrowingArray]:
        """Return the arrays."""
        return self._files


def _row_text(forest: Forest, i: int, number: int) -> bytes:
    """Return what else is known of a tree as JSON; nothing where nothing is."""
    if not forest.columns:
        return b""
    try:
        row = {name: _plain(values[i]) for name, values in forest.columns.items()}
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"the columns of tree {number} cannot be kept as JSON: {error}; turn them into text"
        ) from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class PackedTrees:
    """Trees in arrays, for instance mapped into memory, of which any can be taken out."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name, dtype in ARRAYS.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise SourceError(f"the array {name!r} is missing or of another type")
        for inner, outer in (("label", "offsets"), ("arity", "offsets"), ("label_text", "label_offsets"),
                             ("column_text", "column_offsets")):  # fmt: skip
            ends = arrays[outer]
            if ends.size == 0 or ends[0] != 0 or ends[-1] != arrays[inner].size:
                raise SourceError(f"the array {inner!r} does not end where {outer!r} says")
        if arrays["offsets"].size != arrays["column_offsets"].size:
            raise SourceError("there are not as many trees as rows of columns")
        self._arrays = arrays

    def __len__(self) -> int:
        return int(self._arrays["offsets"].size) - 1

    def take(self, rows: np.ndarray) -> Forest:
        """Return some trees, with their columns; a column that some lack holds None there."""
        label, sizes = self._pieces("label", "offsets", rows)
        arity, _ = self._pieces("arity", "offsets", rows)
        used, label = np.unique(label, return_inverse=True)
        n_labels = self._arrays["label_offsets"].size - 1
        if used.size and not 0 <= used[0] <= used[-1] < n_labels:
            raise SourceError("the stored trees are damaged: a label has no text")
        labels = [text.decode("utf-8", "surrogatepass") for text in self._texts("label", used)]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Forest(label, arity, offsets, labels, self._columns(rows))

    def column(self, name: str, rows: np.ndarray) -> list[Any]:
        """Return a column of some trees; None where it is not known."""
        return [row.get(name) for row in self._objects(rows)]

    def _objects(self, rows: np.ndarray) -> list[dict[str, Any]]:
        found = [json.loads(text) if text else {} for text in self._texts("column", rows)]
        if not all(isinstance(row, dict) for row in found):
            raise SourceError("the stored trees are damaged: the columns of a tree are not a JSON object")
        return found

    def _columns(self, rows: np.ndarray) -> dict[str, list[Any]]:
        found = self._objects(rows)
        names = dict.fromkeys(name for row in found for name in row)
        return {name: [row.get(name) for row in found] for name in names}

    def _texts(self, kind: str, which: np.ndarray) -> list[bytes]:
        blob, sizes = self._pieces(f"{kind}_text", f"{kind}_offsets", which)
        raw, ends = blob.tobytes(), np.cumsum(sizes)
        return [raw[end - size : end] for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]

    def _pieces(self, name: str, offsets: str, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return some pieces of an array, one behind the other, and their sizes."""
        values, ends = self._arrays[name], self._arrays[offsets]
        start, stop = ends[which], ends[which + 1]
        if not ((start >= 0) & (start <= stop) & (stop <= values.size)).all():
            raise SourceError(f"the stored trees are damaged: {offsets!r} lead out of {name!r}")
        pieces = [values[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
        return np.concatenate([values[:0], *pieces]), stop - start
