"""Load, combine and store sixteen elements at once in compiled code.

Compilers turn loops into vector instructions only if they can prove that rows do not overlap. They cannot,
for rows that move within larger arrays. So the encoders are explicit: ``load`` sixteen elements, add,
subtract and multiply them as one value, ``flip`` the signs marked by a 16-bit word, ``store`` them. Inside
compiled functions these become vector instructions of the processor's width; otherwise they are NumPy
operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treedot._runtime.array_types import Array
from treedot._runtime.jit import in_compiled_code

LANES = 16
INTRINSICS = "treedot._runtime.simd_intrinsics"
_LANE = np.arange(LANES)


@in_compiled_code(INTRINSICS)
def load(row: Array, index: int) -> Any:
    """Return ``row[index : index + 16]``."""
    return row[index : index + LANES].copy()


@in_compiled_code(INTRINSICS)
def store(row: Array, index: int, block: Any) -> None:
    """Set ``row[index : index + 16]``."""
    row[index : index + LANES] = block


@in_compiled_code(INTRINSICS)
def splat(value: Any) -> Any:
    """Return a block with sixteen copies of a value."""
    return np.full(LANES, value)


@in_compiled_code(INTRINSICS)
def flip(block: Any, word: Any) -> Any:
    """Change the sign of the elements whose bits are set in a 16-bit word."""
    return np.where((int(word) >> _LANE) & 1, -block, block)


@in_compiled_code(INTRINSICS)
def times(block: Any, row: Any, index: int) -> Any:
    """Return ``block * row[index : index + 16]``; the row may consist of signs, sixteen per word."""
    return flip(block, row[index // LANES]) if row.dtype == np.uint16 else block * load(row, index)


@in_compiled_code(INTRINSICS)
def multiply(a: Any, b: Any, out: Any) -> None:
    """Write the products of two rows; b, or both, may be signs. The product of signs is signs."""
    if out.dtype == np.uint16:
        out[:] = a ^ b
        return
    for at in range(0, out.size, LANES):
        store(out, at, times(load(a, at), b, at))


@in_compiled_code(INTRINSICS)
def larger(block: Any, other: Any) -> Any:
    """Return the maximum of ``block``, which holds magnitudes, and the magnitude of ``other``; NaN wins."""
    return np.maximum(block, np.abs(other))


@in_compiled_code(INTRINSICS)
def top(block: Any) -> Any:
    """Return the largest of sixteen magnitudes; NaN if one of them is NaN."""
    return block.max()


@in_compiled_code(INTRINSICS)
def exceeds(block: Any, limit: float) -> bool:
    """Return whether the magnitude of any element exceeds a limit."""
    return bool(np.any(np.abs(block) > limit))


@in_compiled_code(INTRINSICS)
def backwards(block: Any) -> Any:
    """Return the elements in reverse order."""
    return block[::-1].copy()


@in_compiled_code(INTRINSICS)
def zipped(a: Any, b: Any) -> Any:
    """Return ``a0 b0 a1 b1 … a7 b7`` and ``a8 b8 … a15 b15``."""
    both = np.stack([a, b], axis=1).ravel()
    return both[:LANES], both[LANES:]
