"""What runs on a GPU, where there is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components import component
from gpu_emulation import assert_close, binary_tree
from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    LinearModel,
    TreeClassifier,
    dot_products,
    nearest,
    read_trees,
)
from treedot.errors import DeviceError, RangeError
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.gpu import GpuEncoder, encoder, mixed, neighbours

torch: Any = component("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def assert_same_vectors(forest: Forest, spec: DenseSpec) -> None:
    expected, got = DenseEncoder(spec).encode(forest), GpuEncoder(spec).encode(forest).cpu().numpy()
    assert_close(got, expected)


def assert_as_near_as_the_processors(forest: Forest, spec: DenseSpec) -> None:
    """Assert so of large trees, in which rounding adds up: how near vectors are to those of float64."""
    exact = DenseEncoder(replace(spec, dtype="float64")).encode(forest)
    largest = np.abs(exact).max(axis=1, keepdims=True) + (exact == 0).all(axis=1, keepdims=True)
    of_gpu, of_processor = (
        np.abs((vectors - exact) / largest).max(axis=1)
        for vectors in (GpuEncoder(spec).encode(forest).cpu().numpy(), DenseEncoder(spec).encode(forest))
    )
    assert (of_gpu <= np.maximum(1e-6, 2 * of_processor)).all()


@pytest.mark.parametrize("composition", ["mixed", "product"])
@pytest.mark.parametrize("size", [512, 1536, 8192, 16384])
@pytest.mark.parametrize("decay", [0.0, 0.4, 1.0])
def test_vectors_are_those_of_the_processor(composition: str, size: int, decay: float) -> None:
    forest = random_forest(size, 100)
    assert_same_vectors(forest, DenseSpec(n_components=size, decay=decay, composition=composition))


def test_large_trees_are_rescaled_and_lie_in_global_memory_where_they_need_many_rows() -> None:
    deep = "(A (B b) " * 3000 + "(B b)" + ")" * 3000
    wide = "(S " + " ".join(f"(A (B b{k % 3}) c)" for k in range(2000)) + ")"
    forest = read_trees([binary_tree(9), deep, wide, "(a)", "(A b)"])
    for composition in ("mixed", "product"):
        assert_as_near_as_the_processors(forest, DenseSpec(composition=composition))


def test_a_vector_too_large_without_normalisation_raises() -> None:
    wide = "(S " + " ".join(["(A (B b) (C c))"] * 500) + ")"
    forest = read_trees(["(A b)", wide])
    with pytest.raises(RangeError, match="tree 2 is too large"):
        GpuEncoder(DenseSpec(decay=1.0, normalize=False)).encode(forest)


def test_errors_name_the_tree_that_is_too_large_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    large = "(A (B b) " * 3000 + "(B b)" + ")" * 3000
    forest = read_trees([*["(A b)"] * 10, large, "(A c)", large])
    monkeypatch.setattr(encoder, "MOST_VECTORS", 4)
    with pytest.raises(RangeError, match="tree 11 is too large"):
        GpuEncoder(DenseSpec(decay=1.0, normalize=False)).transform(forest)


def test_errors_name_the_wide_tree_that_is_too_large() -> None:
    wide, large = (f"(A{' c' * 40} {child})" for child in ("c", binary_tree(12)))
    forest = read_trees(["(A b)", wide, "(A c)", large, "(A d)"])
    with pytest.raises(RangeError, match="tree 4 is too large"):
        GpuEncoder(DenseSpec(decay=1.0, composition="product", normalize=False)).transform(forest)


@pytest.mark.parametrize("composition", ["mixed", "product"])
def test_many_calls_may_be_under_way(composition: str) -> None:
    on_gpu = GpuEncoder(DenseSpec(composition=composition))
    forests = [random_forest(seed, 400) for seed in range(12)]
    found = [on_gpu.encode(forest) for forest in forests]
    for forest, vectors in zip(forests, found, strict=True):
        torch.cuda.synchronize()
        assert torch.equal(on_gpu.encode(forest), vectors)


def test_the_least_vectors_of_large_trees_fit_the_shared_memory() -> None:
    assert_same_vectors(read_trees([binary_tree(9)]), DenseSpec(n_components=512, decay=1.0))


def test_vectors_are_the_same_however_trees_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = random_forest(3, 500)
    whole = GpuEncoder(DenseSpec()).encode(forest)
    monkeypatch.setattr(encoder, "CHUNK_NODES", 1000)
    monkeypatch.setattr(mixed, "TAG_BYTES", 10 * 33 * 1024)
    assert torch.equal(GpuEncoder(DenseSpec()).encode(forest), whole)


def test_the_vectorizer_returns_arrays() -> None:
    forest = random_forest(4, 50)
    here, there = (DistributedTreeVectorizer(device=device).transform(forest) for device in ("cpu", "cuda"))
    assert isinstance(there, np.ndarray)
    np.testing.assert_allclose(there, here, atol=1e-6)


def test_a_model_predicts_the_same(tmp_path: Path) -> None:
    forest = random_forest(5, 60)
    y = ["large" if size > 20 else "small" for size in forest.sizes]
    TreeClassifier(vectorizer=DistributedTreeVectorizer(n_components=512), C=1.0).fit(forest, y).save(
        tmp_path / "m"
    )
    here, there = (LinearModel.load(tmp_path / "m", device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(there.decision_function(forest), here.decision_function(forest), atol=1e-5)


def test_dot_products_and_neighbours_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    X, Y = (
        rng.standard_normal((700, 64)).astype(np.float32),
        rng.standard_normal((333, 64)).astype(np.float32),
    )
    np.testing.assert_allclose(dot_products(X, Y, device="cuda"), dot_products(X, Y), rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(neighbours, "TILE_ROWS", 64)
    monkeypatch.setattr(neighbours, "TILE_COLUMNS", 128)
    for other in (None, Y):
        rows, values = nearest(X, other, 10, device="cuda")
        expected_rows, expected = nearest(X, other, 10)
        np.testing.assert_array_equal(rows, expected_rows)
        np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_neighbours_of_many_equal_vectors_are_found() -> None:
    X = np.repeat(np.eye(8, dtype=np.float32), 100, axis=0)
    rows, values = nearest(X, k=10, device="cuda")
    assert (values == 1).all()
    assert (rows // 100 == np.arange(800)[:, None] // 100).all()


def test_out_must_fit() -> None:
    with pytest.raises(DeviceError, match="out must be a float32 tensor"):
        GpuEncoder(DenseSpec()).encode(read_trees(["(A b)"]), torch.empty((2, 8192), device="cuda"))
