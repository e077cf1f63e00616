"""Convert the elements, attributes, texts and comments of HTML and XML to nodes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from treedot.readers.packer import END, Packer


class Policies(NamedTuple):
    """The policy for each kind of text: "keep", "blur" or "drop"."""

    attributes: str
    text: str
    comments: str


class Elements(Packer):
    """Packs the events of a parser; the methods are those of lxml's parser targets.

    An element is a node, labelled with its tag. Its attributes come first, as ``@name``, sorted by name,
    since their order has no meaning. Texts are ``#text``, comments ``#comment``; blank texts are ignored. The
    elements in ``once`` occur once and stay open: text after ``</body>`` still belongs to the body.
    """

    def __init__(
        self, file: str, language: str, named: bool, policies: Policies, once: Collection[str] = ()
    ) -> None:
        super().__init__(file, language, named)
        self._once, self._begun = frozenset(once), set[str]()
        self._attributes, self._comments = policies.attributes, policies.comments
        self._known: dict[str, int] = {}  # packed start tags
        self._together: dict[tuple[str, ...], array[int]] = {}  # packed combinations of attributes
        self._pieces: list[str] = []  # pieces of the current text, unless it is blank
        self.data, self._end_text = self._text_handlers(policies.text)
        self.start, self.end = self._element_handlers()

    @property
    def has_begun(self) -> bool:
        """Whether one of the elements in ``once`` has started."""
        return bool(self._begun)

    def comment(self, text: str) -> None:
        """Add a comment."""
        if self._pieces:
            self._end_text()
        self.add("#comment", text.strip(), self._comments)

    def close(self) -> None:
        """Do nothing; the parser calls this at its end."""

    def forget_unfinished(self) -> None:
        """Drop the nodes since the last complete tree."""
        self._pieces.clear()
        super().forget_unfinished()

    def _forget(self, n_events: int, texts: tuple[str, ...]) -> None:
        self._known.clear()
        self._together.clear()
        super()._forget(n_events, texts)

    def _element_handlers(self) -> tuple[Callable[[str, Mapping[str, str]], None], Callable[[str], None]]:
        """Return the functions for the start and end of an element, kept short for speed."""
        pieces, end_text, once = self._pieces, self._end_text, self._once
        known, together = self._known.get, self._together.get
        add, extend = self._events.append, self._events.extend

        def start(tag: str, attributes: Mapping[str, str]) -> None:
            if pieces:
                end_text()
            event = known(tag)
            if event is not None:
                add(event)
            elif not self._begins(tag):
                return
            if attributes:
                events = together(tuple(attributes))
                if events is not None:
                    extend(events)
                else:
                    self._add_attributes(attributes)

        def end(tag: str) -> None:
            if pieces:
                end_text()
            if tag not in once:
                add(END)

        return start, end

    def _begins(self, tag: str) -> bool:
        """Begin an element with a new tag, unless it may occur only once and has occurred."""
        if tag not in self._once:
            self._known[tag] = 2 * self._number[tag]
        elif tag in self._begun:
            return False
        elif not self._begun:
            self.forget_unfinished()  # comments before the page
        self._begun.update(self._once & {tag})
        self.begin(tag)
        return True

    def _add_attributes(self, attributes: Mapping[str, str]) -> None:
        before = len(self._events)
        for name in sorted(attributes):
            self.add("@" + name, attributes[name], self._attributes)
        if self._attributes != "keep":
            self._together[tuple(attributes)] = self._events[before:]

    def _text_handlers(self, policy: str) -> tuple[Callable[[str], object], Callable[[], object]]:
        """Return the function for a piece of text, and the one for the end of a text."""
        pieces, number, add = self._pieces, self._number, self._events.append

        def blur(text: str) -> None:
            if not (pieces or text.isspace()):
                add(2 * number["#text"] + 1)
                pieces.append(text)

        def end_kept() -> None:
            text = "".join(pieces)
            pieces.clear()
            if not text.isspace():
                self.add("#text", text.strip(), "keep")

        if policy == "keep":
            return pieces.append, end_kept
        return blur if policy == "blur" else _ignore, pieces.clear


def _ignore(text: str) -> None:
    pass
