"""Time the individual passes of the encoders: ``python -m benchmarks.passes``.

Each pass is given in microseconds and in row passes (``y += a * x`` over as many float32 numbers, same run),
with the bytes that it moves.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.__main__ import SIZE, row_pass
from benchmarks.timing import seconds
from treedot._runtime.jit import njit
from treedot.vectors.dense import fourier, mixed, mixing, product, rescaling
from treedot.vectors.dense.compositions import MixedProduct, ShuffledProduct

REPEAT = 1000
ROW = 4 * SIZE  # bytes


@njit
def _run(
    what: int, rows: Any, shuffles: Any, plus: Any, orders: Any, work: Any, spectrum: Any, edge: Any
) -> None:
    m1, m2 = shuffles
    x, y, out = rows[0], rows[1], rows[2]
    for _ in range(REPEAT):
        if what == 0:
            mixed._mix_times(x, m1, y, edge, out)
        elif what == 1:
            mixing.mix_plus(x, m2, plus, edge, out)
        elif what == 2:
            mixing.mix_signs_plus(plus.label, m2, plus, out)
        elif what == 3:
            mixing.add_label(out, plus.label, np.float32(1))
        elif what == 4:
            rescaling.add(out, 0, x, 0)
        elif what == 5:
            product._gather_times(y, orders[0], out)
        elif what == 6:
            product._finish(x, y, y, np.float32(1), np.float32(0.5), np.float32(1), out, rows[3])
        elif what == 7:
            fourier.forward(x, orders[1], work, spectrum[0], spectrum[1])
        elif what == 8:
            fourier.backward(spectrum[0], spectrum[1], work, np.float32(1e-4), out)


PASSES = (
    ("mixed: compose with a child", 3 * ROW),
    ("mixed: mix a finished child", 2 * ROW),
    ("mixed: mix a pre-terminal, from bits", ROW),
    ("mixed: add a pre-terminal to the total", 2 * ROW),
    ("any: add a finished node to the total", 3 * ROW),
    ("product: gather a child and multiply", 3 * ROW + ROW // 2),
    ("product: finish a node", 6 * ROW),
    ("convolution: shuffle and transform", 2 * ROW),
    ("convolution: transform back", 2 * ROW),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.parse_args(arguments)
    encoder = mixed.MixedEncoder(MixedProduct(SIZE))
    label = encoder.label_table(["a"]).child[0]
    plus = mixing.Sum(np.float32(1), label, np.float32(0.15), encoder.m2.signs)
    algebra = ShuffledProduct(SIZE)
    orders = (product.ProductEncoder(algebra, "float32").shuffles.inner[1], fourier.planar(algebra.p1))
    work = fourier.plan(SIZE, "float32")
    edge, spectrum = np.empty(mixing.EDGE, np.float32), np.ones((2, SIZE // 2 + 1), np.float32)
    unit = row_pass()
    print(f"a row pass of {SIZE} numbers takes {unit * 1e6:.2f} us")
    print(f"{'pass':<42}{'us':>7}{'row passes':>12}{'KiB':>6}{'GB/s':>7}")
    for what, (name, moved) in enumerate(PASSES):
        rows = np.ones((4, SIZE), np.float32)
        given = (what, rows, (encoder.m1, encoder.m2), plus, orders, work, spectrum, edge)
        took = seconds(lambda given=given: _run(*given), 0.2) / REPEAT  # type: ignore[misc]
        print(f"{name:<42}{took * 1e6:7.2f}{took / unit:12.1f}{moved // 1024:6d}{moved / took / 1e9:7.0f}")


if __name__ == "__main__":
    main()
