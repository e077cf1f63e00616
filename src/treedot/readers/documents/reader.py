"""``read_html``, ``read_xml`` and ``read_json``: read files, or all files of folders, as trees."""

from __future__ import annotations

from typing import Any

from treedot.parameters import DOCUMENT_UNITS, POLICIES, checked_choice
from treedot.readers.folders import OnSkip
from treedot.readers.formats import OnError, Paths, read_files
from treedot.trees import Forest


def read_html(
    paths: Paths,
    *,
    attributes: str = "blur",
    text: str = "blur",
    comments: str = "drop",
    on_bad: OnError | None = None,
    on_skip: OnSkip | None = None,
) -> Forest:
    r"""Read HTML pages into one Forest, one tree per page.

    An element is a node labelled with its tag. Its children are its attributes, ``@name``, sorted by name,
    then its content, with texts as ``#text`` and comments as ``#comment``. Blank text is skipped. libxml2
    repairs invalid pages; depth is not limited. The columns are ``file``, ``start`` and ``end`` (lines),
    ``name`` (empty) and ``language``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders. In a folder, all ``.html``, ``.htm`` and ``.xhtml`` files are read, recursively,
        except those excluded by ``.gitignore`` and ``.treedotignore`` files.
    attributes : {"keep", "blur", "drop"}, default="blur"
        How to represent attributes: ``"keep"`` makes a node with the value below it, ``(@lang en)``;
        ``"blur"`` only the node, ``@lang``; ``"drop"`` nothing. Blurred pages show the structure without the
        content, which is what pages from one template share.
    text : {"keep", "blur", "drop"}, default="blur"
        How to represent texts.
    comments : {"keep", "blur", "drop"}, default="drop"
        How to represent comments.
    on_bad : callable, default=None
        Called with the error of every file that cannot be read. By default, the error of a file given by name
        is raised, and unreadable files found in a folder are skipped.
    on_skip : callable, default=None
        Called with the path and the reason for every file of a folder that is skipped: ``"ignored"``,
        ``"syntax error"``, ``"unreadable"``, ``"not a plain file"``, ``"name is not UTF-8"``, and
        ``"ignored folder"``. ``treedot.readers.folders.Skipped`` counts them.

    Returns
    -------
    Forest
        The pages.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "page.html"
    >>> _ = page.write_text("<p class=a>One<br>two<p>Three")
    >>> print(read_html(page)[0])
    (html (body (p @class #text br #text) (p #text)))
    >>> print(read_html(page, attributes="keep", text="drop")[0])
    (html (body (p (@class a) br) p))
    """
    markup = {"attributes": attributes, "text": text, "comments": comments}
    return _read(paths, "html", on_bad, on_skip, **markup)


def read_xml(
    paths: Paths,
    *,
    unit: str = "document",
    attributes: str = "blur",
    text: str = "blur",
    comments: str = "drop",
    on_bad: OnError | None = None,
    on_skip: OnSkip | None = None,
) -> Forest:
    """Read XML documents, or their records, into one Forest.

    Nodes and columns are the same as in ``read_html``. Tags and attributes keep their namespace prefixes.
    Entities that a document declares are not expanded, and no external file is read.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders. In a folder, all ``.xml`` files are read.
    unit : {"document", "record"}, default="document"
        What becomes one tree: a document, or each element below its root. The column ``name`` numbers the
        records of a file.
    attributes : {"keep", "blur", "drop"}, default="blur"
        How to represent attributes, as in ``read_html``.
    text : {"keep", "blur", "drop"}, default="blur"
        How to represent texts.
    comments : {"keep", "blur", "drop"}, default="drop"
        How to represent comments.
    on_bad : callable, default=None
        Called with the error of every file that cannot be read, as in ``read_html``.
    on_skip : callable, default=None
        See ``read_html``.

    Returns
    -------
    Forest
        The documents or records.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> feed = pathlib.Path(tempfile.mkdtemp()) / "feed.xml"
    >>> _ = feed.write_text("<feed><entry id='1'>One</entry><entry id='2'><b/></entry></feed>")
    >>> for tree in read_xml(feed, unit="record"):
    ...     print(tree)
    (entry @id #text)
    (entry @id b)
    """
    markup = {"attributes": attributes, "text": text, "comments": comments}
    return _read(paths, "xml", on_bad, on_skip, unit=unit, **markup)


def read_json(
    paths: Paths,
    *,
    unit: str = "document",
    values: str = "blur",
    on_bad: OnError | None = None,
    on_skip: OnSkip | None = None,
) -> Forest:
    """Read JSON values, or their records, into one Forest.

    An object is a node ``object`` with one child ``key:`` per member, in file order, and the value below
    it. An array is a node ``array``. The other values are ``string``, ``number``, ``boolean`` and ``null``.
    Duplicate keys are kept. A file may hold several values, as JSON lines do: each is a document. ``NaN``
    and ``Infinity`` are numbers. The columns are the same as in ``read_html``, with the number of the tree
    in its file as ``name``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders. In a folder, all ``.json``, ``.jsonl`` and ``.ndjson`` files are read.
    unit : {"document", "record"}, default="document"
        What becomes one tree: a top-level value, or each item of a top-level array.
    values : {"keep", "blur", "drop"}, default="blur"
        How to represent strings, numbers and booleans: ``(number 1)``, ``number``, or nothing.
    on_bad : callable, default=None
        Called with every error, as in ``read_html``. Reading resumes at the next line that begins with a
        bracket.
    on_skip : callable, default=None
        See ``read_html``.

    Returns
    -------
    Forest
        The values or records.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.json"
    >>> _ = file.write_text('[{"name": "Ada", "born": 1815}, {"name": "Alan", "born": null}]')
    >>> print(read_json(file)[0])
    (array (object (name: string) (born: number)) (object (name: string) (born: null)))
    >>> print(read_json(file, unit="record", values="keep")[1])
    (object (name: (string Alan)) (born: null))
    """
    return _read(paths, "json", on_bad, on_skip, unit=unit, values=values)


def _read(paths: Paths, kind: str, on_bad: OnError | None, on_skip: OnSkip | None, **options: Any) -> Forest:
    for name, value in options.items():
        checked_choice(name, value, DOCUMENT_UNITS if name == "unit" else POLICIES)
    return read_files(paths, kind, on_bad, on_skip, **options)
