"""What is said where there is no GPU, or where it cannot do what is asked."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components import component
from gpu_emulation import binary_tree
from treedot import DistributedTreeVectorizer, Forest, FragmentVectorizer, dot_products, nearest, read_trees
from treedot.errors import DeviceError, ParameterError, RangeError
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.dense.mixed import MixedEncoder
from treedot.vectors.gpu import GpuEncoder, device
from treedot.vectors.gpu.device import clear_memory_errors, open_device
from treedot.vectors.gpu.mixed import LabelSigns, Way, ways
from treedot.vectors.gpu.product import ProductOnGpu

TREES = ["(A b)", "(A c)"]


@pytest.mark.parametrize("name", ["tpu", "", None, 3, "cudax"])
def test_other_devices_are_unknown(name: Any) -> None:
    with pytest.raises(DeviceError, match="device must be 'cpu', 'cuda' or 'cuda:NUMBER'"):
        open_device(name)


def test_without_pytorch_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DeviceError, match="pip install torch, or install treedot again with the extra 'gpu'"):
        DistributedTreeVectorizer(device="cuda").transform(TREES)


@pytest.mark.parametrize("error", ["OSError", "ImportError"])
def test_a_pytorch_that_cannot_be_loaded_is_named(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text(f"raise {error}('libcudart.so: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(DeviceError, match=r"PyTorch, which cannot be loaded: libcudart\.so: cannot open"):
        open_device("cuda")


def test_a_pytorch_without_cuda_is_named() -> None:
    torch: Any = component("torch")
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch was built for CUDA")
    with pytest.raises(DeviceError, match="needs PyTorch built for CUDA"):
        DistributedTreeVectorizer(device="cuda").transform(TREES)


class HalfOnGpu(GpuEncoder):
    """An encoder whose GPU is the processor: vectors that do not fit float32 are infinite, and noted."""

    def __init__(self, spec: DenseSpec) -> None:
        torch: Any = component("torch")
        not_finite = torch.zeros(1, dtype=torch.int32)
        here: Any = SimpleNamespace(sent=torch.from_numpy, device=torch.device("cpu"), not_finite=not_finite)
        self.spec, self._gpu = spec, here

    def _encode_here(self, forest: Forest, out: Any, n_jobs: int | None) -> None:
        for k in range(len(forest)):
            try:
                out[k] = self._gpu.sent(DenseEncoder(self.spec).encode(forest[[k]]))[0]
            except RangeError:
                out[k], self._gpu.not_finite[0] = np.inf, 1


def test_wide_trees_that_the_processor_encodes_keep_their_places() -> None:
    spec = DenseSpec(n_components=512, composition="product")
    forest = read_trees(["(A b)", "(A" + " (B c)" * 40 + ")", "(A (B c))", "(A" + " (B d)" * 33 + ")"])
    np.testing.assert_array_equal(HalfOnGpu(spec).encode(forest), DenseEncoder(spec).encode(forest))


@pytest.mark.parametrize("width", [2, 40])
def test_a_tree_that_is_too_large_is_named_whoever_encodes_it(width: int) -> None:
    spec = DenseSpec(n_components=512, decay=1.0, composition="product", normalize=False)
    large = f"(A{' c' * width} {binary_tree(12)})"
    forest = read_trees(["(A b)", f"(A{' c' * 40})", "(A c)", large, "(A d)"])
    with pytest.raises(RangeError, match=r"the vector of tree 4 is too large for float32 with decay=1\.0"):
        HalfOnGpu(spec).encode(forest)


def test_a_vector_that_the_gpu_notes_as_not_finite_is_an_error_once() -> None:
    encoder = HalfOnGpu(DenseSpec(n_components=512))
    forest = read_trees(["(A b)", "(A c)", "(A d)"])
    vectors = encoder.encode(forest)
    spoilt = vectors.clone()
    spoilt[1, 7] = np.nan
    encoder._gpu.not_finite[0] = 1
    with pytest.raises(
        RangeError, match=r"tree 12 is not finite in float32 with decay=0\.4: use device='cpu'"
    ):
        encoder._require_finite(spoilt, before=10)
    encoder._require_finite(vectors)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"composition": "convolution"}, "composition='convolution' needs device='cpu'"),
        ({"kernel": "partial"}, "kernel='partial' needs device='cpu'"),
        ({"kernel": "smoothed", "similarity": "x"}, "kernel='smoothed' needs device='cpu'"),
        ({"dtype": "float64"}, "dtype='float64' needs device='cpu'"),
        ({"n_components": 768}, "a multiple of 512 up to 16384, not 768"),
        ({"n_components": 32768}, "not 32768: use device='cpu'"),
    ],
)
def test_settings_that_a_gpu_does_not_support_raise(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        GpuEncoder(DenseSpec(**settings))


def test_sparse_rows_need_the_processor() -> None:
    rows = FragmentVectorizer().transform(TREES)
    for compare in (dot_products, nearest):
        with pytest.raises(DeviceError, match="sparse rows need device='cpu'"):
            compare(rows, device="cuda")


def test_a_processor_compares_whole_vectors() -> None:
    with pytest.raises(ParameterError, match="elements needs device='cuda'"):
        nearest(np.eye(3), elements=2)


def test_blocks_share_the_memory_for_rows() -> None:
    server = SimpleNamespace(shared_memory_per_multiprocessor=233472, shared_memory_per_block_optin=232448)
    desktop = SimpleNamespace(shared_memory_per_multiprocessor=102400, shared_memory_per_block_optin=101376)
    assert ways(server, 8192) == [Way(3, 2, False), Way(7, 1, False), Way(255, 1, True)]
    assert ways(desktop, 8192) == [Way(1, 2, False), Way(3, 1, False), Way(255, 1, True)]
    assert ways(desktop, 16384) == [Way(1, 1, False), Way(255, 1, True)]
    for card in (server, desktop):
        for size in range(512, 16385, 512):
            warps, rows = size // 512, max([way.rows for way in ways(card, size) if not way.in_global])
            static = 512 + 4 + 8 * warps + 2 * 4 * 64 + 4 * warps  # what mixed.cu has besides rows
            assert 4 * size * rows + static <= card.shared_memory_per_block_optin


@pytest.mark.parametrize(("memory", "table"), [(1 << 37, 1 << 32), (1 << 33, 1 << 30)])
def test_labels_take_an_eighth_of_the_memory_at_most(memory: int, table: int) -> None:
    def empty(shape: tuple[int, int], dtype: str) -> Any:
        return np.empty(shape, dtype)

    gpu: Any = SimpleNamespace(
        properties=SimpleNamespace(total_memory=memory), empty=empty, sent_words=np.asarray
    )
    mixed = MixedEncoder(DenseSpec().algebra())  # type: ignore[arg-type]
    labels = LabelSigns(mixed, gpu, lambda *_: None)
    of_label = 2 * (sum(each.shape[1] for each in labels.tables) + labels.signs.shape[1])
    assert table - of_label < labels.capacity * of_label <= table


def test_too_little_shared_memory_for_the_product_raises() -> None:
    desktop = SimpleNamespace(shared_memory_per_block_optin=101376)
    algebra: Any = DenseSpec(n_components=16384, composition="product").algebra()
    gpu: Any = SimpleNamespace(device="cuda:0", properties=desktop)
    with pytest.raises(DeviceError, match="cuda:0 has too little shared memory for composition='product'"):
        ProductOnGpu(algebra, gpu)


def test_kernels_are_compiled_and_launched_on_their_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = component("torch")
    current: list[int] = [0]
    met: list[tuple[str, int]] = []

    @contextlib.contextmanager
    def on(number: int) -> Iterator[None]:
        current.append(number)
        yield
        current.pop()

    def compile_it(*_: Any) -> Any:
        met.append(("compiled", current[-1]))
        return lambda *_: met.append(("launched", current[-1]))

    monkeypatch.setattr(torch.cuda, "device", on)
    monkeypatch.setattr(device, "_by_torch", compile_it)
    device.compiled.__wrapped__("neighbours.cu", "above", 1)((1, 1), 32, [], 0)
    assert met == [("compiled", 1), ("launched", 1)]


def test_too_little_memory_raises_an_error_with_advice() -> None:
    torch: Any = component("torch")
    with (
        pytest.raises(DeviceError, match=r"cuda:0 has too little memory for 7 trees: pass fewer at a time"),
        clear_memory_errors("cuda:0", "7 trees"),
    ):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.\nTried …")
