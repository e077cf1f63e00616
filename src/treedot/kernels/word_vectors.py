"""Word vectors; their cosines measure the similarity of words."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import Array, FloatArray
from treedot._storage.compression import decompressed
from treedot._storage.files import open_raw, read_lines
from treedot.errors import ParameterError, SourceError
from treedot.kernels.label_vectors import LabelVectors

SEPARATOR = "::"  # between the word and the part of speech in a label
TYPE = "LEX##"  # optional prefixes of words in KeLP files


class WordVectors(LabelVectors):
    """The vectors of words, which make labels such as ``dog::n`` and ``cat::n`` similar.

    A label is a word, ``::`` and a part of speech. Its vector is the vector of the whole label if there is
    one, otherwise that of the word before the ``::``. The similarity of two labels of the same part of speech
    is the cosine of their vectors. Labels without ``::`` are not words, and similar to no other label.

    Parameters
    ----------
    vectors : mapping of str to sequence of float
        The vector of each word, or of each label.

    See Also
    --------
    SmoothedPartialTreeKernel : The kernel that uses word vectors.
    DistributedTreeVectorizer : With ``kernel="smoothed"``, vectors for this kernel.

    Examples
    --------
    >>> vectors = WordVectors({"dog": [3, 4], "cat": [4, 3], "run::v": [0, 1]})
    >>> vectors("dog::n", "cat::n")
    0.96
    >>> vectors("dog::n", "dog::v"), vectors("dog::n", "bird::n")
    (0.0, 0.0)
    >>> vectors
    WordVectors(3 words, 2 dimensions)
    """

    def __init__(self, vectors: Mapping[str, npt.ArrayLike]) -> None:
        if not isinstance(vectors, Mapping) or not all(isinstance(word, str) for word in vectors):
            raise ParameterError(f"vectors must map words to their vectors, not {type(vectors).__name__}")
        try:
            matrix = np.array(list(vectors.values()), np.float64)
        except (TypeError, ValueError):
            matrix = np.zeros(0)
        if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
            raise ParameterError("word vectors must be finite numbers, and equally long for all words")
        self._row = {word: k for k, word in enumerate(vectors)}
        self._unit = scaled_to_length_one(matrix)

    @classmethod
    def of(cls, source: WordVectors | Mapping[str, npt.ArrayLike] | str | os.PathLike[str]) -> WordVectors:
        """Return word vectors unchanged, or make them from a mapping or a file.

        Parameters
        ----------
        source : WordVectors, mapping of str to sequence of float, or path
            The word vectors, or an argument of ``WordVectors`` or ``WordVectors.read``.

        Returns
        -------
        WordVectors
            The word vectors.

        Raises
        ------
        ParameterError
            If the source is anything else.
        """
        if isinstance(source, (str, os.PathLike)):
            return cls.read(source)
        if isinstance(source, Mapping):
            return cls(source)
        if isinstance(source, WordVectors):
            return source
        raise ParameterError(
            "similarity must be word vectors here, a mapping of words to vectors or the path of a text file, "
            f"not {source!r:.80}"
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, unpack_large: bool = False) -> Self:
        """Read a text file with a word and its numbers on every line, compressed or not.

        The numbers follow the word, which may contain blanks, as in files of word2vec and GloVe; a first line
        of two numbers, as in word2vec, is skipped. Or the numbers are the last of four columns, separated by
        commas, as in KeLP.

        Parameters
        ----------
        path : path
            The file.
        unpack_large : bool, default=False
            Read a compressed file that unpacks to more than 200 times its size.

        Returns
        -------
        WordVectors
            The word vectors.

        Raises
        ------
        SourceError
            If a line has no numbers, or a different number of them than the others.
        """
        name = os.fspath(path)
        with open_raw(path) as raw, decompressed(raw, name, unpack_large, "WordVectors.read") as stream:
            found = dict(_vectors(stream, name))
        if not found:
            raise SourceError(f"{name}: it contains no word vectors")
        try:
            return cls(found)
        except ParameterError as error:
            raise SourceError(f"{name}: {error}") from None

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, label: str) -> bool:
        return self._of(label) is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordVectors):
            return NotImplemented
        return self is other or (self._row == other._row and np.array_equal(self._unit, other._unit))

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # it is immutable

    def __repr__(self) -> str:
        return f"WordVectors({len(self)} words, {self._unit.shape[1]} dimensions)"

    @property
    def n_dimensions(self) -> int:
        """The number of dimensions of the vectors."""
        return int(self._unit.shape[1])

    @cached_property
    def fingerprint(self) -> str:
        """A short, stable digest of all words and their unit vectors, to the last bit, in any order."""
        words = sorted(self._row)
        digest = hashlib.blake2b(json.dumps(words).encode(), digest_size=8)
        digest.update(self._unit[[self._row[word] for word in words]].astype("<f8").data)
        return digest.hexdigest()

    @property
    def nbytes(self) -> int:
        """The memory of the vectors, in bytes."""
        return int(self._unit.nbytes)

    def arrays(self) -> dict[str, Array]:
        """Return words and vectors as arrays, for files.

        Returns
        -------
        dict of str to array
            ``words``, the words as JSON in bytes; and ``units``, of shape (n_words, n_dimensions).
        """
        return {"words": np.frombuffer(json.dumps(list(self._row)).encode(), np.uint8), "units": self._unit}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Return the word vectors stored in the result of ``arrays``.

        Parameters
        ----------
        arrays : mapping of str to array
            The arrays ``words`` and ``units``.

        Returns
        -------
        WordVectors
            The word vectors, equal to the bit.

        Raises
        ------
        SourceError
            If the arrays do not describe word vectors.
        """
        try:
            if arrays.keys() != {"words", "units"}:
                raise ValueError(f"the arrays are {', '.join(arrays) or 'missing'}, not words and units")
            words, units = json.loads(arrays["words"].tobytes()), arrays["units"]
            made = cls(dict(zip(words, units, strict=True)))
            if len(made) < len(units):
                raise ValueError("a word occurs twice")
        except (TypeError, ValueError, RecursionError, ParameterError) as error:
            raise SourceError(f"these are not word vectors: {error}") from None
        made._unit = np.asarray(units, np.float64)  # not divided by the length again: equal to the bit
        return made

    def units(self, labels: Sequence[str]) -> FloatArray:
        known = {k: row for k, label in enumerate(labels) if (row := self._of(label)) is not None}
        found = np.zeros((len(labels), self.n_dimensions))
        found[list(known)] = self._unit[list(known.values())]
        return found

    def _group(self, label: str) -> str | None:
        return part_of_speech(label) if label in self else None

    def _of(self, label: str) -> int | None:
        text = label.removeprefix(TYPE)
        word, separator, _ = text.partition(SEPARATOR)
        return self._row.get(text, self._row.get(word)) if separator else None


