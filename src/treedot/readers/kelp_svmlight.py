"""Read the files of SVM-LIGHT-TK and KeLP: one example per line, with its class, trees and vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from treedot._pages.printable import first_few
from treedot.errors import SourceError
from treedot.parameters import checked_choice
from treedot.readers.folders import OnSkip
from treedot.readers.formats import OnError, Paths, read_files
from treedot.readers.stream import TreeStream
from treedot.readers.tables import DEFAULT_COLUMN, Row, decoded, packed
from treedot.trees import Forest
from treedot.trees.text_formats import CLASS, STRING, TREE, VECTOR, VectorText, features

Parts = dict[str, tuple[str, str]]  # columns of an example: KeLP's type, and the text

_REPRESENTATION = re.compile(r"\s*\|B([A-Z]+)(?::([^|]*))?\|(.*?)\|E\1\|")
_TYPE = re.compile(r"(?<![^\s()])[A-Z]+##")  # before the label of a node
FIRST_TREE = "|BT|"  # the default column of the tree; no representation has such a name
CLASSES = (CLASS, f"left.{CLASS}", f"right.{CLASS}")  # the columns of classes, of single examples and pairs
MAX_FEATURES = 1 << 14  # most features that become columns
MAX_NUMBERS = 1 << 28  # most numbers in these columns, 8 bytes each


def read_svmlight_examples(stream: TreeStream, column: str = DEFAULT_COLUMN) -> Iterator[Forest]:
    """Yield the trees of an SVM-LIGHT-TK file, with everything else as columns."""

    def parse(line: str) -> Parts | None:
        return None if line.startswith("#") else _svmlight_row(line)

    return packed(stream, partial(_rows, parse, column, column), column)


def read_kelp_examples(
    stream: TreeStream, column: str | None = None, types: str = "keep"
) -> Iterator[Forest]:
    """Yield the trees of a KeLP file, which has no comments, with everything else as columns."""
    wanted = FIRST_TREE if column is None else _column_of(column)
    parse = partial(_kelp_row, take_first=column is None)
    return packed(stream, partial(_rows, parse, wanted, column or wanted, types=types), wanted)


def _rows(
    parse: Callable[[str], Parts | None], wanted: str, shown: str, stream: TreeStream, types: str = "keep"
) -> Iterator[Row]:
    for number, line in decoded(stream, has_header=False):
        try:
            row = parse(line) if line.strip() else None
        except SourceError as error:
            stream.report(number, str(error))
            continue
        if row is None:
            continue
        if wanted not in row:
            problem = f"there is no tree {shown!r}; choose the column from {first_few(row)}"
            stream.report(number, problem)
            continue
        values = {key: VectorText(text) if of == VECTOR else text for key, (of, text) in row.items()}
        if types == "drop":
            values = {key: _without_types(value) for key, value in values.items()}
        yield number, values


def _svmlight_row(line: str) -> Parts:
    """Return the columns of a line ``class |BT| tree |BT| tree |ET| 1:0.5 |BV| 2:1 |EV| # comment``."""
    label, mark, rest = line.partition("|BT|")
    if not mark:
        raise SourceError("no tree found: expected one after |BT|")
    trees, mark, rest = rest.partition("|ET|")
    if not mark:
        raise SourceError("the trees have no end, |ET|")
    numbers, _, comment = rest.partition("#")
    vectors = numbers.partition("|EV|")[0].split("|BV|")
    row = {CLASS: (STRING, label.strip())}
    for name, kind, texts in ((DEFAULT_COLUMN, TREE, trees.split("|BT|")), ("vector", VECTOR, vectors)):
        for k, text in enumerate(texts):
            if kind == TREE or text.strip():
                row[name if k == 0 else f"{name}{k + 1}"] = kind, text.strip()
    return row | ({"comment": (STRING, comment.strip())} if comment.strip() else {})


def _kelp_row(line: str, take_first: bool) -> Parts:
    """Return the columns of a line ``class class |BT:name| tree |ET| |BV:name| a:1 |EV|``.

    For a pair, ``class |<| example |,| example |>|``, names of columns begin with ``left.`` or ``right.``.
    With ``take_first``, the first tree has its own column.
    """
    label, mark, rest = line.partition("|")
    if not mark:
        raise SourceError("no tree found: expected one after |BT|")
    row = {CLASS: (STRING, " ".join(label.split()))}
    rest = mark + rest
    if rest.startswith("|<|"):
        left, _, right = rest[3:].partition("|,|")
        right, mark, rest = right.partition("|>|")
        if not mark:
            raise SourceError("expected a pair of examples, |<| example |,| example |>|")
        for side, example in (("left.", left), ("right.", right)):
            own, mark, representations = example.partition("|")
            if own.strip():
                row[side + CLASS] = STRING, " ".join(own.split())
            _add_representations(row, mark + representations, side, take_first)
    _add_representations(row, rest, "", take_first)
    return row


def _add_representations(row: Parts, text: str, prefix: str, take_first: bool) -> None:
    """Add the representations, ``|B…| … |E…|``, to a row; one without a name is named by its number."""
    at = number = 0
    text = text.rstrip()
    while at < len(text):
        found = _REPRESENTATION.match(text, at)
        if found is None:
            problem = f"found {text[at:].strip()!r:.40}"
            raise SourceError(f"expected a representation, such as |BT:name| … |ET|, {problem}")
        kind, given, body = found.groups()
        key = _column_of(prefix + (str(number) if given is None else given))
        if kind == TREE and take_first and FIRST_TREE not in row:
            key = FIRST_TREE
        if key in row:
            raise SourceError(f"two representations with the name {key!r}")
        row[key] = kind, body.strip()
        at, number = found.end(), number + 1


