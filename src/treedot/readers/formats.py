"""The formats of files of trees: their suffixes, and the function that reads each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

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

AT_A_TIME = 1 << 16  # trees of a batch, where all are kept anyway
BY_SUFFIX = {
    ".mrg": "brackets",
    ".brackets": "brackets",
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".xml": "xml",
    ".json": "json",
    ".conllu": "conllu",
    ".nwk": "newick",
    ".newick": "newick",
    ".dbn": "dot-bracket",
    ".svmlight": "svmlight",
    ".klp": "kelp",
}
READERS = {  # modules, which are imported when they are needed, and functions
    "brackets": ("brackets.reader", "read_brackets"),
    "tsv": ("tables", "read_tsv"),
    "csv": ("tables", "read_csv"),
    "jsonl": ("tables", "read_jsonl"),
    "parquet": ("tables", "read_parquet"),
    "arrow": ("tables", "read_arrow"),
    "html": ("documents.markup", "read_page"),
    "xml": ("documents.markup", "read_elements"),
    "json": ("documents.json_values", "read_values"),
    "conllu": ("conllu", "read_sentences"),
    "newick": ("newick", "read_newick_trees"),
    "dot-bracket": ("dot_bracket", "read_structures"),
    "svmlight": ("kelp_svmlight", "read_svmlight_examples"),
    "kelp": ("kelp_svmlight", "read_kelp_examples"),
}


def read_stream(stream: TreeStream, kind: str, **options: Any) -> Iterator[Forest]:
    """Yield the trees of an open file of a format, by the function that reads it, which takes the options."""
    module, function = READERS.get(kind, ("code.reader", "read_source"))
    if kind in LANGUAGES:
        options["language"] = kind
    found: Iterator[Forest] = getattr(import_module(f"treedot.readers.{module}"), function)(stream, **options)
    return found


def read_files(
    paths: Paths, kind: str, on_bad: OnError | None, on_skip: OnSkip | None, **options: Any
) -> Forest:
    """Read the trees of files, and of those in folders that have a suffix of the format, into one Forest."""
    found = [Forest([], [], [0], [])]
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(given, Iterable):
        raise ParameterError(f"give the path of a file or a folder, or several, not {paths!r}")
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
            report(error)  # others in the folder are read
    return Forest.concat(found)


def _leave_out(path: str, on_skip: OnSkip | None, error: SourceError) -> None:
    if on_skip is not None:
        on_skip(path, "syntax error" if isinstance(error, TreeSyntaxError) else "unreadable")
