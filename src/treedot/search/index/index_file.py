"""Write and read the file of an index: the posting lists of the rows, and the trees."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.jit import njit_borrowing
from treedot._runtime.sorted_arrays import locate
from treedot._storage.files import identity, open_plain
from treedot._storage.safetensors import mapped_arrays, write_arrays
from treedot.errors import SourceError, SpecMismatchError, TreedotError
from treedot.languages import LANGUAGES
from treedot.readers.code.grammars import PARSER, checked_versions, grammar_versions
from treedot.search.index.inverted_index_writer import InvertedIndexWriter, Lists
from treedot.search.index.learned_search import LearnedRows
from treedot.trees import Forest
from treedot.trees.packed import PackedTrees, PackedWriter
from treedot.vectors.files import INDEX_FORMAT, check_is
from treedot.vectors.metric.metric import Metric
from treedot.vectors.sparse.fitted_rows import FittedRows, fingerprint_of
from treedot.vectors.sparse.idf import inverse_frequency

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

VERSION, METRIC_VERSION, WEIGHTED_VERSION = 1, 2, 3  # of plain indexes, with a metric, weighted by rarity

LIST_TYPES = {"column": ("i4", "i8"), "start": ("i8",), "row": ("i4",), "value": ("f4", "f8")}
BATCH = 4096  # trees per batch


class IndexFile(NamedTuple):
    """The content of an index file, mapped into memory."""

    rows: FittedRows  # turns trees into rows
    reading: dict[str, Any]  # how the trees were read, as given to TreeIndex.build
    grammars: dict[str, str]  # the versions that parsed source code; empty in old files
    trees: PackedTrees
    lists: Lists
    identity: tuple[int, ...]  # see ``identity_of``
    learned: LearnedRows | None = None  # a metric, and what it needs of every tree
    idf: bool = False  # whether the lists are weighted by the rarity of their columns among these rows


def write_index(
    target: Path,
    rows: FittedRows,
    forests: Iterable[Forest],
    *,
    reading: Mapping[str, Any],
    idf: bool = False,
    kept: tuple[IndexFile, IntArray] | None = None,
    metric: Metric | None = None,
    check: Callable[[], object] = lambda: None,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Write an index of the given trees, after the rows that are ``kept`` of another index.

    Kept rows are copied, not computed again; with ``idf``, all are weighted anew. ``check`` is called just
    before the file takes its place.
    """
    languages, kept_languages = set[str](), set[str]()
    lengths = list[tuple[FloatArray, FloatArray]]()
    with InvertedIndexWriter(target, idf) as lists, PackedWriter(target) as trees:
        if kept is not None:
            old, numbers = kept
            check_order(old.lists, len(old.trees), target)
            lists.add_lists(old.lists, numbers, len(old.trees))
            if old.learned is not None:
                lengths.append(old.learned.taken(numbers)[1:])
            for start in range(0, numbers.size, BATCH):
                with stored_trees(target):
                    forest = old.trees.take(numbers[start : start + BATCH])
                trees.add(forest)
                kept_languages |= _languages(forest)
        for forest in forests:
            made = rows.transform(forest, n_jobs)
            lists.add(made)
            if metric is not None:
                lengths.append(metric.row_lengths(made, n_jobs))
            trees.add(forest)
            languages |= _languages(forest)
            if progress is not None:
                progress(lists.n_rows)
        if not lists.n_rows:
            raise SourceError("the index would be empty: give at least one tree")
        settings, learned = rows.settings, rows.arrays
        description = {
            "format": INDEX_FORMAT,
            "version": WEIGHTED_VERSION if idf else VERSION,
            "fingerprint": fingerprint_of(settings, learned),
            "vectorizer": settings,
            "reading": dict(reading),
            "trees": lists.n_rows,
        }
        known = {} if kept is None else kept[0].grammars
        if grammars := _grammars(languages, kept_languages, known):
            description["grammars"] = grammars
        groups: dict[str, Mapping[str, Any]] = {
            "trees": trees.finish(),
            "lists": lists.finish(n_jobs),
            "vectorizer": learned,
        }
        if metric is not None:
            known_lengths = (np.concatenate(parts) for parts in zip(*lengths, strict=True))
            held = LearnedRows(metric, *known_lengths)
            groups["metric"], description["metric"] = held.arrays(), held.settings()
            description["version"] = METRIC_VERSION
        arrays = {f"{group}.{name}": array for group in groups for name, array in groups[group].items()}
        check()
        write_arrays(target, description, arrays)


