"""Write and map files of named arrays with a short description, in the safetensors format.

A file consists of the length of its header in eight bytes, a JSON header with the type, shape and position of
every array, and the arrays, little-endian. The description is JSON text in the header's metadata, under
``treedot``. Any safetensors library can read such a file. Here it is mapped into memory, not loaded: data
start at a multiple of 64 bytes and wider types come first, so every array is aligned.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from treedot._runtime.array_types import Array
from treedot._storage.files import open_plain, write_whole
from treedot._storage.growing_array import GrowingArray, chunks
from treedot._storage.seals import BLANK, SealedFile, is_whole
from treedot.errors import SourceError

DTYPES = {
    name: np.dtype(code)
    for name, code in {
        "F64": "<f8", "F32": "<f4", "F16": "<f2",
        "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
        "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
    }.items()
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}

ALIGNMENT = 64
MAX_HEADER = 100_000_000  # the limit of safetensors itself
DESCRIPTION, DIGEST = "treedot", "treedot.digest"  # keys in the header's metadata


def write_arrays(
    path: str | os.PathLike[str],
    description: Mapping[str, Any],
    arrays: Mapping[str, Array | GrowingArray],
    *,
    sealed: bool = False,
) -> None:
    """Write arrays and a description, a JSON value; the file appears atomically.

    With ``sealed``, the header contains a digest of the file, which ``read_sealed`` checks.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> path = pathlib.Path(tempfile.mkdtemp(), "lengths.safetensors")
    >>> write_arrays(path, {"unit": "metre"}, {"length": np.arange(3.0)})
    >>> read_arrays(path)
    ({'unit': 'metre'}, {'length': array([0., 1., 2.])})
    """
    with write_whole(path) as aside:
        dump_arrays(aside, description, arrays, path, sealed=sealed)


def dump_arrays(
    file_path: Path,
    description: Mapping[str, Any],
    arrays: Mapping[str, Array | GrowingArray],
    path: str | os.PathLike[str] | None = None,
    *,
    sealed: bool = False,
) -> None:
    """Write such a file without atomicity, for example into a folder that is itself written atomically.

    Errors name ``path``, by default the file itself.
    """
    path = file_path if path is None else path
    digest = {DIGEST: BLANK.decode()} if sealed else {}
    header: dict[str, Any] = {"__metadata__": {**digest, DESCRIPTION: json.dumps(description)}}
    order = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    end = 0
    for name in order:
        array = arrays[name]
        dtype = array.dtype.newbyteorder("<")
        if dtype not in NAMES:
            raise SourceError(f"cannot write {name!r} to {path}: safetensors has no type {dtype}")
        start, end = end, end + math.prod(array.shape) * dtype.itemsize
        header[name] = {"dtype": NAMES[dtype], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    with SealedFile(file_path) if sealed else file_path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            for chunk in chunks(arrays[name]):
                file.write(chunk.astype(chunk.dtype.newbyteorder("<"), copy=False).data)
        if file.tell() != 8 + len(text) + end:
            raise SourceError(f"cannot write {path}: an array changed while it was being written")
        if isinstance(file, SealedFile):
            file.seal(after=0)


def read_sealed(path: str | os.PathLike[str], description: Mapping[str, Any]) -> dict[str, Array]:
    """Return the arrays of a file sealed with this description; raise if a byte has changed."""
    with open_plain(path) as file:
        metadata, arrays = _mapped(file, path)
    digest = metadata.get(DIGEST) if isinstance(metadata, dict) else None
    if not isinstance(digest, str) or not is_whole(Path(path), digest.encode(errors="replace")):
        raise SourceError(f"{path} is damaged: its content does not match its digest")
    if _description(metadata, path) != description:
        raise SourceError(f"{path} is not the expected file: its description differs")
    return arrays


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the description and the arrays of a file, mapped into memory read-only.

    The header is checked against the file's size before it is used.
    """
    with open_plain(path) as file:
        return mapped_arrays(file, path)


def mapped_arrays(file: IO[bytes], path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the result of ``read_arrays`` for an open file, which may be closed afterwards."""
    metadata, arrays = _mapped(file, path)
    return _description(metadata, path), arrays


def _mapped(file: IO[bytes], path: str | os.PathLike[str]) -> tuple[Any, dict[str, Array]]:
    """Return the header's metadata, and the arrays."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or not 2 <= length <= min(size - 8, MAX_HEADER):
        raise SourceError(f"{path} is not a treedot file, or is truncated: its header does not fit")
    header = _parsed(file.read(length), path)
    metadata = header.pop("__metadata__", {})
    places = {name: _place(name, entry, path) for name, entry in header.items()}
    end = 0
    for _, _, start, stop in sorted(places.values(), key=lambda place: place[2:]):
        if start != end:
            raise SourceError(f"{path} is damaged: its arrays overlap or leave gaps")
        end = stop
    if 8 + length + end != size:
        raise SourceError(
            f"{path} is damaged or truncated: it contains {size - 8 - length} bytes of data, not {end}"
        )
    raw = np.memmap(file, np.uint8, "r")
    if raw.size != size:
        raise SourceError(f"{path} changed while it was being read")
    data = np.asarray(raw)[8 + length :]
    try:
        arrays = {
            name: data[start:stop].view(dtype).reshape(shape)
            for name, (dtype, shape, start, stop) in places.items()
        }
    except ValueError as error:  # more or larger dimensions than NumPy supports
        raise SourceError(f"{path} is damaged: {error}") from None
    return metadata, arrays


def begins_as_arrays(head: bytes) -> bool:
    """Return whether a file with these first bytes contains arrays; text in brackets may look alike."""
    length = int.from_bytes(head[:8], "little")
    return head[8:9] == b"{" and 2 <= length <= MAX_HEADER and not head.lstrip().startswith(b"(")


def _parsed(text: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        found = json.loads(text.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is not a treedot file, or its header is damaged: {error}") from None
    if not isinstance(found, dict):
        raise SourceError(f"{path} is not a treedot file: its header is not a JSON object")
    return found


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} occurs twice")
        found[name] = value
    return found


def _place(name: str, entry: Any, path: str | os.PathLike[str]) -> tuple[np.dtype[Any], list[int], int, int]:
    """Return the dtype, shape, first and last byte of an array; raise unless its header entry is valid."""
    if isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}:
        dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
        shape, offsets = entry["shape"], entry["data_offsets"]
        if dtype is not None and _sizes(shape) and _sizes(offsets) and len(offsets) == 2:
            start, stop = offsets
            if stop - start == math.prod(shape) * dtype.itemsize:
                return dtype, shape, start, stop
    raise SourceError(f"{path} is damaged: the header entry of the array {name!r} is invalid")


def _sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(x) is int and 0 <= x < 2**63 for x in values)


def _description(metadata: Any, path: str | os.PathLike[str]) -> dict[str, Any]:
    text = metadata.get(DESCRIPTION, "{}") if isinstance(metadata, dict) else None
    try:
        description = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        description = None
    if not isinstance(description, dict):
        raise SourceError(f"{path} is damaged: its description is not a JSON object")
    return description
