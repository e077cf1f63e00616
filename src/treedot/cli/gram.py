"""The command ``treedot gram``: write the kernel matrix of trees."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from treedot._storage.files import check_target, write_whole
from treedot.cli.kernel import finite_products
from treedot.cli.options import TREE_HELP, add_output, add_reading
from treedot.cli.pipes import binary_output
from treedot.cli.reading import Skipped, read_all
from treedot.cli.vector_options import add_kernel, check_options, make_kernel, make_kernel_encoding
from treedot.errors import ParameterError

# The parameters of kernels that determine their values.
DESCRIBED = (
    "decay", "convention", "leaves", "mu", "gaps", "terminal_factor", "max_length", "threshold", "start",
    "budget", "normalize",
)  # fmt: skip


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("trees", metavar="TREES", help=TREE_HELP)
    command.add_argument(
        "--against", metavar="TREES", help="compare with these trees instead, one column for each"
    )
    add_output(command, "FILE", "the file to write: .npy, or - for standard output")
    add_kernel(command)
    add_reading(command, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Compute the kernel of all pairs of trees.

    Write the matrix of the kernels of all pairs of trees. Kernels are exact unless --vectors is given.

    Example: treedot gram questions.tsv -o kernels.npy --normalize
    """
    from treedot.vectors.writers import write_matrix

    check_options(options)
    if Path(options.output).suffix.lower() != ".npy" and options.output != "-":
        raise ParameterError(f"cannot write a matrix to {options.output}: use .npy, or - for standard output")
    if options.output != "-":
        check_target(Path(options.output), options.trees, options.against)
    skipped = Skipped(options.skip_bad)
    rows = read_all(options.trees, options, skipped)
    columns = read_all(options.against, options, skipped) if options.against else None
    if options.vectors is None:
        exact = make_kernel(options)
        matrix, made = exact.gram(rows, columns, n_jobs=options.jobs), describe_kernel(exact)
    else:
        encoding = make_kernel_encoding(options)
        x = encoding.transform(rows, options.jobs)
        y = None if columns is None else encoding.transform(columns, options.jobs)
        matrix = finite_products(x, y, options.jobs)
        made = {"kernel": "dot products of vectors", "vectors": encoding.spec.to_dict()}
    if options.output == "-":
        write_matrix(binary_output(), matrix, made)
    else:
        with write_whole(options.output) as aside, aside.open("wb") as file:
            write_matrix(file, matrix, made)
    skipped.report()


def describe_kernel(kernel: Any) -> dict[str, Any]:
    """Return the settings that determine the values of an exact kernel."""
    settings = {name: getattr(kernel, name) for name in DESCRIBED if hasattr(kernel, name)}
    if hasattr(kernel, "similarity"):
        settings["similarity"] = repr(kernel.similarity)
    return {"kernel": f"exact {type(kernel).__name__}", **settings}
