import numpy as np
import pytest

from treedot.vectors.dense import fourier


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [32, 64, 256, 512, 1024, 2048, 4096, 8192, 16384])
def test_transforms_agree_with_numpy(size, dtype):
    rng = np.random.default_rng(size)
    row, order = rng.normal(size=size).astype(dtype), rng.permutation(size)
    planar_row = np.concatenate([row[0::2], row[1::2]])
    work = fourier.plan(size, dtype)
    re, im = np.empty(size // 2 + 1, dtype), np.empty(size // 2 + 1, dtype)
    fourier.forward(planar_row, fourier.planar(order), work, re, im)
    expected = np.fft.rfft(row[order].astype(float))
    tolerance = 3e-6 if dtype == "float32" else 1e-14
    assert np.abs(re + 1j * im - expected).max() < tolerance * np.abs(expected).max()
    back = np.empty(size, dtype)
    fourier.backward(re, im, work, np.dtype(dtype).type(1 / size), back)
    shuffled = np.empty(size, dtype)
    shuffled[0::2], shuffled[1::2] = back[: size // 2], back[size // 2 :]
    assert np.abs(shuffled - row[order]).max() < tolerance * np.abs(row).max()