def _column_of(name: str) -> str:
    """Return the column of a representation, which must differ from the column of classes."""
    return f"{name}2" if name in CLASSES else name


def _without_types(text: str) -> str:
    return _TYPE.sub("", text) if text.startswith("(") else text


def read_svmlight(
    paths: Paths,
    *,
    column: str | None = None,
    vectors: str = "text",
    on_bad: OnError | None = None,
    on_skip: OnSkip | None = None,
) -> Forest:
    r"""Read the examples of SVM-LIGHT-TK files into one Forest.

    A line is ``class |BT| tree |BT| tree |ET| 1:0.5 2:1 |BV| 1:3 |EV| # comment``. The Forest holds one tree
    per line. The columns are ``class``; the other trees, ``tree``, ``tree2`` and so on, as bracket text; the
    vectors, ``vector``, ``vector2`` and so on, as text; and ``comment``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files with any suffix, and folders. In a folder, all ``.svmlight`` files are read.
    column : str, default=None
        Which tree of an example to read: ``"tree"``, the first (the default), ``"tree2"``, ….
    vectors : {"text", "columns"}, default="text"
        How to represent vectors: as text, or as one column of numbers per feature, ``vector:1``,
        ``vector:2``, …; missing features are 0.
    on_bad : callable, default=None
        Called with the error of every example that is skipped. By default, errors in a file given by name
        are raised, and bad examples of files found in a folder are skipped.
    on_skip : callable, default=None
        See ``read_html``.

    Returns
    -------
    Forest
        The examples of all files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "train.dat"
    >>> _ = file.write_text("1 |BT| (A (B b)(C c)) |ET| 1:0.5 7:2 |EV|\n-1 |BT| (A (B d)) |ET| 1:1 |EV|\n")
    >>> forest = read_svmlight(file, vectors="columns")
    >>> forest.columns["class"], forest.columns["vector:7"]
    (['1', '-1'], [2.0, 0.0])
    """
    return _read(paths, "svmlight", vectors, on_bad, on_skip, column=column)


def read_kelp(
    paths: Paths,
    *,
    column: str | None = None,
    types: str = "keep",
    vectors: str = "text",
    on_bad: OnError | None = None,
    on_skip: OnSkip | None = None,
) -> Forest:
    r"""Read the examples of KeLP files into one Forest.

    A line is ``class |BT:name| tree |ET| |BV:name| a:1 b:0.5 |EV| |BS:name| text |ES|``, with any number of
    classes and representations. The column ``class`` holds all classes, separated by blanks. Each
    representation is a column of text under its name, or under its number, from 0, if it has no name; one
    named ``class`` becomes ``class2``. For a pair of examples, ``|<| … |,| … |>|``, the column names begin
    with ``left.`` and ``right.``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files with any suffix, and folders. In a folder, all ``.klp`` files are read.
    column : str, default=None
        The name of the representation to read as trees; by default the first tree.
    types : {"keep", "drop"}, default="keep"
        Whether to keep the type of a node, ``LEX##tree::n``, or to drop it, ``tree::n``. KeLP's partial tree
        kernels ignore the types, its other kernels do not.
    vectors : {"text", "columns"}, default="text"
        How to represent vectors: as text, or as one column of numbers per feature, ``name:a``, ``name:b``,
        …; missing features are 0.
    on_bad : callable, default=None
        Called with the error of every example that is skipped, as in ``read_svmlight``.
    on_skip : callable, default=None
        See ``read_html``.

    Returns
    -------
    Forest
        The examples of all files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "train.klp"
    >>> _ = file.write_text("NUM |BT:lct| (LEX##many::j(LEX##how::w(POS##WRB))) |ET| |BS:id| q1 |ES|\n")
    >>> forest = read_kelp(file, types="drop")
    >>> print(forest[0])
    (many::j (how::w WRB))
    >>> forest.columns
    {'class': ['NUM'], 'id': ['q1']}
    """
    checked_choice("types", types, ("keep", "drop"))
    return _read(paths, "kelp", vectors, on_bad, on_skip, column=column, types=types)


def _read(
    paths: Paths, kind: str, vectors: str, on_bad: OnError | None, on_skip: OnSkip | None, **options: Any
) -> Forest:
    checked_choice("vectors", vectors, ("text", "columns"))
    given = {name: value for name, value in options.items() if value is not None}
    forest = read_files(paths, kind, on_bad, on_skip, **given)
    if vectors == "columns":
        for name, values in list(forest.columns.items()):
            if any(isinstance(value, VectorText) for value in values):
                forest.columns.update(_number_columns(name, forest.columns.pop(name)))
    return forest


def _number_columns(name: str, vectors: Sequence[str | None]) -> dict[str, list[float]]:
    """Return the features of vectors as columns, in the order in which they first occur."""
    found: dict[str, list[float]] = {}
    most = min(MAX_FEATURES, MAX_NUMBERS // max(1, len(vectors)))
    for row, vector in enumerate(vectors):
        own = features(vector or "")
        if own is None:
            raise SourceError(
                f"tree {row + 1}, column {name!r}: a vector must have names and numbers, such as 1:0.5 7:2, "
                f"not {vector!r:.40}: keep vectors as text"
            )
        for key, value in own.items():
            if key not in found and len(found) == most:
                raise SourceError(f"the vectors {name!r} have more than {most:,} features: keep them as text")
            found.setdefault(key, [0.0] * len(vectors))[row] = value
    return {f"{name}:{key}": values for key, values in found.items()}
