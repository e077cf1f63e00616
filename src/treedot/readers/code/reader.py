"""``read_code``, ``iter_code`` and ``parse_code``: every function, class or file of source code as a tree."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice

from treedot._runtime.threads import open_threads
from treedot.errors import ParameterError, SourceError
from treedot.languages import LANGUAGES, languages_of
from treedot.parameters import checked_flag, n_threads
from treedot.readers.code.foreign_folders import foreign_folder
from treedot.readers.code.settings import MAX_BYTES, MAX_SECONDS, CodeSettings
from treedot.readers.code.source_files import as_utf8, parse_units, read_units
from treedot.readers.folders import OnSkip, TooLargeError, walk
from treedot.readers.on_bad import OnBad
from treedot.readers.stream import TreeStream, in_batches
from treedot.trees import Forest

FILES_AHEAD = 16  # files per process that are read ahead, so that none waits for a slow one
FILES_EACH = 24  # fewer are parsed faster than a process starts


def read_code(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    unit: str = "function",
    language: str | None = None,
    identifiers: str = "keep",
    literals: str = "keep",
    min_nodes: int = 1,
    blurred: bool = False,
    stubs: bool = True,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    exclude: Iterable[str] = (),
    include_vendored: bool = False,
    on_bad: Callable[[SourceError], object] | None = None,
    on_skip: OnSkip | None = None,
    n_jobs: int | None = None,
) -> Forest:
    r"""Read the functions, classes or files of source code into one Forest.

    A node is labelled with its type in the language's grammar. Operators are leaves; punctuation, keywords,
    comments and docstrings are dropped. A nested function is part of the enclosing function's tree, and also
    a tree of its own. A syntax error is a node ``ERROR``.

    The columns are ``file``, ``start`` and ``end`` (the first and the last line, counted from 1), ``name``
    (``Class.method``), ``language`` and ``errors``, the number of syntax errors. The trees of a file may
    change with the version of the grammar.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders. In a folder, all files with the suffix of a language are read, recursively, except
        those excluded by ``.gitignore`` and ``.treedotignore`` files, symbolic links, names that begin with a
        dot, binary files, and code that nobody wrote for the project (``include_vendored``). A file given by
        name is always read. The order of the paths does not matter.
    unit : {"function", "class", "file"}, default="function"
        What becomes one tree.
    language : str, default=None
        Read only this language: ``"python"``, ``"javascript"``, ``"typescript"``, ``"tsx"``, ``"java"``,
        ``"c"``, ``"cpp"``, ``"go"``, ``"rust"``, ``"csharp"`` or ``"ruby"``. A file given by name is read in
        this language whatever its suffix. By default the suffix determines the language.
    identifiers, literals : {"keep", "blur", "drop"}, default="keep"
        How to represent names, and numbers and strings: ``"keep"`` makes a node of the type with the text
        below it, ``(identifier x)``; ``"blur"`` only the type, ``identifier``; ``"drop"`` nothing.
    min_nodes : int, default=1
        Units with fewer nodes are skipped.
    blurred : bool, default=False
        Add a column ``blurred``: for each tree an array of hashes of the blurred texts, in source order.
        Equal trees with equal arrays are identical copies; equal trees with different arrays are renamed
        copies.
    stubs : bool, default=True
        Whether functions without an implementation are units: overloads of Python, and functions that are
        empty, abstract, or only raise an error that they are not implemented.
    max_bytes : int, default=2000000
        Larger files are not read: they are skipped in a folder, and an error if given by name.
    max_seconds : float, default=10.0
        Files that take more processor time to parse are not read either.
    exclude : iterable of str, default=()
        Patterns of files and folders to exclude, as in a ``.gitignore`` file in each of the given folders.
    include_vendored : bool, default=False
        Also read vendored folders, installed packages, environments and the output of builds inside the given
        folders, and minified, compiled and generated files. These are recognised by their names and contents.
    on_bad : callable, default=None
        Called with the error of every file given by name that cannot be read. By default the first error is
        raised.
    on_skip : callable, default=None
        Called with the path and the reason for everything that is skipped. The reasons for a file in a
        folder are ``"ignored"``, ``"binary"``, ``"minified"``, ``"compiled"``, ``"generated"``, ``"in another
        language"``, ``"too large"``, ``"too slow"``, ``"crashes the parser"``, ``"needs pip install
        tree-sitter-java"`` (or another grammar), ``"unreadable"``, ``"not a plain file"`` and ``"name is not
        UTF-8"``; for a folder ``"ignored folder"``, ``"vendored folder"``, ``"dependency folder"``,
        ``"environment folder"`` and ``"build folder"``; for a unit ``"stub"``, and ``"ignored unit"`` if a
        comment ``treedot: ignore`` is inside it or on the line before. ``treedot.readers.folders.Skipped``
        counts them.
    n_jobs : int, default=None
        The number of processes that parse the files; None is one, and -1 uses all cores. The result does not
        depend on it. Parsing never happens in the calling process, so a parser that hangs or crashes does no
        harm.

    Returns
    -------
    Forest
        The units of all files.

    See Also
    --------
    iter_code : The same, file by file.
    parse_code : The units of a text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "m.py").write_text("class C:\n    def f(self):\n        return self.x + 1\n")
    >>> forest = read_code(folder, identifiers="blur")
    >>> forest.columns["name"], forest.columns["start"], forest.columns["end"]
    (['C.f'], [2], [3])
    """
    settings = CodeSettings(
        unit, identifiers, literals, min_nodes, blurred, max_bytes, max_seconds, stubs=stubs
    )
    return Forest.concat(
        iter_code(
            paths,
            settings=settings,
            language=language,
            exclude=exclude,
            include_vendored=include_vendored,
            on_bad=on_bad,
            on_skip=on_skip,
            n_jobs=n_jobs,
        )
    )


def iter_code(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    settings: CodeSettings | None = None,
    language: str | None = None,
    exclude: Iterable[str] = (),
    include_vendored: bool = False,
    only: Callable[[str], bool] | None = None,
    on_bad: Callable[[SourceError], object] | None = None,
    on_skip: OnSkip | None = None,
    progress: Callable[[int, int], object] | None = None,
    n_jobs: int | None = None,
) -> Iterator[Forest]:
    """Yield one Forest per file that has units, in the order of the paths, in constant memory.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders, as in ``read_code``.
    settings : CodeSettings, default=None
        The settings of ``read_code`` that apply to a single file; ``CodeSettings()`` by default.
    language : str, default=None
        Read only this language, as in ``read_code``.
    exclude : iterable of str, default=()
        Patterns of files and folders to exclude, as in ``read_code``.
    include_vendored : bool, default=False
        Also read code that nobody wrote for the project, as in ``read_code``.
    only : callable, default=None
        Called with the path of every file; returns whether to read it.
    on_bad : callable, default=None
        Called with the error of every file given by name that cannot be read. By default the first error is
        raised.
    on_skip : callable, default=None
        Called with the path and the reason for everything that is skipped, as in ``read_code``.
    progress : callable, default=None
        Called after every file with the number of files that were read so far, and the number of all. All
        files are then found before the first one is read.
    n_jobs : int, default=None
        The number of processes that parse the files; None is one, and -1 uses all cores.

    Yields
    ------
    Forest
        The units of one file, with the columns of ``read_code``.

    See Also
    --------
    read_code : The same as one Forest.
    """
    if language is not None:
        _check_language(language)
    report = OnBad(on_bad)
    skip: OnSkip = on_skip or (lambda path, reason: None)

    def wanted(name: str) -> bool:
        return bool(languages_of(name)) if language is None else language in languages_of(name)

    checked_flag("include_vendored", include_vendored)
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    files = walk(given, wanted, skip, exclude, None if include_vendored else foreign_folder)
    if only is not None:
        files = (file for file in files if only(file.path))
    total = 0
    if progress is not None:
        listed = list(files)
        files, total = iter(listed), len(listed)
    read = partial(
        read_units,
        language=language,
        settings=settings or CodeSettings(),
        include_vendored=include_vendored,
    )
    first = list(islice(files, FILES_EACH * n_threads(n_jobs)))
    n_processes = min(n_threads(n_jobs), max(1, len(first) // FILES_EACH))
    files = chain(first, files)
    with open_threads(n_processes) as threads:  # each waits for a process that parses
        for done, outcome in enumerate(threads.in_order(read, files, FILES_AHEAD), 1):
            if progress is not None:
                progress(done, total)
            if outcome.error is not None:
                report(outcome.error)
            if outcome.skipped is not None:
                skip(outcome.path, outcome.skipped)
            for reason, count in (outcome.left_out or {}).items():
                for _ in range(count):
                    skip(outcome.path, reason)
            if outcome.forest is not None and len(outcome.forest):
                yield outcome.forest


def parse_code(
    source: bytes | str, language: str, *, file: str = "<source>", settings: CodeSettings | None = None
) -> Forest:
    r"""Return the units of a text in a programming language, with the columns of ``read_code``.

    Parameters
    ----------
    source : bytes or str
        The text.
    language : str
        The language, such as ``"python"``.
    file : str, default="<source>"
        The value of the column ``file``.
    settings : CodeSettings, default=None
        The settings; ``CodeSettings()`` by default.

    Returns
    -------
    Forest
        The units.

    Raises
    ------
    ParameterError
        If there is no such language.
    MissingDependencyError
        If the parser of the language is not installed.

    Examples
    --------
    >>> parse_code("def f(x):\n    return x\n", "python").columns["name"]
    ['f']
    """
    _check_language(language)
    text = source.encode(errors="backslashreplace") if isinstance(source, str) else as_utf8(source, language)
    return parse_units(text, language, file, settings or CodeSettings())[0]


def read_source(stream: TreeStream, language: str, unit: str = "function") -> Iterator[Forest]:
    """Yield the units of an open file in batches, with the default settings."""
    settings = CodeSettings(unit)
    content, name = stream.read(settings.max_bytes + 1), stream.name
    try:
        if len(content) > settings.max_bytes:
            raise TooLargeError.of(name, settings.max_bytes)
        # Open text is decoded already, whatever encoding its first lines declare.
        text = content if isinstance(stream.file, io.TextIOBase) else as_utf8(content, language)
        forest, _ = parse_units(text, language, name, settings)
    except SourceError as error:
        stream.on_bad(error)
        return
    yield from in_batches(forest, stream.batch_size)


def _check_language(language: str) -> None:
    if language not in LANGUAGES:
        raise ParameterError(f"unknown language {language!r}: use one of {', '.join(LANGUAGES)}")
