"""The file formats of trees: their suffixes, and the function that reads each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from treedot._storage.compression import decompressed
from treedot._storage.files import content_suffix, open_raw
from treedot.errors import ParameterError, SourceError, TreeSyntaxError
from treedot.languages import LANGUAGES
from treedot.readers.folders import OnSkip, walk
from treedot.readers.on_bad import OnBad
from treedot.readers.stream import TreeStream
from treedot.trees import Forest

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
OnError = Callable[[SourceError], object]

AT_A_TIME = 1 << 16  # trees per batch if all are kept anyway


class Format(NamedTuple):
    """The suffixes of a format, and the location of the function that reads it."""

    suffixes: tuple[str, ...]
    module: str  # imported on first use
    function: str


FORMATS = {
    "brackets": Format((".mrg", ".brackets"), "brackets.reader", "read_brackets"),
    "tsv": Format((".tsv",), "tables", "read_tsv"),
    "csv": Format((".csv",), "tables", "read_csv"),
    "jsonl": Format((".jsonl", ".ndjson"), "tables", "read_jsonl"),
    "parquet": Format((".parquet",), "tables", "read_parquet"),
    "arrow": Format((".arrow", ".feather"), "tables", "read_arrow"),
    "html": Format((".html", ".htm", ".xhtml"), "documents.markup", "read_page"),
    "xml": Format((".xml",), "documents.markup", "read_elements"),
    "json": Format((".json",), "documents.json_values", "read_values"),
    "conllu": Format((".conllu",), "conllu", "read_sentences"),
    "newick": Format((".nwk", ".newick"), "newick", "read_newick_trees"),
    "dot-bracket": Format((".dbn",), "dot_bracket", "read_structures"),
    "svmlight": Format((".svmlight",), "kelp_svmlight", "read_svmlight_examples"),
    "kelp": Format((".klp",), "kelp_svmlight", "read_kelp_examples"),
} | {name: Format(entry.suffixes, "code.reader", "read_source") for name, entry in LANGUAGES.items()}
BY_SUFFIX = {suffix: name for name, entry in FORMATS.items() for suffix in entry.suffixes}


def read_stream(stream: TreeStream, kind: str, **options: Any) -> Iterator[Forest]:
    """Yield the trees of an open file with the reader of its format; ``options`` are passed to it."""
    if kind in LANGUAGES:
        options["language"] = kind
    module = import_module(f"treedot.readers.{FORMATS[kind].module}")
    found: Iterator[Forest] = getattr(module, FORMATS[kind].function)(stream, **options)
    return found


def read_files(
    paths: Paths, kind: str, on_bad: OnError | None, on_skip: OnSkip | None, **options: Any
) -> Forest:
    """Read the trees of files, and of all files with a matching suffix in folders, into one Forest."""
    found = [Forest([], [], [0], [])]
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(given, Iterable):
        raise ParameterError(f"paths must be the path of a file or a folder, or several, not {paths!r}")
    kinds = (kind, "jsonl") if kind == "json" else (kind,)
    for file in walk(given, lambda name: BY_SUFFIX.get(content_suffix(name)) in kinds, on_skip):
        leave_out = None if file.named else partial(_leave_out, file.path, on_skip)
        report = OnBad(on_bad or leave_out)
        try:
            with open_raw(file.path) as raw:
                stream = TreeStream(decompressed(raw, file.path), file.path, AT_A_TIME, report)
                found += read_stream(stream, kind, **options)
        except SourceError as error:
            if file.named:
                raise
            report(error)  # the other files in the folder are still read
    return Forest.concat(found)


def _leave_out(path: str, on_skip: OnSkip | None, error: SourceError) -> None:
    if on_skip is not None:
        on_skip(path, "syntax error" if isinstance(error, TreeSyntaxError) else "unreadable")
