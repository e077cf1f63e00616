"""Where the workers of ``treedot batch`` run: on this machine, in Dask or Ray, or in an array of jobs."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Iterator
from typing import Any

from treedot.errors import ParameterError, SourceError, missing

ENGINES = ("local", "dask", "ray")


def add_engine(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that choose the workers; return their group."""
    group = command.add_argument_group("workers")
    group.add_argument("--workers", type=int, metavar="N", help="number of processes (default: one per core)")
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="where workers run (default: local, as processes of this machine)",
    )
    group.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="address of the scheduler of Dask, such as tcp://host:8786, or of Ray (default: auto)",
    )
    group.add_argument(
        "--shard-size",
        type=_bytes,
        metavar="SIZE",
        help="approximate size of a shard, the piece of a file that one task reads, such as 64M "
        "(default: 16M)",
    )
    return group


def add_share(group: argparse._ArgumentGroup) -> None:
    """Add the option that splits the work over an array of jobs."""
    group.add_argument(
        "--shard",
        type=_share,
        default=(1, 1),
        metavar="I/N",
        help="process only the I-th of N shares of the work, from 1/N to N/N, as one job of an array",
    )


def _share(text: str) -> tuple[int, int]:
    """Parse ``I/N``."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"expected I/N with I from 1 to N, such as 3/64, not {text!r}")
    return int(found[1]), int(found[2])


def _bytes(text: str) -> int:
    """Parse a size such as ``64M``."""
    found = re.fullmatch(r"([1-9]\d{0,11})([kKmMgG]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a number of bytes, such as 16M, not {text!r}")
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2].lower()]


@contextlib.contextmanager
def client(options: argparse.Namespace) -> Iterator[Any]:
    """Yield the client of Dask or Ray; None for processes of this machine."""
    engine, address = options.engine, options.scheduler
    if engine == "local":
        if address is not None:
            raise ParameterError("--scheduler needs --engine dask or --engine ray")
        yield None
        return
    if options.workers is not None:
        raise ParameterError(
            f"--workers has no effect with --engine {engine}, which has its own workers: remove it"
        )
    with _dask(address) if engine == "dask" else _ray(address or "auto") as found:
        yield found


def _dask(address: str | None) -> contextlib.AbstractContextManager[Any]:
    if address is None:
        raise ParameterError("--engine dask needs the address of its scheduler: give --scheduler tcp://…")
    import logging

    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise missing("distributed", "dask", "--engine dask") from None
    # If the scheduler disappears, Dask would log tracebacks in addition to the error.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        made: contextlib.AbstractContextManager[Any] = Client(address)
    except (OSError, ValueError) as error:
        raise SourceError(f"no Dask scheduler answers at {address}: {error}") from None
    return made


@contextlib.contextmanager
def _ray(address: str) -> Iterator[Any]:
    try:
        import ray
    except ModuleNotFoundError:
        raise missing("ray", "ray", "--engine ray") from None
    try:
        ray.init(address=address, log_to_driver=False)
    except (OSError, ValueError) as error:
        raise SourceError(f"no Ray cluster answers at {address}: {error}") from None
    try:
        yield ray
    finally:
        ray.shutdown()
