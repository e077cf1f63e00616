"""Who does the work of ``treedot batch``: processes of this machine, Dask, Ray, or an array of jobs."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Iterator
from typing import Any

from treedot.errors import ParameterError, SourceError, missing

ENGINES = ("local", "dask", "ray")


def add_engine(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that choose who does the work; return their group."""
    group = command.add_argument_group("workers")
    group.add_argument("--workers", type=int, metavar="N", help="processes (default: one for every core)")
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="who does the work (default: local, processes of this machine)",
    )
    group.add_argument(
        "--scheduler", metavar="ADDRESS", help="of Dask, such as tcp://host:8786, or of Ray (default: auto)"
    )
    group.add_argument(
        "--shard-size",
        type=_bytes,
        metavar="SIZE",
        help="bytes of a file that one task reads, about, such as 64M (default: 16M)",
    )
    return group


def add_share(group: argparse._ArgumentGroup) -> None:
    """Add the option that splits the work over an array of jobs."""
    group.add_argument(
        "--shard",
        type=_share,
        default=(1, 1),
        metavar="I/N",
        help="do only the I-th of N shares, from 1/N to N/N: for arrays of jobs without an engine",
    )


def _share(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"expected I/N with I from 1 to N, such as 3/64, not {text!r}")
    return int(found[1]), int(found[2])


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([1-9]\d{0,11})([kKmMgG]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a number of bytes, such as 16M, not {text!r}")
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2].lower()]


@contextlib.contextmanager
def client(options: argparse.Namespace) -> Iterator[Any]:
    """Yield the client of the engine; None for processes of this machine."""
    engine, address = options.engine, options.scheduler
    if engine == "local":
        if address is not None:
            raise ParameterError("--scheduler is for --engine dask and --engine ray")
        yield None
        return
    if options.workers is not None:
        raise ParameterError(f"--workers is for processes of this machine: --engine {engine} has its own")
    with _dask(address) if engine == "dask" else _ray(address or "auto") as found:
        yield found


def _dask(address: str | None) -> contextlib.AbstractContextManager[Any]:
    if address is None:
        raise ParameterError("--engine dask needs the address of its scheduler: --scheduler tcp://…")
    import logging

    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise missing("distributed", "dask", "--engine dask") from None
    # Where the scheduler goes away, Dask would log tracebacks beside the error.
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
