"""Elements of HTML and XML as nodes, by policies for their attributes, texts and comments."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping

from treedot.readers.packer import Packer
from treedot.trees import Forest


class Elements(Packer):
    """Packs the events of a parser, with the method names of lxml's parser targets.

    An element is a node, labelled with its tag. Its attributes come first, as ``@name``, by name, since their
    order has no meaning; texts are ``#text``, comments ``#comment``. Blanks alone are no text. The elements
    ``once`` occur once and do not end: in a page, what follows after ``</body>`` still belongs to it.
    """

    def __init__(
        self,
        file: str,
        language: str,
        named: bool,
        policies: Mapping[str, str],
        once: Collection[str] = (),
    ) -> None:
        super().__init__(file, language, named)
        self._once, self._begun = frozenset(once), set[str]()
        self._attributes, self._text = policies["attributes"], policies["text"]
        self._comments = policies["comments"]
        self._blurred: dict[tuple[str, ...], array[int]] = {}  # the labels of attributes that occur together
        self._pieces: list[str] = []
        self.data: Callable[[str], object] = self._pieces.append  # a text may come in pieces

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begin an element; this is ``begin`` written out, as ``end`` is ``finish``, for speed."""
        if self._pieces:
            self._end_text()
        if tag in self._once:
            if tag in self._begun:
                return
            self._begun.add(tag)
        self._children[-1] += 1
        self._open.append(self._number[tag])
        self._children.append(0)
        if attributes:
            self._add_attributes(attributes)

    def end(self, tag: str) -> None:
        """End an element."""
        if self._pieces:
            self._end_text()
        if tag in self._once:
            return
        self._label.append(self._open.pop())
        self._arity.append(self._children.pop())

    def comment(self, text: str) -> None:
        """Add a comment inside an element."""
        if self._pieces:
            self._end_text()
        if self._open:
            self.add("#comment", text.strip(), self._comments)

    def close(self) -> None:
        """Do nothing: the parser says that it is done."""

    def take(self) -> Forest:
        """Return the finished trees, and forget them."""
        self._blurred.clear()  # labels are numbered anew
        return super().take()

    def _add_attributes(self, attributes: Mapping[str, str]) -> None:
        if self._attributes == "blur":
            names = tuple(attributes)
            labels = self._blurred.get(names)
            if labels is None:
                labels = array("i", [self._number["@" + name] for name in sorted(names)])
                self._blurred[names] = labels
            self._label.extend(labels)
            self._arity.extend(array("i", bytes(labels.itemsize * len(labels))))
            self._children[-1] += len(labels)
        else:
            for name in sorted(attributes):
                self.add("@" + name, attributes[name], self._attributes)

    def _end_text(self) -> None:
        pieces = self._pieces
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        pieces.clear()
        if text.isspace() or not self._open:
            return
        if self._text == "blur":
            self._children[-1] += 1
            self._label.append(self._number["#text"])
            self._arity.append(0)
        else:
            self.add("#text", text.strip(), self._text)
