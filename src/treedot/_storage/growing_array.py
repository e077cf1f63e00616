"""``GrowingArray``: an array in a temporary file to which elements are appended."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import Array
from treedot._storage.files import reason
from treedot.errors import SourceError

CHUNK = 1 << 22  # elements copied at a time


class GrowingArray:
    """A one-dimensional array in a nameless temporary file.

    Parameters
    ----------
    dtype : dtype
        The type of the elements.
    target : Path, optional
        The file that the elements will be written to; errors name it. The temporary file is in the same
        folder, by default in the system's temporary folder. If possible it has no name, so even a killed
        process leaves no remains. Use it in a ``with`` statement.
    """

    def __init__(self, dtype: npt.DTypeLike, target: Path | None = None) -> None:
        self.dtype = np.dtype(dtype)
        folder = tempfile.gettempdir() if target is None else target.parent
        self._goal = f"temporary files in {folder}" if target is None else str(target)
        with self._clear_errors():
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by __exit__)
        self._size = 0

    def append(self, values: npt.ArrayLike) -> None:
        """Append elements."""
        array = np.ascontiguousarray(values, self.dtype)
        with self._clear_errors():
            self._file.write(array.data)
        self._size += array.size

    def read(self, start: int, stop: int) -> Array:
        """Return the elements from ``start`` up to ``stop``."""
        found = np.empty(stop - start, self.dtype)
        with self._clear_errors():  # flushes the last elements to disk
            self._file.seek(start * self.dtype.itemsize)
            if self._file.readinto(found.view(np.uint8)) != found.nbytes:  # type: ignore[attr-defined]
                raise SourceError(f"cannot write {self._goal}: a temporary file ends before element {stop}")
            self._file.seek(0, os.SEEK_END)
        return found

    def __len__(self) -> int:
        return self._size

    @property
    def shape(self) -> tuple[int]:
        """The number of elements, as an array's shape."""
        return (self._size,)

    def chunks(self) -> Iterator[Array]:
        """Yield all elements in chunks."""
        for start in range(0, self._size, CHUNK):
            yield self.read(start, min(start + CHUNK, self._size))

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SourceError(f"cannot write {self._goal}: {reason(error)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # unwritten elements, as on a full disk, are not needed any more
            self._file.close()


def chunks(array: Array | GrowingArray) -> Iterator[Array]:
    """Yield the elements of an array in C order, in chunks."""
    if isinstance(array, GrowingArray):
        yield from array.chunks()
        return
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        yield np.ascontiguousarray(flat[start : start + CHUNK])