def read_index(path: str | os.PathLike[str]) -> IndexFile:
    """Map an index file into memory; raise SourceError if it is not an index, or is damaged."""
    try:
        with open_plain(path) as file:
            known = identity(os.fstat(file.fileno()))
            description, arrays = mapped_arrays(file, path)
    except SourceError:
        check_is(path, "TreeIndex.open")
        raise
    if description.get("format") != INDEX_FORMAT:
        check_is(path, "TreeIndex.open")
        raise SourceError(f"{path} is not an index of trees: make one with TreeIndex.build")
    version = description.get("version")
    if version not in ((METRIC_VERSION,) if "metric" in description else (VERSION, WEIGHTED_VERSION)):
        raise SourceError(
            f"{path} is an index of version {version!r}, but this treedot reads "
            f"versions {VERSION} to {WEIGHTED_VERSION}: build it again"
        )
    try:
        settings, learned = description["vectorizer"], _group(arrays, "vectorizer")
        rows, fingerprint = FittedRows.from_stored(settings, learned), fingerprint_of(settings, learned)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(f"{path} is damaged: its vectorizer cannot be rebuilt: {error}") from error
    if fingerprint != description.get("fingerprint"):
        raise SpecMismatchError(
            f"{path} was made by a vectorizer with the fingerprint {description.get('fingerprint')!r}, "
            f"but its settings now give {fingerprint!r}: it is damaged, or another version "
            "of treedot made it; build it again"
        )
    reading = description.get("reading", {})
    try:
        grammars = checked_versions(description.get("grammars", {}))
        trees = PackedTrees(_group(arrays, "trees"))
        lists = _checked_lists(_group(arrays, "lists"))
        held = None
        if "metric" in description:
            stored = description["metric"], _group(arrays, "metric")
            held = LearnedRows.from_stored(*stored, rows, len(trees))
    except (SourceError, TypeError) as error:
        raise SourceError(f"{path} is damaged: {error}") from None
    if not isinstance(reading, dict):
        raise SourceError(f"{path} is damaged: its settings of reading are not a JSON object")
    if len(trees) != description.get("trees"):
        raise SourceError(f"{path} is damaged: it holds {len(trees)} trees, not {description.get('trees')!r}")
    return IndexFile(rows, reading, grammars, trees, lists, known, held, version == WEIGHTED_VERSION)


def weighted_rows(file: IndexFile, forest: Forest) -> csr_matrix:
    """Return the rows of trees with the weights of an index."""
    rows = file.rows.transform(forest)
    if not file.idf:
        return rows
    known, number = locate(rows.indices.astype(file.lists.column.dtype), file.lists.column)
    counts = np.zeros(rows.nnz, np.int64)
    counts[known] = np.asarray(file.lists.start[number + 1]) - file.lists.start[number]
    rows.data = rows.data * inverse_frequency(counts.clip(0, len(file.trees)), len(file.trees))
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    rows.data /= np.sqrt(np.bincount(row, rows.data**2, rows.shape[0]))[row]
    return rows


def _languages(forest: Forest) -> set[str]:
    names = {name for name in forest.columns.get("language", ()) if isinstance(name, str)}
    return names & LANGUAGES.keys()


def _grammars(new: set[str], kept: set[str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the grammar versions of new trees; kept trees keep theirs, if known."""
    old = {*kept, PARSER} if kept else set()
    return grammar_versions(new - kept) | {name: text for name, text in known.items() if name in old}


@contextlib.contextmanager
def stored_trees(path: Path) -> Iterator[None]:
    """Name the file in errors about the trees that are taken from it."""
    try:
        yield
    except TreedotError as error:
        raise SourceError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:  # text that is not UTF-8 or not JSON
        raise SourceError(f"{path}: the stored trees are damaged: {error}") from None


def check_order(lists: Lists, n_rows: int, path: Path) -> None:
    """Raise SourceError unless columns and the rows of each list ascend, within ``n_rows``."""
    if (
        not (np.diff(lists.start) >= 0).all()
        or not (np.diff(lists.column) > 0).all()
        or not _ascend(lists.start, lists.row, n_rows)
    ):
        raise SourceError(f"{path} is damaged: a list of rows is out of order; build it again")


@njit_borrowing
def _ascend(start: IntArray, row: IntArray, n_rows: int) -> bool:
    for number in range(start.size - 1):
        last = -1
        for k in range(start[number], start[number + 1]):
            if not last < row[k] < n_rows:
                return False
            last = row[k]
    return True


def _group(arrays: Mapping[str, np.ndarray], group: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names start with ``group.``, without this prefix."""
    before = f"{group}."
    return {name.removeprefix(before): array for name, array in arrays.items() if name.startswith(before)}


def _checked_lists(arrays: Mapping[str, np.ndarray]) -> Lists:
    """Return the posting lists; raise SourceError if their arrays are inconsistent."""
    for name, types in LIST_TYPES.items():
        if name not in arrays or arrays[name].dtype.str[1:] not in types or arrays[name].ndim != 1:
            raise SourceError(f"the array {name!r} is missing or has the wrong type")
    lists = Lists(*(arrays[name] for name in Lists._fields))
    ends = lists.start.size == lists.column.size + 1 and lists.start[0] == 0
    if not ends or not lists.start[-1] == lists.row.size == lists.value.size:
        raise SourceError("the posting lists have inconsistent lengths")
    return lists
