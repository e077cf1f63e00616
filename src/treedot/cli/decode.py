"""The command ``treedot decode``: read trees back from their vectors."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import treedot as td
from treedot._storage.files import check_target, write_whole
from treedot.cli.options import SOURCE_HELP, add_output, add_reading, refuse_folder
from treedot.cli.pipes import note
from treedot.cli.progress import Progress
from treedot.cli.reading import Skipped, batches

if TYPE_CHECKING:
    from treedot.vectors.decoding.decoder import DecodedTree
    from treedot.vectors.decoding.productions import Productions
    from treedot.vectors.vectors import Vectors

COLUMNS = ("is_certified", "distance", "margin", "remainder", "norm")


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument(
        "vectors",
        metavar="VECTORS",
        help="dense vectors that treedot encode wrote, which hold their settings",
    )
    command.add_argument(
        "--productions",
        required=True,
        nargs="+",
        metavar="TREES",
        help="trees that contain the known productions: " + SOURCE_HELP,
    )
    add_output(
        command,
        "FILE",
        "the file of trees to write, one per vector: .mrg, .txt or .brackets (brackets; () for a vector "
        "where nothing "
        "was found); .parquet, .arrow or .feather (also with the columns "
        f"{', '.join(COLUMNS)})",
    )
    command.add_argument(
        "--certificates",
        metavar="FILE",
        help="also write the certificates: one JSON object per vector and line, with the counts of its "
        "productions",
    )
    add_reading(command, jobs=True)


def run(options: argparse.Namespace) -> None:
    """Read trees back from their vectors.

    Find the tree that each dense vector encodes, given trees that contain its productions (a node's label
    with its children's). A tree is certified if encoding it gives the vector again and no tree that differs
    by one exchange or move of subtrees comes near. For other vectors, write the best tree found. The last
    line on stderr gives the number of certified trees.

    Example: treedot decode vectors.npy --productions questions.tsv -o decoded.mrg
    """
    from treedot.trees.writers import check_suffix, forest_file

    check_suffix(options.output)
    refuse_folder(options.output, "decode")
    targets = [Path(path) for path in (options.output, options.certificates) if path]
    for target in targets:
        check_target(target, options.vectors, *options.productions)
    vectors = td.load_vectors(options.vectors, unpack_large=options.unpack_large)
    skipped = Skipped(options.skip_bad)
    known = _productions(options, skipped)
    certified = 0
    with forest_file(options.output) as writer, _certificates(options.certificates) as write:
        for found in _decoded(vectors, known, options.jobs):
            certified += found.is_certified
            write(found)
            columns = {name: [getattr(found, name)] for name in COLUMNS}
            writer.write(td.Forest.from_trees([found.tree or td.Tree("")], columns))
    skipped.report()
    note(
        f"{certified} of {len(vectors)} trees certified, with {len(known)} known productions; "
        f"{options.output} holds "
        "the best tree of every other vector"
    )


def _productions(options: argparse.Namespace, skipped: Skipped) -> Productions:
    """Return the productions of the trees of files."""
    from treedot.vectors.decoding.productions import Productions

    parts = [part for source in options.productions for part in batches(source, options, skipped)]
    return Productions.of(td.Forest.concat(parts))


def _decoded(vectors: Vectors, known: Productions, jobs: int) -> Iterator[DecodedTree]:
    """Yield the trees of vectors, with a bar that counts them."""
    from treedot.vectors.decoding.decoder import Decoder

    with Progress("trees", len(vectors)) as progress:
        spec: Any = vectors.spec
        yield from Decoder(spec, known, jobs).decode(vectors, progress)


@contextlib.contextmanager
def _certificates(path: str | None) -> Iterator[Callable[[DecodedTree], object]]:
    """Yield a function that writes the certificate of a tree to a file, which appears only on success."""
    if path is None:
        yield lambda found: None
        return
    with write_whole(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as file:
        yield lambda found: file.write(_line(found))


def _line(found: DecodedTree) -> str:
    """Return a certificate as a line of JSON, which has no infinite numbers."""
    fields = asdict(found) | {"tree": None if found.tree is None else str(found.tree)}
    finite = {
        name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in fields.items()
    }
    return json.dumps(finite, ensure_ascii=False) + "\n"
