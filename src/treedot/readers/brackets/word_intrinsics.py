"""The functions of ``words`` in compiled code, as LLVM instructions."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic

from treedot.readers.brackets.words import PADDING


def _load(context: Any, builder: Any, signature: Any, place: Any, kind: Any) -> Any:
    text, at = place
    data = context.make_array(signature.args[0])(context, builder, text).data
    return builder.load(builder.bitcast(builder.gep(data, [at]), kind.as_pointer()), align=1)


@intrinsic
def byte_at(typing: Any, text: Any, at: Any) -> Any:
    """Return one byte, without the sign check of an array index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = _load(context, builder, signature, arguments, ir.IntType(8))
        return builder.zext(byte, ir.IntType(64))

    return numba.types.int64(text, numba.types.intp), generate


@intrinsic
def word_at(typing: Any, text: Any, at: Any) -> Any:
    """Return eight bytes as an integer, the first byte in its lowest bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _load(context, builder, signature, arguments, ir.IntType(64))

    return numba.types.uint64(text, numba.types.intp), generate


@intrinsic
def label_bytes(typing: Any, text: Any, at: Any) -> Any:
    """Return the number of bytes of a label before the next blank or bracket; 32 if that is further away."""

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
    """Return one bit for each of 32 bytes, the first as the lowest: whether it equals ``byte``."""

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
    """Return the number of set bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return numba.types.int64(numba.types.int64), generate


@intrinsic
def first_mark(typing: Any, bits: Any) -> Any:
    """Return the position of the lowest set bit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return numba.types.int64(numba.types.int64), generate


@intrinsic
def scrambled(typing: Any, code: Any, word: Any, key: Any) -> Any:
    """Return the hash of a prefix with the hash ``code`` followed by a word; ``key`` must be odd."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code, word, key = arguments
        half = ir.Constant(ir.IntType(64), 32)
        product = builder.mul(builder.xor(code, word), key)
        # Twice: after one multiplication, low bits depend only on low bytes.
        product = builder.mul(builder.xor(product, builder.lshr(product, half)), key)
        return builder.xor(product, builder.lshr(product, half))

    return numba.types.uint64(numba.types.uint64, numba.types.uint64, numba.types.uint64), generate


@intrinsic
def first_bytes(typing: Any, word: Any, length: Any) -> Any:
    """Return the first ``length`` bytes of a word, at most eight; the others become 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, length = arguments
        one, four = (ir.Constant(ir.IntType(64), number) for number in (1, 4))
        half = builder.mul(length, four)  # shifting by 64 bits at once is undefined
        return builder.and_(word, builder.sub(builder.shl(builder.shl(one, half), half), one))

    return numba.types.uint64(numba.types.uint64, numba.types.uint64), generate
