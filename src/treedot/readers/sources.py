"""``read_trees`` and ``iter_trees``: read any source of trees, a file, a folder or objects, into Forests."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np

from treedot._storage.compression import decompressed
from treedot._storage.files import content_suffix, open_raw, standard_input
from treedot.errors import ParameterError, SourceError
from treedot.languages import LANGUAGES
from treedot.parameters import (
    CODE_UNITS,
    DEPENDENCY_TREES,
    DOCUMENT_UNITS,
    DOCUMENTS,
    FORMATS,
    PARSES,
    TREEBANKS,
    WITH_RECORDS,
    checked_choice,
    n_threads,
)
from treedot.readers.bridges.registry import bridge_of
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.formats import BY_SUFFIX, read_stream
from treedot.readers.on_bad import OnBad
from treedot.readers.stream import TreeStream, in_batches
from treedot.trees import Forest, Tree

_EVERYTHING = 2**31 - 1


class _How(NamedTuple):
    """The settings of ``iter_trees``."""

    format: str | None
    column: str | None
    unit: str | None
    batch_size: int
    on_bad: OnBad
    n_jobs: int = 1  # threads
    objects: ObjectSettings = ObjectSettings()
    may_be_empty: bool = False  # if not, a file without trees is an error
    unpack_large: bool = False


def read_trees(
    source: Any,
    format: str | None = None,
    *,
    column: str | None = None,
    unit: str | None = None,
    on_bad: Callable[[SourceError], object] | None = None,
    n_jobs: int | None = None,
    unpack_large: bool = False,
) -> Forest:
    """Read all trees of a source into one Forest.

    Parameters
    ----------
    source : path, open file, "-", Forest, or iterable
        A file (also ``.gz``, ``.xz``, ``.zst``); ``"-"`` is standard input. A folder is read as source
        code. Each item of an iterable is one tree: bracket text, a ``Tree``, nested lists ``[label,
        child, …]``, an ``nltk.Tree`` or a similar object, or an object of a parser, see ``read_objects``; a
        document of a parser is its sentences. If the items are ``pathlib.Path`` objects, the
        trees of all these files are read. Tables and arrays in memory (pandas, NumPy, pyarrow) are accepted
        if they have one column.
    format : str, default=None
        ``"brackets"``, ``"tsv"``, ``"csv"``, ``"jsonl"``, ``"parquet"``, ``"arrow"``, ``"html"``,
        ``"xml"``, ``"json"``, ``"conllu"``, ``"newick"``, ``"dot-bracket"``, ``"svmlight"``, ``"kelp"`` or a
        programming language, such as ``"python"``. By default the file's suffix determines the format, and
        unknown suffixes are read as ``"brackets"``. Each format is read with the default settings of its own
        function, such as ``read_code`` or ``read_html``. JSON lines are a table unless the format is
        ``"json"``.
    column : str, default=None
        The column of a table that holds the trees; by default ``"tree"``. The other columns are kept in
        ``Forest.columns``.
    unit : str, default=None
        What becomes one tree. XML and JSON: ``"document"`` (the default) or ``"record"``, each element below
        the root or each item of a top-level array. CoNLL-U: ``"grct"`` (the default) or another form, see
        ``read_conllu``; objects of parsers also ``"constituency"``. Source code: ``"function"`` (the
        default), ``"class"`` or ``"file"``.
    on_bad : callable, default=None
        Called with the error of every tree that cannot be read; the tree is skipped. By default the first
        such error is raised.
    n_jobs : int, default=None
        The number of threads that read a file of brackets; -1 uses all cores. The forest and the errors do
        not depend on it. After the first tree that cannot be read, one thread reads the rest. Other formats
        are always read by one thread.
    unpack_large : bool, default=False
        Whether to read a compressed file (also Parquet and Arrow) that unpacks to more than 64 MiB and to
        more than 200 times its size. By default such a file is an error, since it may be made to exhaust
        memory.

    Returns
    -------
    Forest
        The trees, with their columns.

    Raises
    ------
    SourceError
        If the source cannot be read, or a file has no tree; ``TreeSyntaxError`` if brackets do not match.

    See Also
    --------
    iter_trees : The same in batches.
    read_code : Source code, with more settings.
    read_objects : Objects of parsers and libraries, with more settings.

    Examples
    --------
    >>> read_trees(["(S (NP I) (VP run))", ("S", ("NP", "I"), "run")])
    <Forest of 2 trees, 9 nodes, 5 labels>
    """
    if isinstance(source, Forest):
        return source
    return Forest.concat(
        iter_trees(
            source,
            format,
            column=column,
            unit=unit,
            batch_size=_EVERYTHING,
            on_bad=on_bad,
            n_jobs=n_jobs,
            unpack_large=unpack_large,
        )
    )


def read_tree(thing: Any) -> Forest:
    """Return one tree as a Forest.

    Parameters
    ----------
    thing : str, Tree, nested lists, or Forest
        Bracket text or anything else that ``read_trees`` accepts as an item, or a Forest of one tree.

    Returns
    -------
    Forest
        A Forest of one tree.

    Raises
    ------
    SourceError
        If ``thing`` is not a tree.
    """
    if isinstance(thing, Tree):
        return Forest.from_tree(thing)
    if isinstance(thing, str):
        from treedot.readers.brackets.reader import read_cell

        found = read_cell(thing)
        if found is not None:
            return found
    forest = thing if isinstance(thing, Forest) else read_trees([thing])
    if len(forest) != 1:
        raise ParameterError(f"expected one tree, found {len(forest)} in {thing}")
    return forest


def iter_trees(
    source: Any,
    format: str | None = None,
    *,
    column: str | None = None,
    unit: str | None = None,
    batch_size: int = 1024,
    on_bad: Callable[[SourceError], object] | None = None,
    on_read: Callable[[int], object] | None = None,
    n_jobs: int | None = None,
    unpack_large: bool = False,
) -> Iterator[Forest]:
    """Yield the trees of a source as Forests of at most ``batch_size`` trees, in constant memory.

    A file without trees is an error, except for source code and documents. An empty iterable is not an error.

    Parameters
    ----------
    source : path, open file, "-", Forest, or iterable
        The trees, as in ``read_trees``.
    format : str, default=None
        The format of a file, as in ``read_trees``.
    column : str, default=None
        The column of a table that holds the trees; by default ``"tree"``.
    unit : str, default=None
        What a tree is, as in ``read_trees``.
    batch_size : int, default=2**10
        The maximum number of trees per Forest.
    on_bad : callable, default=None
        Called with the error of every tree that cannot be read; the tree is skipped. By default the first
        such error is raised.
    on_read : callable, default=None
        Called after each batch with the number of bytes read from the file so far.
    n_jobs : int, default=None
        The number of threads that read a file of brackets; -1 uses all cores. Several threads read a few MB
        ahead.
    unpack_large : bool, default=False
        Whether to read a compressed file that unpacks to a suspicious size, as in ``read_trees``.

    Yields
    ------
    Forest
        The next trees, with their columns.

    See Also
    --------
    read_trees : The same as one Forest.
    """
    if batch_size < 1:
        raise ParameterError(f"batch_size must be at least 1, not {batch_size}")
    check_settings(format, unit)
    threads = n_threads(n_jobs)
    objects = ObjectSettings(unit)
    how = _How(format, column, unit, batch_size, OnBad(on_bad), threads, objects, unpack_large=unpack_large)
    source = items_of(source)
    if isinstance(source, Forest):
        yield from in_batches(source, batch_size)
    elif isinstance(source, (str, os.PathLike)):
        yield from _from_file(source, how, on_read)
    elif hasattr(source, "read"):
        name = str(getattr(source, "name", "<stream>"))
        yield from _from_stream(source, name, format or format_of(name), how._replace(n_jobs=1))
    elif are_vectors(source):
        raise ParameterError(f"cannot read trees from {type(source).__name__}: these are vectors already")
    elif isinstance(source, Mapping) or hasattr(source, "columns"):
        raise ParameterError(
            f"cannot read trees from {type(source).__name__}: pass only the column of trees, source['tree']"
        )
    elif isinstance(source, (Tree, bytes)) or not isinstance(source, Iterable) or hasattr(source, "label"):
        raise ParameterError(
            f"cannot read trees from {type(source).__name__}: pass a path, an open file or a list of trees"
        )
    else:
        yield from _from_items(source, how)


def iter_file(
    path: str, format: str | None, column: str | None, unit: str | None, batch_size: int, on_bad: OnBad
) -> Iterator[Forest]:
    """Yield the trees of a file like ``iter_trees``, but accept a file without trees."""
    return _from_file(path, _How(format, column, unit, batch_size, on_bad, may_be_empty=True))


def check_settings(format: str | None, unit: str | None) -> None:
    """Raise ParameterError for an unknown format or unit."""
    if format is not None and format not in FORMATS:
        raise ParameterError(f"unknown format {format!r}: use one of {', '.join(FORMATS)}")
    if unit is not None:
        checked_choice("unit", unit, (*DOCUMENT_UNITS, *CODE_UNITS, *PARSES))


def check_file_settings(name: str, kind: str, column: str | None, unit: str | None) -> None:
    """Raise ParameterError if the format ``kind`` has no columns, or not this unit."""
    if column is not None and kind in ("brackets", *DOCUMENTS, *TREEBANKS, *LANGUAGES):
        raise ParameterError(f"{name} is read as {kind}, which has no column {column!r}: set the format")
    if unit not in (None, *_units(kind)):
        raise ParameterError(f"{name} is read as {kind}, which has no unit {unit!r}: remove the unit")


def is_known(name: str, format: str | None = None) -> bool:
    """Return whether the suffix of a file names a known format, or the given one."""
    found = BY_SUFFIX.get(content_suffix(name))
    return found is not None and format in (None, found)


def items_of(source: Any) -> Any:
    """Return the only column of a table or array in memory, and the sentences of a document of a parser.

    Anything else is returned unchanged.
    """
    bridge = bridge_of(source)
    if bridge is not None:
        return list(bridge.parts(source))
    shape = getattr(source, "shape", ())
    is_table = hasattr(source, "columns") or isinstance(source, np.ndarray)
    if is_table and isinstance(shape, tuple) and len(shape) == 2 and shape[1] == 1:
        return np.asarray(source)[:, 0]
    if not is_table and hasattr(source, "to_pylist"):  # an array of pyarrow
        return source.to_pylist()
    return source


def are_vectors(source: Any) -> bool:
    """Return whether an object is a dense or sparse matrix, or ``Vectors``."""
    matrix = getattr(source, "matrix", source)
    return getattr(getattr(matrix, "dtype", None), "kind", "O") in "biufc"


def _from_file(
    path: str | os.PathLike[str], how: _How, on_read: Callable[[int], object] | None = None
) -> Iterator[Forest]:
    name = os.fspath(path)
    if name == "-":
        yield from _from_stream(standard_input(), "<stdin>", how.format or "brackets", how._replace(n_jobs=1))
        return
    if name.lstrip().startswith("(") and not os.path.exists(name):
        raise ParameterError("a string is read as a file name: to read bracket text, pass a list, [text]")
    if os.path.isdir(name):
        yield from _from_folder(name, how)
        return
    kind = how.format or format_of(name)
    with open_raw(name) as raw:
        stream = decompressed(raw, name, how.unpack_large)
        for forest in _from_stream(stream, name, kind, how):
            if on_read is not None and raw.seekable():
                on_read(raw.tell())
            yield forest


def format_of(name: str) -> str:
    """Return the format that the suffix of a file names; brackets if the suffix is unknown."""
    return BY_SUFFIX.get(content_suffix(name), "brackets")


def _from_folder(name: str, how: _How) -> Iterator[Forest]:
    from treedot.readers import CodeSettings, iter_code

    if how.column is not None or how.format not in (None, *LANGUAGES):
        raise ParameterError(f"{name} is a folder, and folders are read as source code: pass its files")
    forests = iter_code(name, settings=CodeSettings(how.unit or "function"), language=how.format)
    first = next(forests, None)
    if first is None:
        raise SourceError(f"cannot read trees from {name}: the folder has no source code")
    for forest in itertools.chain([first], forests):
        yield from in_batches(forest, how.batch_size)


def _from_stream(file: IO[bytes], name: str, kind: str, how: _How) -> Iterator[Forest]:
    check_file_settings(name, kind, how.column, how.unit)
    if kind in ("parquet", "arrow") and not os.path.exists(name):
        raise SourceError(f"cannot read {kind} from {name}: it needs a file, not a stream")
    options: dict[str, Any] = {}
    if how.unit is not None and len(_units(kind)) > 1:
        options["unit"] = how.unit
    if how.column is not None:
        options["column"] = how.column
    if kind == "brackets":
        options["n_jobs"] = how.n_jobs
    elif kind in ("parquet", "arrow"):
        options["unpack_large"] = how.unpack_large
    forests = read_stream(TreeStream(file, name, how.batch_size, how.on_bad), kind, **options)
    if how.may_be_empty or kind in (*LANGUAGES, *DOCUMENTS):  # may have no functions or records
        return forests
    return _checked(forests, name)


def _units(kind: str) -> tuple[str, ...]:
    """Return the units that a format can be cut into."""
    if kind in LANGUAGES:
        return CODE_UNITS
    if kind == "conllu":
        return DEPENDENCY_TREES
    return DOCUMENT_UNITS if kind in WITH_RECORDS else DOCUMENT_UNITS[:1]


def _from_items(items: Iterable[Any], how: _How) -> Iterator[Forest]:
    from treedot.readers.objects import read_items

    rest = iter(items)
    number = 0
    while batch := list(itertools.islice(rest, how.batch_size)):
        if isinstance(batch[0], os.PathLike):
            for k, path in enumerate(itertools.chain(batch, rest), number + 1):
                if not isinstance(path, os.PathLike):
                    raise ParameterError(
                        f"a list must hold only trees or only paths: item {k} is {type(path).__name__}"
                    )
                yield from _from_file(path, how)
            return
        yield read_items(batch, lambda k, n=number: f"tree {n + k + 1}", how.on_bad, how.objects)[0]  # type: ignore[misc]
        number += len(batch)


def _checked(forests: Iterator[Forest], name: str) -> Iterator[Forest]:
    """Yield the forests of a file; raise SourceError if there are none."""
    first = next(forests, None)
    if first is None:
        raise SourceError(f"{name} contains no tree")
    yield first
    yield from forests
