"""The command ``treedot encode``: write the vectors of trees to a file."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from treedot._storage.files import check_target, reason
from treedot.cli.options import SOURCE_HELP, add_output, add_reading, refuse_folder
from treedot.cli.pipes import binary_output
from treedot.cli.reading import Skipped, streamed
from treedot.cli.vector_options import add_encoding, check_options, make_encoding
from treedot.errors import ParameterError, SourceError

if TYPE_CHECKING:
    from treedot.vectors.spec import DenseSpec, SparseSpec
    from treedot.vectors.writers import VectorWriter


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("trees", nargs="+", metavar="TREES", help=SOURCE_HELP)
    add_output(
        command,
        "FILE",
        "the file to write: .npz (sparse rows), .npy or .parquet (dense vectors), or - for standard output",
    )
    add_encoding(command)
    add_reading(command, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Turn trees into vectors.

    Write one vector per tree. Memory does not grow with the number of trees. The file also stores the
    settings of the vectors. For many files and many processes, use treedot batch encode.

    Example: treedot encode questions.tsv -o rows.npz
    """
    from treedot.vectors.writers import vector_file

    refuse_folder(options.output, "encode")
    _choose_vectors(options)
    if options.output != "-":
        check_target(Path(options.output), *options.trees)
    encoding = make_encoding(options)
    skipped = Skipped(options.skip_bad)
    to_stdout = options.output == "-"
    with _to_stdout(encoding.spec) if to_stdout else vector_file(options.output, encoding.spec) as writer:
        for batch in streamed(options.trees, options, skipped):
            writer.write(encoding.transform(batch, options.jobs), batch.columns)
    skipped.report()


def _choose_vectors(options: argparse.Namespace) -> None:
    """Choose dense or sparse vectors if --vectors is not given: dense for a dense file or with --kernel."""
    output, is_given = options.output, options.vectors is not None
    is_dense_file = Path(output).suffix.lower() in (".npy", ".parquet")
    if is_dense_file and options.vectors == "sparse":
        raise ParameterError(
            f"{output} holds dense vectors: remove --vectors sparse, or write sparse rows to a .npz file"
        )
    if not is_given:
        options.vectors = "dense" if is_dense_file or options.kernel is not None else "sparse"
    try:
        check_options(options)
    except ParameterError as error:
        if is_given or not is_dense_file:
            raise
        raise ParameterError(f"{output} holds dense vectors: {error}") from None


@contextlib.contextmanager
def _to_stdout(spec: DenseSpec | SparseSpec) -> Iterator[VectorWriter]:
    """Yield a writer of vectors whose file is printed at the end."""
    from treedot.vectors.writers import matrix_rows

    try:
        with tempfile.TemporaryFile() as file:  # the header comes first but contains the number of rows
            with matrix_rows(file, spec) as rows:
                yield rows
            file.seek(0)
            shutil.copyfileobj(file, binary_output())
    except BrokenPipeError:  # the next command of a pipeline has stopped reading
        raise
    except OSError as error:
        raise SourceError(f"cannot write to standard output: {reason(error)}") from error
