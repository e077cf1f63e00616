"""``read_objects``: objects of parsers and libraries as trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from treedot.errors import ParameterError, SourceError
from treedot.parameters import PARSES, checked_choice
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.objects import read_items
from treedot.readers.on_bad import OnBad
from treedot.readers.sources import items_of
from treedot.trees import Forest


def read_objects(
    objects: Iterable[Any],
    *,
    unit: str | None = None,
    pos: str = "xpos",
    words: str = "lemma",
    attributes: str = "blur",
    text: str = "blur",
    comments: str = "drop",
    identifiers: str = "keep",
    literals: str = "keep",
    on_bad: Callable[[SourceError], object] | None = None,
) -> Forest:
    r"""Read the objects of parsers and other libraries into one Forest.

    ``read_trees``, and everything that takes trees, takes these objects too, with the default settings. An
    object becomes the same tree as its text, read by the reader of its format, unless the object has lost
    a part of the text:

    - parsed sentences, as by ``read_conllu``: ``Doc`` and ``Span`` of spaCy, ``Document`` and ``Sentence`` of
      Stanza, ``DependencyGraph`` of NLTK;
    - constituency trees: ``Tree`` of NLTK and of Stanza, and sentences with ``unit="constituency"``;
    - elements, as by ``read_html`` and ``read_xml``: those of lxml, ElementTree and BeautifulSoup;
    - source code, as by ``read_code``: ``Tree`` and ``Node`` of tree-sitter, and nodes of Python's ``ast``,
      as the source that ``ast.unparse`` writes.

    Each item is one tree. A ``Doc`` or ``Document`` in the list must hold a single sentence; passed by
    itself, not in a list, it means all its sentences.

    Parameters
    ----------
    objects : iterable of objects, Doc or Document
        The objects. Bracket texts, ``Tree`` objects and nested lists may be among them.
    unit : {"grct", "lct", "loct", "cgrct", "clct", "constituency"}, default=None
        The kind of tree of a parsed sentence, as in ``read_conllu``, or its constituency tree, which benepar
        adds to the sentences of spaCy; NLTK's graphs have none. ``"grct"`` by default. Other objects have no
        units.
    pos : {"xpos", "upos"}, default="xpos"
        Which part of speech to use, as in ``read_conllu``: ``"xpos"`` is spaCy's ``tag_`` and NLTK's ``tag``,
        ``"upos"`` is spaCy's ``pos_`` and NLTK's ``ctag``.
    words : {"lemma", "form"}, default="lemma"
        Whether a word's label has its lemma or its form, as in ``read_conllu``.
    attributes, text : {"keep", "blur", "drop"}, default="blur"
        How to represent attributes and texts of elements, as in ``read_html``.
    comments : {"keep", "blur", "drop"}, default="drop"
        How to represent comments of elements.
    identifiers, literals : {"keep", "blur", "drop"}, default="keep"
        How to represent names, and numbers and strings, of source code, as in ``read_code``.
    on_bad : callable, default=None
        Called with the error of every object that is skipped. By default the first such error is raised.

    Returns
    -------
    Forest
        The trees, without columns.

    Raises
    ------
    SourceError
        If an object has no tree. The message names what the pipeline of a parser lacks.

    See Also
    --------
    read_trees : The same with the default settings, for files too.
    read_conllu : Parsed sentences in files.

    Examples
    --------
    >>> from xml.etree import ElementTree
    >>> entry = ElementTree.fromstring("<entry id='1'><b>One</b> two</entry>")
    >>> print(read_objects([entry], attributes="drop", text="keep")[0])
    (entry (b (#text One)) (#text two))
    >>> import ast
    >>> print(read_objects([ast.parse("x + 1")], identifiers="blur", literals="blur")[0])
    (module (expression_statement (binary_operator identifier + integer)))
    """
    if unit is not None:
        checked_choice("unit", unit, PARSES)
    settings = ObjectSettings(unit, pos, words, attributes, text, comments, identifiers, literals)
    items = items_of(objects)
    if (
        isinstance(items, (str, bytes, Mapping))
        or hasattr(items, "columns")
        or not isinstance(items, Iterable)
    ):
        raise ParameterError(
            f"objects must be a list of objects, not {type(objects).__name__}: read_trees reads files; "
            "of a table, pass only the column of trees"
        )
    return read_items(list(items), lambda k: f"tree {k + 1}", OnBad(on_bad), settings)[0]
