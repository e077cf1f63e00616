"""The command ``treedot check``: list the installed dependencies."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from treedot._version import __version__
from treedot.errors import how_to_install

REQUIRED = (
    ("numpy", "numpy", "arrays"),
    ("scipy", "scipy", "sparse rows"),
    ("numba", "numba", "compiled encoders and kernels"),
    ("scikit-learn", "sklearn", "FragmentVectorizer and the other estimators"),
    ("filelock", "filelock", "locks between processes"),
    ("tqdm", "tqdm", "progress bars"),
    ("tree-sitter", "tree_sitter", "source code"),
    ("tree-sitter-python", "tree_sitter_python", "Python source"),
)
OPTIONAL = (
    ("pyarrow", "Parquet and Arrow files", "parquet"),
    ("zstandard", ".zst files", "zstd"),
    ("lxml", "HTML", "html"),
    ("matplotlib", "figures of the paper and of benchmarks", "plots"),
    ("tree_sitter_java", "Java source, which comes with the other languages in one extra", "code"),
    ("starlette", "pages of treedot serve", "serve"),
    ("uvicorn", "pages of treedot serve", "serve"),
    ("mcp", "treedot mcp, for coding agents", "mcp"),
    ("distributed", "many machines, with Dask", "dask"),
    ("ray", "many machines, with Ray", "ray"),
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options."""


def run(options: argparse.Namespace) -> None:
    """Check the installation.

    List the installed dependencies and their versions, the optional ones that are missing, and the folder of
    the compiled code.

    Example: treedot check
    """
    print(f"treedot {__version__}, Python {sys.version.split()[0]}\n\nrequired:")
    for name, module, purpose in REQUIRED:
        _check_part(name, module, purpose, f"run: pip install {name}")
    print("\noptional:")
    for name, purpose, extra in OPTIONAL:
        _check_part(name, name, purpose, how_to_install(name.replace("_", "-"), extra))
    print(f"\ncompiled code:\n  {compiled_code()}")
    if different := _other_compiler():
        print(f"  {different}")


def _check_part(name: str, module: str, purpose: str, how: str) -> None:
    if importlib.util.find_spec(module):
        version = getattr(importlib.import_module(module), "__version__", "")
        print(f"  works    {f'{name} {version}'.rstrip()}: {purpose}")
    else:
        print(f"  missing  {name}: {purpose}; {how}")


def _other_compiler() -> str:
    """Return a sentence if Numba's own compiler is used instead of treedot's pipeline, else ""."""
    from treedot._runtime.jit import COMPILED, why_not_ours

    reason = why_not_ours() if COMPILED else ""
    return f"made by Numba's own compiler, which takes longer ({reason})" if reason else ""


def compiled_code() -> str:
    """Return a sentence that says where compiled code is kept."""
    from treedot._runtime.jit import COMPILED, cache_folder

    if not COMPILED:
        return "none: Numba is missing, or NUMBA_DISABLE_JIT is set; everything runs, but slowly"
    asked, folder = os.environ.get("NUMBA_CACHE_DIR"), cache_folder()
    refused = f"; NUMBA_CACHE_DIR={asked} is not writable" if asked else ""
    if folder is None:
        return (
            "not kept, so every process compiles it again: neither the package's folder nor a home folder is "
            f"writable{refused}; set NUMBA_CACHE_DIR to a writable folder"
        )
    if asked and folder.resolve() == Path(asked).resolve():
        return f"kept in {folder} (from NUMBA_CACHE_DIR), which is writable"
    return f"kept in {folder}, which is writable; set NUMBA_CACHE_DIR to use another folder{refused}"
