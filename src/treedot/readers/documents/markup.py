"""Read HTML with lxml and XML with expat: a tree for each document, or for each element below the root."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from treedot.errors import SourceError, TreeSyntaxError, missing
from treedot.readers.documents.elements import Elements, Policies
from treedot.readers.packer import MAX_TEXT
from treedot.readers.recognition import refuse_other_files
from treedot.readers.stream import TreeStream
from treedot.trees import Forest

MAX_BYTES = 1 << 28  # largest page
MAX_STEPS = 1 << 31  # steps between open elements, when closing tags are matched
PAGE_CHUNK = 1 << 12  # bytes: small, since limits are checked before each piece is parsed
XML_CHUNK = 1 << 20  # bytes: large, since expat rescans an incomplete tag

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.IGNORECASE)


def read_page(
    stream: TreeStream, attributes: str = "blur", text: str = "blur", comments: str = "drop"
) -> Iterator[Forest]:
    """Yield the single tree of a page, repaired by libxml2.

    The parser is event-based, so only memory limits the depth.
    """
    try:
        from lxml import etree
    except ModuleNotFoundError:
        raise missing("lxml", "html", "reading HTML") from None
    raw, name = stream.read(MAX_BYTES + 1), stream.name
    policies = Policies(attributes, text, comments)
    elements = Elements(name, "html", named=False, policies=policies, once=("html", "body"))
    parser = etree.HTMLParser(target=elements, encoding="utf-8", huge_tree=True)
    try:
        _check_kind(raw, name)
        if len(raw) > MAX_BYTES:
            raise SourceError(f"{name}: the page is larger than {MAX_BYTES >> 20} MiB, the limit")
        _feed_page(parser, _in_utf8(raw), elements, name)
        if not elements.has_begun:
            raise SourceError(f"{name}: this is not HTML: no element found")
    except etree.LxmlError as error:
        stream.on_bad(SourceError(f"{name}: this is not HTML: {error}"))
    except SourceError as error:
        stream.on_bad(error)
    else:
        for _ in range(elements.depth):
            elements.finish()
        elements.finish_tree(1, _lines(raw))
        yield elements.take()


def _check_kind(head: bytes, name: str) -> None:
    if not head.startswith((b"<", *_MARKS)):
        refuse_other_files(head, name)


def _feed_page(parser: Any, page: bytes, elements: Elements, name: str) -> None:
    """Parse a page; limits are checked before any step that could take more than linear time."""
    steps = 0
    for start in range(0, len(page), PAGE_CHUNK):
        chunk = page[start : start + PAGE_CHUNK]
        steps += chunk.count(b"</") * (elements.depth + chunk.count(b"<"))
        if steps > MAX_STEPS:
            line = page.count(b"\n", 0, start) + 1
            raise SourceError(
                f"{name}:{line}: {elements.depth:,} elements are open here, too many for "
                "the number of closing tags"
            )
        parser.feed(chunk)
    parser.close()


def _in_utf8(raw: bytes) -> bytes:
    """Return a page in UTF-8; the encoding is given by a byte order mark, valid UTF-8, or a declaration."""
    marked = next((_MARKS[mark] for mark in _MARKS if raw.startswith(mark)), None)
    try:
        text = raw.decode(marked, errors="replace") if marked else raw.decode()
        if not marked and b"\0" not in raw:
            return raw
    except UnicodeDecodeError:
        declared = _CHARSET.search(raw[:1024])
        try:
            text = raw.decode(declared[1].decode() if declared else "cp1252", errors="replace")
        except (LookupError, ValueError):  # not a text encoding
            text = raw.decode("cp1252", errors="replace")
    return text.removeprefix("\ufeff").replace("\0", "\ufffd").encode(errors="replace")


def read_elements(
    stream: TreeStream,
    unit: str = "document",
    attributes: str = "blur",
    text: str = "blur",
    comments: str = "drop",
) -> Iterator[Forest]:
    """Yield the tree of a document, or one for every element below its root (``unit="record"``).

    Entities declared by a document are kept as written, and no other file is read. Records before an error
    are read.
    """
    name, on_bad = stream.name, stream.on_bad
    document = _Document(name, unit == "record", Policies(attributes, text, comments))
    chunk = stream.read(XML_CHUNK)
    fed = 0
    try:
        _check_kind(chunk, name)
        while chunk:
            document.parser.Parse(chunk, False)
            fed += len(chunk)
            if fed - document.parser.CurrentByteIndex > MAX_TEXT + XML_CHUNK:
                line = document.parser.CurrentLineNumber
                raise SourceError(f"{name}:{line}: a tag or comment of more than {MAX_TEXT >> 20} MiB")
            if len(document) >= stream.batch_size:
                yield document.take()
            chunk = stream.read(XML_CHUNK)
        document.parser.Parse(b"", True)
    except expat.ExpatError as error:
        place = f"{name}:{error.lineno}:{error.offset + 1}"
        on_bad(TreeSyntaxError(f"{place}: this is not XML: {expat.errors.messages[error.code]}"))
    except (LookupError, ValueError) as error:  # unknown encoding
        on_bad(error if isinstance(error, SourceError) else SourceError(f"cannot read {name}: {error}"))
    if len(document):
        yield document.take()


class _Document(Elements):
    """The elements of an XML document, from the events of expat."""

    def __init__(self, file: str, records: bool, policies: Policies) -> None:
        super().__init__(file, "xml", named=records, policies=policies)
        self._roots = int(records)  # levels of elements above the trees
        self._level = 0
        self._first_line = 0
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._started
        parser.EndElementHandler = self._ended
        parser.CharacterDataHandler = self.data
        parser.CommentHandler = self.comment
        parser.DefaultHandler = self._other  # with this handler, expat does not expand entities

    def _started(self, tag: str, attributes: dict[str, str]) -> None:
        if self._level == self._roots:
            self._first_line = self.parser.CurrentLineNumber
            self.forget_unfinished()  # text between the trees
        if self._level >= self._roots:
            self.start(tag, attributes)
        self._level += 1

    def _ended(self, tag: str) -> None:
        self._level -= 1
        if self._level >= self._roots:
            self.end(tag)
        if self._level == self._roots:
            self.finish_tree(self._first_line, self.parser.CurrentLineNumber)

    def _other(self, text: str) -> None:
        if text.startswith("&"):
            self.data(text)


def _lines(raw: bytes) -> int:
    return max(1, raw.count(b"\n") + (not raw.endswith(b"\n")))
