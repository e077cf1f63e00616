"""Open a GPU through PyTorch, and compile CUDA code for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from treedot._runtime.array_types import Array
from treedot.errors import DeviceError, how_to_install

Kernel = Callable[
    [tuple[int, int], int, Sequence[Any], int], None
]  # blocks, threads, arguments, shared bytes


def open_device(name: str) -> Any:
    """Return a CUDA device of PyTorch by its name, such as "cuda" or "cuda:1".

    Examples
    --------
    >>> open_device("tpu")
    Traceback (most recent call last):
    treedot.errors.DeviceError: device must be 'cpu', 'cuda' or 'cuda:NUMBER', not 'tpu'
    """
    if not isinstance(name, str) or name.partition(":")[0] != "cuda":
        raise DeviceError(f"device must be 'cpu', 'cuda' or 'cuda:NUMBER', not {name!r}")
    try:
        import torch
    except ModuleNotFoundError:
        how = how_to_install("torch", "gpu")
        raise DeviceError(f"device={name!r} needs PyTorch, which is not installed; {how}") from None
    except (ImportError, OSError) as error:  # a library that it needs is missing or has the wrong version
        raise DeviceError(
            f"device={name!r} needs PyTorch, which cannot be loaded: {error}; install it again, or use "
            "device='cpu'"
        ) from error
    if torch.version.cuda is None:
        raise DeviceError(
            f"device={name!r} needs PyTorch built for CUDA, which {torch.__version__} is not: "
            "install another build, or use device='cpu'"
        )
    try:
        device = torch.device(name)
        torch.cuda.init()
        torch.cuda.get_device_properties(device)
    except (AssertionError, RuntimeError, ValueError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise DeviceError(
            f"device={name!r} cannot be used: {first_line}; device='cpu' needs no GPU"
        ) from None
    return torch.device("cuda", torch.cuda.current_device()) if device.index is None else device


@contextlib.contextmanager
def clear_memory_errors(device: Any, what: str) -> Iterator[None]:
    """Turn PyTorch's out-of-memory error into a ``DeviceError`` that says what to do."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        first_line = str(error).strip().partition("\n")[0]
        raise DeviceError(
            f"{device} has too little memory for {what}: pass fewer at a time, or use device='cpu' "
            f"({first_line})"
        ) from None


class Gpu:
    """A device, with the helpers that all encoders share.

    Parameters
    ----------
    device : str
        The name of the device.
    decay : float
        The decay λ.
    """

    def __init__(self, device: str, decay: float) -> None:
        self.device = open_device(device)
        import torch

        self.properties = torch.cuda.get_device_properties(self.device)
        self.root_decay = self.sent(np.array([decay**0.5], np.float32))
        self.not_finite = self.zero()  # becomes 1 if a vector is not finite

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an uninitialised tensor on the device."""
        import torch

        return torch.empty(shape, dtype=getattr(torch, dtype), device=self.device)

    def zero(self) -> Any:
        """Return a counter on the device, set to 0."""
        import torch

        return torch.zeros(1, dtype=torch.int32, device=self.device)

    def sent(self, array: Array) -> Any:
        """Return an array as a tensor on the device."""
        import torch

        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def sent_words(self, array: Array) -> Any:
        """Return 16-bit words on the device, as signed integers, since PyTorch has no unsigned ones."""
        return self.sent(np.ascontiguousarray(array, np.uint16).view(np.int16))

    def compiled(self, file: str, name: str, **defined: int) -> Kernel:
        """Return a kernel compiled for this device."""
        return compiled(file, name, self.device.index, **defined)


def shared_bytes(properties: Any) -> int:
    """Return the most shared memory that a block of threads can request."""
    return int(getattr(properties, "shared_memory_per_block_optin", 48 * 1024))


@cache
def compiled(file: str, name: str, device: int, **defined: int) -> Kernel:
    """Compile a kernel from a file of this package for a device, with some macros defined.

    PyTorch compiles and launches it with a private function. If that is missing or fails, CuPy is used, if it
    is installed.
    """
    import torch

    parts = ("block.cu", file) if "D" in defined else (file,)
    source = "".join(files("treedot.vectors.gpu").joinpath(part).read_text("utf-8") for part in parts)
    options = [f"-D{key}={value}" for key, value in sorted(defined.items())]
    failures = []
    for compile_by in (_by_torch, _by_cupy):
        try:
            with torch.cuda.device(device):
                kernel = compile_by(source, name, options)
            return _launched_on(device, kernel)
        except Exception as error:  # both raise many types
            failures.append(f"{compile_by.__name__.removeprefix('_by_')}: {str(error).strip()}")
    raise DeviceError("cannot compile the code for the GPU: " + "; ".join(failures))


def _launched_on(device: int, kernel: Kernel) -> Kernel:
    """Return a kernel that is always launched on its device, even if another is the current one."""
    import torch

    def launch(blocks: tuple[int, int], threads: int, arguments: Sequence[Any], shared: int) -> None:
        with torch.cuda.device(device):
            kernel(blocks, threads, arguments, shared)

    return launch


def _by_torch(source: str, name: str, options: list[str]) -> Kernel:
    import torch

    kernel = torch.cuda._compile_kernel(source, name, nvcc_options=options)

    def launch(blocks: tuple[int, int], threads: int, arguments: Sequence[Any], shared: int) -> None:
        if shared > kernel._max_shared_mem_bytes:
            kernel.set_shared_memory_config(shared)
        kernel(grid=(*blocks, 1), block=(threads, 1, 1), args=list(arguments), shared_mem=shared)

    return launch


def _by_cupy(source: str, name: str, options: list[str]) -> Kernel:
    import cupy  # type: ignore[import-not-found]
    import numpy as np
    import torch

    kernel = cupy.RawKernel(source, name, tuple(options))
    kernel.compile()

    def launch(blocks: tuple[int, int], threads: int, arguments: Sequence[Any], shared: int) -> None:
        kernel.max_dynamic_shared_size_bytes = max(shared, kernel.max_dynamic_shared_size_bytes)
        passed = tuple(
            np.uint64(argument.data_ptr()) if isinstance(argument, torch.Tensor) else np.int32(argument)
            for argument in arguments
        )
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel(blocks, (threads,), passed, shared_mem=shared)

    return launch
