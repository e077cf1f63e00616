"""The classes of other libraries whose objects are trees, by the names of package and class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from treedot.errors import ParameterError, SourceError, TreedotError
from treedot.parameters import DEPENDENCY_TREES, PARSES
from treedot.readers.bridges.settings import ObjectSettings

Backwards = tuple[list[str], list[int]]  # the labels and arities of the nodes in reversed post-order


class Bridge(NamedTuple):
    """The module and the function that make a tree of an object, and what else the object offers."""

    module: str  # imported on first use
    function: str
    units: tuple[str, ...] = ()
    sentences: str = ""  # the function that returns the sentences of a document

    def tree(self, thing: Any, settings: ObjectSettings) -> Backwards:
        """Return the tree of an object; raise SourceError if it has none."""
        if settings.unit not in (None, *self.units):
            what = f"has no unit {settings.unit!r}"
            advice = f"use one of {', '.join(self.units)}" if self.units else "remove the unit"
            raise ParameterError(f"an object of {type(thing).__name__} {what}: {advice}")
        return self._call(self.function, thing, settings)

    def parts(self, thing: Any) -> Iterable[Any]:
        """Return the sentences of a document; raise for an object that is one tree."""
        if not self.sentences:
            raise ParameterError(
                f"cannot read trees from {type(thing).__name__}, which is one tree: pass a list, [tree]"
            )
        return self._call(self.sentences, thing)

    def _call(self, function: str, thing: Any, *arguments: Any) -> Any:
        make: Callable[..., Any] = getattr(import_module(f"treedot.readers.bridges.{self.module}"), function)
        try:
            return make(thing, *arguments)
        except (TreedotError, MemoryError):
            raise
        except Exception as error:  # a damaged object may raise anything
            name = type(thing).__name__
            problem = f"{type(error).__name__}: {error}"
            raise SourceError(f"the {name} is damaged, reading it raised {problem:.200}") from error


_SPACY = Bridge("spacy_docs", "read_parse", PARSES, "sentences_of")
_STANZA = Bridge("stanza_sentences", "read_parse", PARSES)
_ELEMENT, _SYNTAX = Bridge("elements", "read_element"), Bridge("syntax", "read_syntax_node")
_BRIDGES = {
    ("spacy", "Doc"): _SPACY,
    ("spacy", "Span"): _SPACY._replace(sentences=""),
    ("stanza", "Document"): _STANZA._replace(sentences="sentences_of"),
    ("stanza", "Sentence"): _STANZA,
    ("stanza", "Tree"): Bridge("stanza_sentences", "read_constituents", ("constituency",)),
    ("nltk", "DependencyGraph"): Bridge("nltk_graphs", "read_graph", DEPENDENCY_TREES),
    ("lxml", "_Element"): _ELEMENT,
    ("lxml", "_ElementTree"): _ELEMENT,
    ("xml", "Element"): _ELEMENT,
    ("xml", "ElementTree"): _ELEMENT,
    ("bs4", "Tag"): Bridge("elements", "read_tag"),
    ("ast", "AST"): Bridge("syntax", "read_ast"),
    ("tree_sitter", "Node"): _SYNTAX,
    ("tree_sitter", "Tree"): _SYNTAX,
}


def bridge_of(thing: Any) -> Bridge | None:
    """Return the bridge for an object; None if no other library is known to have made it."""
    return bridge_of_class(type(thing))  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def bridge_of_class(kind: Any) -> Bridge | None:
    """Return the bridge for the objects of a class, which the name of a base class may give."""
    for base in kind.__mro__:
        found = _BRIDGES.get((str(base.__module__).partition(".")[0], base.__name__))
        if found is not None:
            return found
    return None
