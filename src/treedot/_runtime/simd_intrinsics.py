"""The functions of ``simd`` in compiled code, as LLVM vector instructions."""

from __future__ import annotations

import operator
from typing import Any

import numba
from llvmlite import ir
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_builtin, overload, register_model, type_callable

from treedot._runtime.jit import in_pipeline
from treedot._runtime.simd import LANES

_inside = numba.njit(**in_pipeline(no_cpython_wrapper=True, no_cfunc_wrapper=True))


class Block(numba.types.Type):
    """The Numba type of sixteen elements."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Block({dtype})")


@register_model(Block)
class _BlockModel(models.PrimitiveModel):
    def __init__(self, manager: Any, block: Block) -> None:
        element = ir.FloatType() if block.dtype == numba.types.float32 else ir.DoubleType()
        super().__init__(manager, block, ir.VectorType(element, LANES))


def _address(context: Any, builder: Any, kind: Any, place: Any, vector: Any) -> Any:
    row, index = place
    data = context.make_array(kind)(context, builder, row).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


@intrinsic
def load(typing: Any, row: Any, index: Any) -> Any:
    """Return ``row[index : index + 16]``."""
    block = Block(row.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(block)
        address = _address(context, builder, signature.args[0], arguments, vector)
        return builder.load(address, align=row.dtype.bitwidth // 8)

    return block(row, numba.types.intp), generate


@intrinsic
def store(typing: Any, row: Any, index: Any, block: Any) -> Any:
    """Set ``row[index : index + 16]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(block)
        address = _address(context, builder, signature.args[0], arguments[:2], vector)
        builder.store(arguments[2], address, align=row.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return numba.types.void(row, numba.types.intp, block), generate


@intrinsic
def splat(typing: Any, value: Any) -> Any:
    """Return a block with sixteen copies of a value."""
    block = Block(value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(block)
        nothing = ir.Constant(vector, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        first = builder.insert_element(nothing, arguments[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, nothing, zeros)

    return block(value), generate


@intrinsic
def flip(typing: Any, block: Any, word: Any) -> Any:
    """Change the sign of the elements whose bits are set in a 16-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        marks = builder.bitcast(arguments[1], ir.VectorType(ir.IntType(1), LANES))
        return builder.select(marks, builder.fneg(arguments[0]), arguments[0])

    return block(block, numba.types.uint16), generate


@intrinsic
def larger(typing: Any, block: Any, other: Any) -> Any:
    """Return the maximum of ``block``, which holds magnitudes, and the magnitude of ``other``; NaN wins."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Without the sign, floating-point numbers are ordered like their bits, with NaN last.
        bits = block.dtype.bitwidth
        words = ir.VectorType(ir.IntType(bits), LANES)
        top, magnitude = (builder.bitcast(value, words) for value in arguments)
        magnitude = builder.and_(magnitude, ir.Constant(words, [2 ** (bits - 1) - 1] * LANES))
        above = builder.icmp_signed(">", magnitude, top)
        return builder.bitcast(builder.select(above, magnitude, top), arguments[0].type)

    return block(block, block), generate


@intrinsic
def top(typing: Any, block: Any) -> Any:
    """Return the largest of sixteen magnitudes; NaN if one of them is NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(block.dtype.bitwidth)
        words = builder.bitcast(arguments[0], ir.VectorType(word, LANES))
        found = ir.Constant(word, 0)
        for lane in range(LANES):  # ordered like their bits
            bits = builder.extract_element(words, ir.Constant(ir.IntType(32), lane))
            found = builder.select(builder.icmp_signed(">", bits, found), bits, found)
        return builder.bitcast(found, context.get_value_type(block.dtype))

    return block.dtype(block), generate


@intrinsic
def _any_above(typing: Any, block: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        marks = builder.bitcast(builder.fcmp_ordered(">", *arguments), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", marks, ir.Constant(marks.type, 0))

    return numba.types.boolean(block, block), generate


@_inside
def exceeds(block: Any, limit: float) -> Any:
    """Return whether the magnitude of any element exceeds a limit."""
    edge = splat(limit)
    return _any_above(larger(edge, block), edge)


def _shuffle(name: str, order: list[int], meaning: str) -> Any:
    """Return a function that takes elements of two blocks in a given order."""

    def shuffle(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
            return builder.shuffle_vector(arguments[0], arguments[1], places)

        return a(a, b), generate

    shuffle.__name__, shuffle.__doc__ = name, meaning
    return intrinsic(shuffle)


_reversed = _shuffle("_reversed", list(range(LANES))[::-1], "The first block backwards.")
_alternating = [k // 2 + LANES * (k % 2) for k in range(2 * LANES)]
_zip_first = _shuffle("_zip_first", _alternating[:LANES], "Their first halves, alternating.")
_zip_second = _shuffle("_zip_second", _alternating[LANES:], "Their second halves, alternating.")


@_inside
def backwards(block: Any) -> Any:
    """Return the elements in reverse order."""
    return _reversed(block, block)


@_inside
def zipped(a: Any, b: Any) -> Any:
    """Return ``a0 b0 a1 b1 … a7 b7`` and ``a8 b8 … a15 b15``."""
    return _zip_first(a, b), _zip_second(a, b)


def _arithmetic(symbol: Any, instruction: str) -> None:
    @type_callable(symbol)
    def combine(context: Any) -> Any:
        return lambda a, b: a if isinstance(a, Block) and a == b else None

    @lower_builtin(symbol, Block, Block)
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments)


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")


def times(block: Any, row: Any, index: int) -> Any:
    """Return ``block * row[index : index + 16]``; the row may consist of signs, sixteen per word."""


@overload(times, jit_options=in_pipeline())
def _times(block, row, index):  # names must match exactly
    if row.dtype == numba.types.uint16:
        return lambda block, row, index: flip(block, row[index // LANES])
    return lambda block, row, index: block * load(row, index)


def multiply(a: Any, b: Any, out: Any) -> None:
    """Write the products of two rows; b, or both, may be signs. The product of signs is signs."""


@overload(multiply, jit_options=in_pipeline())
def _multiply(a, b, out):
    def signs(a, b, out):
        for k in range(out.size):
            out[k] = a[k] ^ b[k]

    def row(a, b, out):
        for at in range(0, out.size, LANES):
            store(out, at, times(load(a, at), b, at))

    return signs if out.dtype == numba.types.uint16 else row
