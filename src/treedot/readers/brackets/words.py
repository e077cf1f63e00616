"""Load several bytes of a text at once in compiled code.

A text has ``PADDING`` blanks after its end, so that there is something to load everywhere in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from treedot._runtime.jit import COMPILED

Text = npt.NDArray[np.uint8]

PADDING = 32

BLANKS = b"\t\n\v\f\r "

if not COMPILED:
    _NO_LABEL = frozenset(b"()" + BLANKS)

    def byte_at(text: Text, at: int) -> int:
        """Return one byte."""
        return int(text[at])

    def word_at(text: Text, at: int) -> Any:
        """Return eight bytes as an integer, the first as its lowest bits."""
        return int.from_bytes(text[at : at + 8].tobytes(), "little")

    def scrambled(code: Any, word: Any, key: Any) -> int:
        """Return the hash of what has the hash ``code`` and a word after it, by an odd ``key``."""
        return hash((code, word, key)) & 0x7FFFFFFFFFFFFFFF

    def first_bytes(word: Any, length: int) -> Any:
        """Return a word without all bytes but its first ones, at most eight."""
        return word & ((1 << (8 * int(length))) - 1)

    def label_bytes(text: Text, at: int) -> int:
        """Return how many bytes of a label come before the next blank or bracket: 32 if it is not near."""
        for length in range(PADDING):
            if text[at + length] in _NO_LABEL:
                return length
        return PADDING

    def marks(text: Text, at: int, byte: int) -> int:
        """Return one bit for each of 32 bytes, the first as the lowest: whether it is a certain one."""
        return sum(1 << k for k in range(PADDING) if text[at + k] == byte)

    def n_marks(bits: int) -> int:
        """Return how many bits are set."""
        return bits.bit_count()

    def first_mark(bits: int) -> int:
        """Return the number of the lowest bit that is set."""
        return (bits & -bits).bit_length() - 1

else:
    import numba
    from llvmlite import ir
    from numba.extending import intrinsic

    def _load(context: Any, builder: Any, signature: Any, place: Any, kind: Any) -> Any:
        text, at = place
        data = context.make_array(signature.args[0])(context, builder, text).data
        return builder.load(builder.bitcast(builder.gep(data, [at]), kind.as_pointer()), align=1)

    @intrinsic
    def byte_at(typing: Any, text: Any, at: Any) -> Any:
        """Return one byte; an index of an array would be asked for its sign each time."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            byte = _load(context, builder, signature, arguments, ir.IntType(8))
            return builder.zext(byte, ir.IntType(64))

        return numba.types.int64(text, numba.types.intp), generate

    @intrinsic
    def word_at(typing: Any, text: Any, at: Any) -> Any:
        """Return eight bytes as an integer, the first as its lowest bits."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _load(context, builder, signature, arguments, ir.IntType(64))

        return numba.types.uint64(text, numba.types.intp), generate

    @intrinsic
    def label_bytes(typing: Any, text: Any, at: Any) -> Any:
        """Return how many bytes of a label come before the next blank or bracket: 32 if it is not near."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.VectorType(ir.IntType(8), PADDING)
            block = _load(context, builder, signature, arguments, kind)

            def all_of(byte: int) -> Any:
                return ir.Constant(kind, [byte] * PADDING)

            bracket = builder.icmp_unsigned("==", builder.or_(block, all_of(1)), all_of(ord(")")))
            space = builder.icmp_unsigned("==", block, all_of(ord(" ")))
            other = builder.icmp_unsigned("<", builder.sub(block, all_of(ord("\t"))), all_of(5))
            ends = builder.bitcast(builder.or_(bracket, builder.or_(space, other)), ir.IntType(PADDING))
            marks = builder.or_(builder.zext(ends, ir.IntType(64)), ir.Constant(ir.IntType(64), 1 << PADDING))
            return builder.cttz(marks, ir.Constant(ir.IntType(1), 1))

        return numba.types.int64(text, numba.types.intp), generate

    @intrinsic
    def marks(typing: Any, text: Any, at: Any, byte: Any) -> Any:
        """Return one bit for each of 32 bytes, the first as the lowest: whether it is a certain one."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.VectorType(ir.IntType(8), PADDING)
            block = _load(context, builder, signature, arguments[:2], kind)
            wanted = builder.trunc(arguments[2], ir.IntType(8))
            first = builder.insert_element(ir.Constant(kind, ir.Undefined), wanted, ir.IntType(32)(0))
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), PADDING), [0] * PADDING)
            same = builder.icmp_unsigned("==", block, builder.shuffle_vector(first, first, lanes))
            return builder.zext(builder.bitcast(same, ir.IntType(PADDING)), ir.IntType(64))

        return numba.types.int64(text, numba.types.intp, numba.types.int64), generate

    @intrinsic
    def n_marks(typing: Any, bits: Any) -> Any:
        """Return how many bits are set."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return numba.types.int64(numba.types.int64), generate

    @intrinsic
    def first_mark(typing: Any, bits: Any) -> Any:
        """Return the number of the lowest bit that is set."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return numba.types.int64(numba.types.int64), generate

    @numba.njit
    def scrambled(code: Any, word: Any, key: Any) -> Any:
        """Return the hash of what has the hash ``code`` and a word after it, by an odd ``key``."""
        half = np.uint64(32)
        odd = np.uint64(key)
        product = (np.uint64(code) ^ word) * odd
        product = (product ^ (product >> half)) * odd  # once more: the first one leaves low bits to low bytes
        return product ^ (product >> half)

    @numba.njit
    def first_bytes(word: Any, length: int) -> Any:
        """Return a word without all bytes but its first ones, at most eight."""
        half = np.uint64(4 * length)  # shifting by 64 bits at once is not defined
        return word & (((np.uint64(1) << half) << half) - np.uint64(1))


def padded(*parts: bytes | Text) -> Text:
    """Return the text that parts make up, with blanks after its end."""
    pieces: list[Any] = [*parts, b" " * PADDING]
    return np.frombuffer(bytearray().join(pieces), np.uint8)