def part_of_speech(label: str) -> str | None:
    """Return the part of a label after the first ``::``."""
    _, separator, rest = label.partition(SEPARATOR)
    return rest if separator else None


def scaled_to_length_one(matrix: FloatArray) -> FloatArray:
    """Return the rows of a matrix, scaled to length 1; rows of zeros stay as they are."""
    largest = np.abs(matrix).max(axis=1, keepdims=True)  # the squares may overflow or underflow
    scaled = np.divide(matrix, largest, out=np.zeros_like(matrix), where=largest > 0)
    square = np.zeros(len(scaled))
    for column in scaled.T:  # in this order on every machine: fingerprints depend on the last bit
        square += column * column
    length = np.sqrt(square)[:, None]
    unit: FloatArray = np.divide(scaled, length, out=scaled, where=length > 0)
    unit += 0.0  # so that fingerprints do not depend on the sign of a zero
    return unit


def _vectors(stream: IO[bytes], name: str) -> Iterator[tuple[str, FloatArray]]:
    """Yield the words of a file and their vectors."""
    width = None
    for number, line in enumerate(read_lines(stream, name), 1):
        if not line.strip():
            continue
        fields = line.decode("utf-8", "replace").rstrip(" \t").split("\t" if b"\t" in line else " ")
        values = fields[3].split(",") if len(fields) == 4 and "," in fields[3] else fields[1:]
        word, vector = fields[0], _numbers(values)
        if vector is None and width is not None and len(values) > width:  # the word contains blanks
            word, vector = " ".join(fields[:-width]), _numbers(fields[-width:])
        if vector is None:
            raise SourceError(f"{name}, line {number}: expected a word and its numbers")
        if number == 1 and vector.size == 1 and word.isdigit():
            continue
        if vector.size == 0 or (width is not None and vector.size != width):
            expected = "some" if width is None else str(width)
            raise SourceError(f"{name}, line {number}: {vector.size} numbers, expected {expected}")
        width = vector.size
        yield word, vector


def _numbers(texts: list[str]) -> FloatArray | None:
    """Return texts as numbers, or None if one of them is not a number."""
    try:
        return np.array([float(text) for text in texts if text])
    except ValueError:
        return None
