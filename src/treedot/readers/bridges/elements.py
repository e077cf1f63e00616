"""The trees of elements: lxml, ElementTree and BeautifulSoup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from treedot.errors import SourceError
from treedot.readers.bridges.registry import Backwards
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.bridges.trees import of_forest
from treedot.readers.documents.elements import Elements, Policies
from treedot.readers.finite import CHECK_AFTER, check_finite

_XML = "{http://www.w3.org/XML/1998/namespace}"


class Piece(NamedTuple):
    """A part of an element: ``data`` or a ``comment`` with its text, or an ``element``."""

    kind: str
    value: Any


class Library(NamedTuple):
    """How a library names the parts of an element."""

    name: Callable[[Any], str]
    attributes: Callable[[Any], dict[str, str]]
    pieces: Callable[[Any], Iterator[Piece]]

    def children(self, element: Any) -> list[Any]:
        """Return the elements in an element."""
        return [piece.value for piece in self.pieces(element) if piece.kind == "element"]


def read_element(thing: Any, settings: ObjectSettings) -> Backwards:
    """Return the tree of an element of lxml or ElementTree, or of the root of a document."""
    root = thing.getroot() if hasattr(type(thing), "getroot") else thing
    if root is None or callable(root.tag):
        raise SourceError(f"the {type(thing).__name__} is not an element and has no root: pass an element")
    return _tree(root, LXML, settings)


def read_tag(thing: Any, settings: ObjectSettings) -> Backwards:
    """Return the tree of a Tag, or of the only element in a BeautifulSoup."""
    if thing.name != "[document]":
        return _tree(thing, SOUP, settings)
    pieces = [piece for piece in _soup_pieces(thing) if piece.kind != "comment"]
    roots = [piece.value for piece in pieces if piece.kind == "element"]
    if len(roots) != 1 or any(piece.kind == "data" and not piece.value.isspace() for piece in pieces):
        raise SourceError(
            f"the BeautifulSoup has {len(roots)} elements at its top, or text beside them; a page must "
            "have one element: parse it with BeautifulSoup(text, 'lxml'), or pass one of its elements"
        )
    return _tree(roots[0], SOUP, settings)


def _tree(root: Any, library: Library, settings: ObjectSettings) -> Backwards:
    elements = Elements("", "", False, Policies(settings.attributes, settings.text, settings.comments))
    elements.start(library.name(root), library.attributes(root))
    open_elements: list[tuple[Any, Iterator[Piece]]] = [(root, iter(library.pieces(root)))]
    count = 0
    while open_elements:
        element, pieces = open_elements[-1]
        for kind, value in pieces:
            if kind == "element":
                elements.start(library.name(value), library.attributes(value))
                open_elements.append((value, iter(library.pieces(value))))
                count += 1
                break
            (elements.data if kind == "data" else elements.comment)(value)
        else:
            elements.end(library.name(element))
            open_elements.pop()
        if count == CHECK_AFTER:
            check_finite(root, library.children)
            count += 1
    elements.finish_tree(1, 1)
    return of_forest(elements.take())


def _qualified(name: str, element: Any) -> str:
    """Return a name with the prefix of its namespace, where the library knows it."""
    if not name.startswith("{"):
        return name
    space, _, local = name[1:].partition("}")
    if name.startswith(_XML):
        return f"xml:{local}"
    known = getattr(element, "nsmap", {}).items()
    prefix = next((prefix for prefix, uri in known if uri == space and prefix), None)
    return f"{prefix}:{local}" if prefix else name


def _lxml_name(element: Any) -> str:
    tag: str = element.tag
    if not (tag.startswith("{") and hasattr(element, "prefix")):
        return tag
    local = tag.partition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix else local


def _lxml_attributes(element: Any) -> dict[str, str]:
    found = {_qualified(name, element): value for name, value in element.attrib.items()}
    return found | _declared(element)


def _declared(element: Any) -> dict[str, str]:
    """Return the namespaces that an element of lxml declares, as attributes."""
    spaces = getattr(element, "nsmap", None)
    if not spaces:
        return {}
    above = element.getparent()
    around = {} if above is None else above.nsmap
    new = {prefix: uri for prefix, uri in spaces.items() if around.get(prefix) != uri}
    return {f"xmlns:{prefix}" if prefix else "xmlns": uri for prefix, uri in new.items()}


def _lxml_pieces(element: Any) -> Iterator[Piece]:
    if element.text:
        yield Piece("data", element.text)
    for child in element:
        if not callable(child.tag):
            yield Piece("element", child)
        elif child.tag.__name__ == "Comment":
            yield Piece("comment", child.text or "")
        elif child.tag.__name__ == "Entity":
            yield Piece("data", child.text)
        if child.tail:
            yield Piece("data", child.tail)


def _soup_attributes(tag: Any) -> dict[str, str]:
    return {
        str(name): " ".join(value) if isinstance(value, list) else str(value)
        for name, value in tag.attrs.items()
    }


def _soup_pieces(tag: Any) -> Iterator[Piece]:
    for child in tag.contents:
        kinds = {kind.__name__ for kind in type(child).__mro__}
        if "Tag" in kinds:
            yield Piece("element", child)
        elif "Comment" in kinds:
            yield Piece("comment", str(child))
        elif "PreformattedString" not in kinds or "CData" in kinds:  # not a declaration or an instruction
            yield Piece("data", str(child))


def _soup_name(tag: Any) -> str:
    name = str(tag.name)
    return f"{tag.prefix}:{name}" if tag.prefix and ":" not in name else name


LXML = Library(_lxml_name, _lxml_attributes, _lxml_pieces)
SOUP = Library(_soup_name, _soup_attributes, _soup_pieces)
