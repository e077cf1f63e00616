"""What each command does."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from treedot import __version__
from treedot.cli.progress import Progress
from treedot.encode import DenseEncoder, DenseSpec, SparseSpec
from treedot.encode.spec import MAX_FEATURES
from treedot.errors import ParameterError, RangeError, SourceError
from treedot.parameters import checked_integer
from treedot.readers import iter_trees, read_trees
from treedot.trees import Forest
from treedot.vectors.files import VectorWriter, described_file, matrix_rows, read_description, vector_file
from treedot.vectors.products import dot_products


def encode(options: argparse.Namespace) -> None:
    """Stream trees from files into a file of vectors."""
    spec, encode = _encoding(options)
    skipped = _Skipped(options.skip_bad)
    output = _to_stdout(spec) if options.output == "-" else vector_file(options.output, spec)
    with output as writer, Progress(options.trees) as progress:
        for source in options.trees:
            for batch in iter_trees(
                source,
                options.format,
                column=options.column,
                batch_size=2048,
                on_bad=skipped.callback,
                on_read=progress.read,
            ):
                writer.write(encode(batch), batch.columns)
                progress.advance(len(batch))
            progress.finished(source)
    skipped.report()


@contextlib.contextmanager
def _to_stdout(spec: DenseSpec | SparseSpec) -> Iterator[VectorWriter]:
    with tempfile.TemporaryFile() as file:  # the header, which comes first, needs the number of rows
        with matrix_rows(file, spec) as rows:
            yield rows
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)


def kernel(options: argparse.Namespace) -> None:
    """Print the kernel of each pair of trees."""
    a, b = (_trees_or_text(source, options, _Skipped(False)) for source in (options.a, options.b))
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ParameterError(f"cannot pair {len(a)} trees with {len(b)}: give equally many, or one")
    pairs = max(len(a), len(b))
    if options.exact:
        exact = _exact_kernel(options)
        values: Iterator[float] = (exact(a[i % len(a)], b[i % len(b)]) for i in range(pairs))
    else:
        _, encode = _encoding(options, MAX_FEATURES)
        x, y = (encode(trees).astype(float) for trees in (a, b))
        values = (float(_finite_products(x[[i % len(a)]], y[[i % len(b)]], 1)[0, 0]) for i in range(pairs))
    for value in values:
        print(f"{value:.10g}")


def gram(options: argparse.Namespace) -> None:
    """Write the kernels of all pairs of trees."""
    if Path(options.output).suffix.lower() != ".npy" and options.output != "-":
        raise ParameterError(f"cannot tell the format of {options.output}: use .npy, or - for stdout")
    skipped = _Skipped(options.skip_bad)
    rows = _trees_or_text(options.trees, options, skipped)
    columns = _trees_or_text(options.against, options, skipped) if options.against else None
    if options.exact:
        exact = _exact_kernel(options)
        matrix = exact.gram(rows, columns)
        made = {"kernel": "exact subset tree kernel", "decay": exact.decay, "normalize": exact.normalize}
    else:
        spec, encode = _encoding(options, MAX_FEATURES)
        x = encode(rows)
        y = None if columns is None else encode(columns)
        matrix = _finite_products(x, y, options.jobs)
        made = {"kernel": "dot products of vectors", "vectors": spec.to_dict()}
    if options.output == "-":
        np.save(sys.stdout.buffer, matrix)
    else:
        with described_file(options.output, made) as file:
            np.save(file, matrix)
    skipped.report()


def _finite_products(x: Any, y: Any, jobs: int) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        values = dot_products(x, y, jobs)
    if not np.isfinite(values).all():
        raise RangeError("a dot product is too large for its type: use --normalize or --dtype float64")
    return values


def info(options: argparse.Namespace) -> None:
    """Describe a file."""
    facts = _vector_facts(Path(options.file)) or _tree_facts(options)
    if options.json:
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:<{width}}  {value}")


def check(options: argparse.Namespace) -> None:
    """Say which optional parts work here."""
    parts = [
        ("numba", "numba", "compiled encoders and kernels", None),
        ("scikit-learn", "sklearn", "DistributedTreeVectorizer, KernelTransformer", None),
        ("pyarrow", "pyarrow", "Parquet and Arrow files", "parquet"),
        ("zstandard", "zstandard", ".zst files", "zstd"),
        ("matplotlib", "matplotlib", "plots in the demo's report", "plots"),
    ]
    print(f"treedot {__version__}, Python {sys.version.split()[0]}, NumPy {np.__version__}")
    for name, module, purpose, extra in parts:
        if importlib.util.find_spec(module):
            version = getattr(importlib.import_module(module), "__version__", "")
            print(f"  works    {name} {version}: {purpose}")
        else:
            line = f"pip install 'treedot[{extra}]'" if extra else f"pip install {name}"
            print(f"  missing  {name}: {purpose}; {line}")


def demo(options: argparse.Namespace) -> None:
    """Write the demonstration report."""
    from treedot.demo import run

    checked_integer("--functions", options.functions, at_least=50)
    run(Path(options.out), options.functions)


def _vector_facts(path: Path) -> dict[str, Any] | None:
    """Describe a matrix or a file of vectors; None where it is something else."""
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".npz", ".parquet") or not path.is_file():
        return None
    description = read_description(path)
    if suffix != ".parquet":
        facts = _matrix_facts(path)
        return {**facts, **(description or {"made by": "unknown: there is no description beside the file"})}
    if not description:
        return None
    from treedot.trees.arrow import pa

    return {"vectors": pa.parquet.read_metadata(path).num_rows, **description}


def _matrix_facts(path: Path) -> dict[str, Any]:
    try:
        if path.suffix.lower() == ".npy":
            matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            from scipy.sparse import load_npz

            matrix = load_npz(path)
    except (ValueError, EOFError, OSError, KeyError, BadZipFile) as error:
        raise SourceError(f"cannot read {path}: {error}") from None
    facts = {"shape": " × ".join(map(str, matrix.shape)), "type": str(matrix.dtype)}
    if not isinstance(matrix, np.ndarray):
        facts["numbers per row"] = f"mean {matrix.nnz / max(1, matrix.shape[0]):.1f}"
    return facts


def _tree_facts(options: argparse.Namespace) -> dict[str, Any]:
    skipped = _Skipped(options.skip_bad)
    forest = read_trees(options.file, options.format, column=options.column, on_bad=skipped.callback)
    skipped.report()
    sizes = forest.sizes
    depth = np.maximum.reduceat(forest.depth, forest.offsets[:-1])
    return {
        "trees": len(forest),
        "distinct trees": int(np.unique(forest.subtree[forest.roots]).size),
        "nodes": forest.n_nodes,
        "labels": len(forest.labels),
        "productions": forest.n_productions,
        "distinct subtrees": int(forest.distinct_subtrees.size),
        "nodes per tree": f"mean {sizes.mean():.1f}, median {np.median(sizes):g}, largest {sizes.max()}",
        "depth": f"mean {depth.mean():.1f}, largest {depth.max()}",
        "most children": int(forest.arity.max()),
        "columns": ", ".join(forest.columns) or "none",
    }


def _encoding(
    options: argparse.Namespace, n_features: int = 2**20
) -> tuple[DenseSpec | SparseSpec, Callable[[Forest], Any]]:
    """Return what the options ask for, and what does it; sparse rows of ``n_features`` unless they say."""
    if not options.sparse:
        if wrong := [name for name in ("budget", "damping", "rest") if getattr(options, name) is not None]:
            raise ParameterError(f"--{wrong[0]} is for sparse rows: add --sparse")
        spec = DenseSpec(
            DenseSpec.n_components if options.dim is None else options.dim,
            options.decay,
            options.composition or DenseSpec.composition,
            options.seed,
            bool(options.normalize),
            options.dtype,
        )
        return spec, partial(DenseEncoder(spec).encode, n_jobs=options.jobs)
    if options.composition is not None:
        raise ParameterError("--composition is for dense vectors: leave out that or --sparse")
    from treedot.learn import FragmentVectorizer

    vectorizer = FragmentVectorizer(
        n_features=n_features if options.dim is None else options.dim,
        decay=options.decay,
        budget=SparseSpec.budget if options.budget is None else options.budget,
        damping=options.damping,
        normalize=options.normalize is not False,
        rest=options.rest,
        random_state=options.seed,
        dtype=options.dtype,
        n_jobs=options.jobs,
    )
    return vectorizer.spec, vectorizer.transform


def _exact_kernel(options: argparse.Namespace) -> Any:
    if options.sparse:
        raise ParameterError("--exact compares trees, not rows: leave out that or --sparse")
    from treedot.kernels import SubsetTreeKernel

    return SubsetTreeKernel(decay=options.decay, normalize=bool(options.normalize))


def _trees_or_text(source: str, options: argparse.Namespace, skipped: _Skipped) -> Forest:
    if source.lstrip().startswith("("):
        return read_trees([source])
    return read_trees(source, options.format, column=options.column, on_bad=skipped.callback)


class _Skipped:
    """Counts the trees that were left out with ``--skip-bad``, and says so at the end."""

    def __init__(self, skips: bool) -> None:
        self.errors = 0
        self.callback = self._one if skips else None

    def _one(self, error: SourceError) -> None:
        self.errors += 1
        print(f"treedot: skipped {error}", file=sys.stderr)

    def report(self) -> None:
        if self.errors:
            print(f"treedot: left out {self.errors} bad tree(s)", file=sys.stderr)
