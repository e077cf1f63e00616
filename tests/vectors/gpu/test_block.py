"""What the kernels share, compiled for the processor: one thread in place of all."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from treedot.vectors import gpu

AS_ON_A_GPU = """
#include <algorithm>
#include <cmath>
#include <cstring>
#define D 512
#define __device__
#define __forceinline__ inline
#define __syncthreads()
#define __shfl_xor_sync(mask, x, s) (x)
using std::isfinite; using std::max; using std::min;
static unsigned __float_as_uint(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }
static float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
"""
CALLED = """
extern "C" int rescale_all(float* v, int exponent, float* bound) {
  float of_warp[WARPS];
  return rescale(*(float (*)[16])v, exponent, *bound, of_warp, 0);
}
extern "C" int write_one(float x, float factor, int exponent, int normalize, float* out) {
  int not_finite = 0;
  write_element(x, factor, exponent, normalize, out, &not_finite);
  return not_finite;
}
"""


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    folder = tmp_path_factory.mktemp("block")
    shared = (Path(gpu.__file__).parent / "block.cu").read_text("utf-8")
    (folder / "block.cpp").write_text(AS_ON_A_GPU + shared + CALLED, "utf-8")
    command = [compiler, "-O1", "-shared", "-fPIC", "block.cpp", "-o", "block.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "block.so"))
    library.write_one.argtypes = [ctypes.c_float, ctypes.c_float, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    return library


def rescaled(block: ctypes.CDLL, values: np.ndarray, exponent: int) -> tuple[np.ndarray, int, float]:
    v, bound = values.astype(np.float32), ctypes.c_float()
    found = block.rescale_all(v.ctypes.data_as(ctypes.c_void_p), exponent, ctypes.byref(bound))
    return v, found, bound.value


@pytest.mark.parametrize("power", [-149, -140, -128, -127, -126, -30, 0, 30, 120])
def test_values_are_scaled_without_loss_whatever_their_magnitude(block: ctypes.CDLL, power: int) -> None:
    values = np.ldexp(np.arange(-7.0, 9.0), power)
    v, exponent, bound = rescaled(block, values, 7)
    assert np.array_equal(np.ldexp(v.astype(float), exponent - 7), values)
    assert bound == np.abs(v).max()
    assert 2.0**-21 <= bound <= 2.0**20


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_values_that_are_not_finite_are_never_treated_as_zero(block: ctypes.CDLL, wrong: float) -> None:
    values = np.zeros(16)
    values[5] = wrong
    v, exponent, bound = rescaled(block, values, 3)
    assert exponent == 3
    assert not math.isfinite(bound)
    np.testing.assert_array_equal(v, values.astype(np.float32))


def test_zeros_have_no_exponent_however_often_they_are_rescaled(block: ctypes.CDLL) -> None:
    exponent = 5000
    for _ in range(20):
        _, exponent, bound = rescaled(block, np.zeros(16), exponent)
        assert (exponent, bound) == (-(1 << 28), 0.0)


@pytest.mark.parametrize("normalize", [0, 1])
def test_writing_a_value_that_is_not_finite_sets_the_flag(block: ctypes.CDLL, normalize: int) -> None:
    out = ctypes.c_float()
    for x, factor, exponent, noted in [
        (2.0, 0.5, 0, 0),
        (math.nan, 0.5, 0, 1),
        (math.inf, 0.5, 0, 1),
        (1e-40, math.inf, 0, 1),
        (1.0, 1.0, 300, 0 if normalize else 1),
        (0.0, 1.0, 5000, 0),
    ]:
        assert block.write_one(x, factor, exponent, normalize, ctypes.byref(out)) == noted
        assert math.isfinite(out.value) == (not noted)
