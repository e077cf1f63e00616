"""What determines the rows of a FragmentVectorizer, as JSON values and arrays: for files and fingerprints."""

from __future__ import annotations

import hashlib
import os
from typing import Any, NamedTuple, Self

import numpy as np

from treedot._runtime.array_types import Array, FloatArray
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.errors import SourceError
from treedot.vectors.files import VECTORIZER_FORMAT, check_is
from treedot.vectors.sparse.dictionary import FragmentDictionary
from treedot.vectors.sparse.idf import DocumentCounts
from treedot.vectors.spec import SparseSpec


class VectorizerState(NamedTuple):
    """The parameters of a vectorizer as plain JSON values, and what it learned as arrays.

    ``settings`` are the fields of its spec, ``idf`` (True, False, or "given" where the weights are among the
    arrays), and ``parameters``, those that the spec does not tell.
    """

    settings: dict[str, Any]
    arrays: dict[str, Array]

    @classmethod
    def make(
        cls,
        spec: SparseSpec,
        idf: bool | FloatArray,
        learned: FragmentDictionary | DocumentCounts | None,
        parameters: dict[str, Any],
    ) -> Self:
        """Describe a vectorizer."""
        given = isinstance(idf, np.ndarray)
        settings = spec.to_dict() | {"idf": "given" if given else idf, "parameters": parameters}
        arrays: dict[str, Array] = {"idf": np.asarray(idf)} if given else {}
        if isinstance(learned, FragmentDictionary):
            arrays |= learned.arrays()
        elif learned is not None:
            columns, counts, n_trees = learned
            arrays |= {"columns": columns, "documents": counts, "n_trees": np.array([n_trees])}
        return cls(settings, arrays)

    @property
    def spec(self) -> SparseSpec:
        """The fields of the spec."""
        own = ("idf", "parameters")
        return SparseSpec.from_dict({name: value for name, value in self.settings.items() if name not in own})

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that the spec does not tell, where they were described."""
        found = self.settings.get("parameters", {})
        if not isinstance(found, dict):
            raise SourceError("this is not the state of a FragmentVectorizer: its parameters are not there")
        return found

    @property
    def idf(self) -> bool | FloatArray:
        """The parameter ``idf``."""
        idf = self.settings.get("idf", False)
        if idf not in (True, False, "given") or (idf == "given") != ("idf" in self.arrays):
            raise SourceError("this is not the state of a FragmentVectorizer: its idf is not there")
        return np.asarray(self.arrays["idf"]) if idf == "given" else bool(idf)

    @property
    def dictionary(self) -> FragmentDictionary:
        """The fragments that have columns."""
        return FragmentDictionary.from_arrays(self.arrays)

    @property
    def documents(self) -> DocumentCounts:
        """How many trees hold each hashed column."""
        try:
            columns, counts = np.asarray(self.arrays["columns"]), np.asarray(self.arrays["documents"])
            n_trees = int(self.arrays["n_trees"][0])
        except (KeyError, IndexError) as error:
            raise SourceError(f"this is not the state of a FragmentVectorizer: {error} is missing") from None
        width = self.spec.n_features or 0
        ascending = columns.size == 0 or (
            columns[0] >= 0 and columns[-1] < width and (np.diff(columns) > 0).all()
        )
        if columns.dtype.kind != "i" or columns.shape != counts.shape or not ascending:
            raise SourceError("this is not the state of a FragmentVectorizer: its columns are out of order")
        if counts.dtype.kind != "i" or ((counts < 0) | (counts > n_trees)).any() or n_trees < 0:
            raise SourceError("this is not the state of a FragmentVectorizer: it counts impossible trees")
        return DocumentCounts(columns, counts, n_trees)

    @property
    def fingerprint(self) -> str:
        """A short stable name of all that determines a row."""
        spec, idf = self.spec, self.settings["idf"]
        if not self.arrays and not idf:
            return spec.fingerprint
        digest = hashlib.blake2b(f"{spec.fingerprint} {idf}".encode(), digest_size=8)
        for name in sorted(self.arrays):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.arrays[name]).data)
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, whole or not at all."""
        description = {"format": VECTORIZER_FORMAT, "settings": self.settings}
        write_arrays(path, description | {"fingerprint": self.fingerprint}, self.arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that ``save`` wrote, and raise where it does not hold what its fingerprint names."""
        check_is(path, "FragmentVectorizer.load")
        description, arrays = read_arrays(path)
        if description.get("format") != VECTORIZER_FORMAT:
            raise SourceError(f"{os.fspath(path)} does not hold a FragmentVectorizer")
        settings = description.get("settings")
        if not isinstance(settings, dict):
            raise SourceError(f"{os.fspath(path)} is damaged: it has no settings")
        state = cls({"idf": False, **settings}, arrays)
        if state.fingerprint != description.get("fingerprint"):
            raise SourceError(f"{os.fspath(path)} is damaged: it does not hold what its fingerprint names")
        return state
