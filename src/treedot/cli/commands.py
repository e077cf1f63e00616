"""What the commands do that are not in modules of their own."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from treedot._pages.printable import printable_json
from treedot._runtime.jit import COMPILED, cache_folder
from treedot._runtime.threads import thread_map
from treedot._runtime.timing import timed
from treedot._storage.files import check_target, reason, write_whole
from treedot._version import __version__
from treedot.cli.batch import duplicate_parts, encode_parts, wants_parts
from treedot.cli.choices import (
    check_options,
    describe_kernel,
    make_encoding,
    make_kernel,
    make_kernel_encoding,
)
from treedot.cli.facts import file_facts, printed, tree_facts
from treedot.cli.pipes import binary_output, note
from treedot.cli.progress import Progress
from treedot.cli.reading import Skipped, batches, read_all, streamed
from treedot.errors import ParameterError, RangeError, SourceError
from treedot.parameters import checked_integer
from treedot.readers.folders import Skipped as LeftOut
from treedot.readers.folders import walk
from treedot.readers.sources import is_known
from treedot.trees.writers import check_suffix, forest_file
from treedot.vectors.products import dot_products
from treedot.vectors.spec import DenseSpec, SparseSpec
from treedot.vectors.writers import VectorWriter, matrix_rows, vector_file, write_matrix


def encode(options: argparse.Namespace) -> None:
    """Stream trees from files into a file of vectors, or turn many files into a folder of them."""
    if wants_parts(options):
        options.vectors = options.vectors or ("sparse" if options.kernel is None else "dense")
        encode_parts(options)
        return
    _choose_vectors(options)
    if options.output != "-":
        check_target(Path(options.output), *options.trees)
    encoding = make_encoding(options)
    spec = encoding.spec
    skipped = Skipped(options.skip_bad)
    output = _to_stdout(spec) if options.output == "-" else vector_file(options.output, spec)
    with output as writer, Progress(options.trees) as progress:
        for batch in streamed(options.trees, options, skipped, progress):
            writer.write(encoding.transform(batch, options.jobs), batch.columns)
        if not progress.trees:
            raise SourceError("there is no tree to encode")
    skipped.report()


def _choose_vectors(options: argparse.Namespace) -> None:
    """Set the kind of vectors where it is not given: dense for a file of dense vectors, and for a kernel."""
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
    try:
        with tempfile.TemporaryFile() as file:  # the header, which comes first, needs the number of rows
            with matrix_rows(file, spec) as rows:
                yield rows
            file.seek(0)
            shutil.copyfileobj(file, binary_output())
    except BrokenPipeError:  # the reader of a pipeline has seen enough
        raise
    except OSError as error:
        raise SourceError(f"cannot write to standard output: {reason(error)}") from error


def kernel(options: argparse.Namespace) -> None:
    """Print the kernel of each pair of trees."""
    check_options(options)
    a, b = (read_all(source, options, Skipped(False)) for source in (options.a, options.b))
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ParameterError(f"cannot pair {len(a)} trees with {len(b)}: give equally many, or one")
    pairs = max(len(a), len(b))
    if options.vectors is None:
        exact = make_kernel(options)

        def value(i: int) -> float:
            return float(exact(a[i % len(a)], b[i % len(b)]))
    else:
        encoding = make_kernel_encoding(options)
        x, y = (encoding.transform(trees, options.jobs).astype(float) for trees in (a, b))

        def value(i: int) -> float:
            return float(_finite_products(x[[i % len(a)]], y[[i % len(b)]], 1)[0, 0])

    with thread_map(options.jobs, pairs) as run_all:
        for found in run_all(value, range(pairs)):
            print(f"{found:.10g}")


def gram(options: argparse.Namespace) -> None:
    """Write the kernels of all pairs of trees."""
    check_options(options)
    if Path(options.output).suffix.lower() != ".npy" and options.output != "-":
        raise ParameterError(
            f"cannot tell the format of {options.output}: use .npy, or - for standard output"
        )
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
        matrix = _finite_products(x, y, options.jobs)
        made = {"kernel": "dot products of vectors", "vectors": encoding.spec.to_dict()}
    if options.output == "-":
        write_matrix(binary_output(), matrix, made)
    else:
        with write_whole(options.output) as aside, aside.open("wb") as file:
            write_matrix(file, matrix, made)
    skipped.report()


def _finite_products(x: Any, y: Any, n_jobs: int) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        values = dot_products(x, y, n_jobs=n_jobs)
    if not np.isfinite(values).all():
        longer = " or --dtype float64" if values.dtype == np.float32 else ""
        raise RangeError(f"a dot product is too large for {values.dtype}: use --normalize{longer}")
    return values


def dups(options: argparse.Namespace) -> int:
    """Find near-duplicates in source code, or in many files of trees."""
    if wants_parts(options):
        duplicate_parts(options)
        return 0
    from treedot.cli.dups import run

    return run(options)


def convert(options: argparse.Namespace) -> None:
    """Stream trees from files and folders into one file of trees."""
    check_suffix(options.output)
    left_out = LeftOut()
    sources = list(_files(options.trees, options.format, left_out))
    check_target(Path(options.output), *sources)
    skipped = Skipped(options.skip_bad)
    with forest_file(options.output) as writer, Progress(sources) as progress:
        for batch in streamed(sources, options, skipped, progress):
            writer.write(batch)
        if not progress.trees:
            raise SourceError("there is no tree to convert")
    skipped.report()
    if left_out.counts:
        note(f"left out of folders: {left_out}")


def _files(sources: list[str], format: str | None, on_skip: LeftOut) -> Iterator[str]:
    """Yield the sources, and of those that are folders the files with a suffix that is read."""
    for source in sources:
        if os.path.isdir(source):
            yield from (file.path for file in walk([source], lambda name: is_known(name, format), on_skip))
        else:
            yield source


def info(options: argparse.Namespace) -> None:
    """Describe a file."""
    facts = file_facts(Path(options.file))
    if facts is None:
        skipped = Skipped(options.skip_bad)
        facts = tree_facts(batches(options.file, options, skipped))
        skipped.report()
    print(printable_json(facts) if options.json else printed(facts))


def check(options: argparse.Namespace) -> None:
    """Say what treedot runs with here, and which optional parts are missing."""
    print(f"treedot {__version__}, Python {sys.version.split()[0]}\n\nrequired:")
    for name, module, purpose in (
        ("numpy", "numpy", "arrays"),
        ("scipy", "scipy", "sparse rows"),
        ("numba", "numba", "compiled encoders and kernels"),
        ("scikit-learn", "sklearn", "FragmentVectorizer and the other estimators"),
        ("filelock", "filelock", "locks of what is changed"),
        ("tqdm", "tqdm", "progress bars"),
        ("tree-sitter", "tree_sitter", "source code"),
        ("tree-sitter-python", "tree_sitter_python", "Python source"),
    ):
        _check_part(name, module, purpose, f"pip install {name}")
    print("\noptional:")
    for name, purpose, extra in (
        ("pyarrow", "Parquet and Arrow files", "parquet"),
        ("zstandard", ".zst files", "zstd"),
        ("lxml", "HTML", "html"),
        ("matplotlib", "plots in the demo's report", "plots"),
        ("tree_sitter_java", "source code other than Python", "code"),
        ("distributed", "many machines, by Dask", "dask"),
        ("ray", "many machines, by Ray", "ray"),
    ):
        _check_part(name, name, purpose, f"pip install 'treedot[{extra}]'")
    print(f"\ncompiled code:\n  {_where_compiled_code_is_kept()}")


def _where_compiled_code_is_kept() -> str:
    if not COMPILED:
        return "none: Numba is missing, or NUMBA_DISABLE_JIT is set; everything runs, but slowly"
    asked, folder = os.environ.get("NUMBA_CACHE_DIR"), cache_folder()
    refused = f"; NUMBA_CACHE_DIR={asked} cannot be written to" if asked else ""
    if folder is None:
        return (
            "kept nowhere, so that every process compiles anew: neither the package's folder nor a home "
            f"folder can be written to{refused}; set NUMBA_CACHE_DIR to a folder that can"
        )
    if asked and folder.resolve() == Path(asked).resolve():
        return f"kept in {folder}, as NUMBA_CACHE_DIR says; it can be written to"
    return f"kept in {folder}, which can be written to; set NUMBA_CACHE_DIR for another folder{refused}"


def compile(options: argparse.Namespace) -> None:
    """Compile everything that is compiled on first use, and say how long it took and where it is kept."""
    if not COMPILED:
        raise ParameterError(f"compiled code: {_where_compiled_code_is_kept()}")
    from treedot.cli.compilation import kinds

    total = 0.0
    for name, use in kinds().items():
        _, seconds = timed(use)
        total += seconds
        print(f"{seconds:6.1f} s  {name}", flush=True)
    print(f"{total:6.1f} s  in all\n\ncompiled code: {_where_compiled_code_is_kept()}")


def _check_part(name: str, module: str, purpose: str, how: str) -> None:
    if importlib.util.find_spec(module):
        version = getattr(importlib.import_module(module), "__version__", "")
        print(f"  works    {f'{name} {version}'.rstrip()}: {purpose}")
    else:
        print(f"  missing  {name}: {purpose}; {how}")


def demo(options: argparse.Namespace) -> None:
    """Write the demonstration report."""
    from treedot.cli.demo import run

    checked_integer("--functions", options.functions, at_least=50)
    run(Path(options.out), options.functions)
