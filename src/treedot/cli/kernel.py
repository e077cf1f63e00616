"""The command ``treedot kernel``: print the kernel of each pair of trees."""

from __future__ import annotations

import argparse
from typing import Any

import treedot as td
from treedot.cli.options import TREE_HELP, add_reading
from treedot.cli.reading import Skipped, read_all
from treedot.cli.vector_options import add_kernel, check_options, make_kernel, make_kernel_encoding
from treedot.errors import ParameterError, RangeError


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    for name in ("a", "b"):
        command.add_argument(name, metavar=name.upper(), help=TREE_HELP)
    add_kernel(command)
    add_reading(command, skip=False, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Compute the kernel of two trees, or of pairs of trees.

    Print the kernel of the first trees of A and B, of the second ones, and so on. If A or B is a single tree,
    it is compared with every tree of the other. Kernels are exact unless --vectors is given.

    Example: treedot kernel '(NP (DT a) (NN tree))' '(NP (DT the) (NN tree))'
    """
    from treedot._runtime.threads import thread_map

    check_options(options)
    a, b = (read_all(source, options, Skipped(False)) for source in (options.a, options.b))
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ParameterError(
            f"cannot pair {len(a)} trees with {len(b)}: give the same number of trees, or one tree"
        )
    pairs = max(len(a), len(b))
    if options.vectors is None:
        exact = make_kernel(options)

        def value(i: int) -> float:
            return float(exact(a[i % len(a)], b[i % len(b)]))
    else:
        encoding = make_kernel_encoding(options)
        x, y = (encoding.transform(trees, options.jobs).astype(float) for trees in (a, b))

        def value(i: int) -> float:
            return float(finite_products(x[[i % len(a)]], y[[i % len(b)]], 1)[0, 0])

    with thread_map(options.jobs, pairs) as run_all:
        for found in run_all(value, range(pairs)):
            print(f"{found:.10g}")


def finite_products(x: Any, y: Any, n_jobs: int) -> Any:
    """Return dot products; raise RangeError if one is too large for its type."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        values = td.dot_products(x, y, n_jobs=n_jobs)
    if not np.isfinite(values).all():
        longer = " or --dtype float64" if values.dtype == np.float32 else ""
        raise RangeError(f"a dot product is too large for {values.dtype}: use --normalize{longer}")
    return values
