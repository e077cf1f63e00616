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
    r"""Read pages of HTML, each of which is a tree, into one Forest.

    An element is a node that is labelled with its tag. Its children are its attributes, ``@name``, in the
    order of their names, and then what it contains, texts as ``#text`` and comments as ``#comment``. Text of
    blanks alone is left out. Pages are repaired as libxml2 does it, whatever is wrong with them, and may be
    of any depth. The columns are ``file``, ``start`` and ``end`` (lines), ``name`` (empty) and ``language``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders; of a folder, all files ``.html``, ``.htm`` and ``.xhtml``, also of its folders,
        but for those that ``.gitignore`` and ``.treedotignore`` files name.
    attributes : {"keep", "blur", "drop"}, default="blur"
        What becomes of attributes: a node with the text below it, ``(@lang en)``; the node without the text,
        ``@lang``; or nothing. Blurred pages show how they are built and not what they say, which is what
        pages from one template share.
    text : {"keep", "blur", "drop"}, default="blur"
        What becomes of texts.
    comments : {"keep", "blur", "drop"}, default="drop"
        What becomes of comments.
    on_bad : callable, default=None
        Called with the error of every file that cannot be read. By default the first of a file that is named
        is raised, and a file of a folder is left out.
    on_skip : callable, default=None
        Called with the path and the reason of every file of a folder that is left out: ``"ignored"``,
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
    """Read XML documents, or the records that they list, into one Forest.

    Nodes and columns are those of ``read_html``. Tags and attributes keep their prefixes. Entities that a
    document declares are not put in, and nothing is read from elsewhere.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders; of a folder, all files ``.xml``.
    unit : {"document", "record"}, default="document"
        Whether a tree is a document, or each element below the root of one; then ``name`` is its number.
    attributes : {"keep", "blur", "drop"}, default="blur"
        What becomes of attributes, as in ``read_html``.
    text : {"keep", "blur", "drop"}, default="blur"
        What becomes of texts.
    comments : {"keep", "blur", "drop"}, default="drop"
        What becomes of comments.
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
    """Read JSON values, or the records that they list, into one Forest.

    An object is a node ``object`` with a child ``key:`` for every member, in the order of the file, and
    below that its value; an array is a node ``array``; the other values are ``string``, ``number``,
    ``boolean`` and ``null``. A key that occurs twice is there twice. A file may hold several values, as JSON
    lines do: each is a document. ``NaN`` and ``Infinity`` are numbers. The columns are those of
    ``read_html``, with the number of the tree in its file as ``name``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders; of a folder, all files ``.json``, ``.jsonl`` and ``.ndjson``.
    unit : {"document", "record"}, default="document"
        Whether a tree is a value, or, where that is an array, each of its items.
    values : {"keep", "blur", "drop"}, default="blur"
        What becomes of strings, numbers and booleans: ``(number 1)``, ``number``, or nothing.
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
