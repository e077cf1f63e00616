"""Read Newick, ``(child,child)label:length;``, the format of phylogenetic trees."""

from __future__ import annotations

import re
from collections.abc import Iterator

from treedot.errors import SourceError, TreeSyntaxError
from treedot.readers.packer import MAX_TEXT, PostOrder, pack_post_order
from treedot.readers.recognition import refuse_other_files
from treedot.readers.stream import TreeStream
from treedot.readers.text_window import TextWindow
from treedot.trees import Forest

# Marks; quoted labels; comments; unquoted labels and lengths; and what may begin one of these.
_TOKEN = re.compile(r"([(),:;])|('(?:[^']++|'')*+')|(\[[^\]]*\])|([^\s()\[\]',:;]+)|(\S)")
_MARK, _QUOTED, _COMMENT, _PLAIN, _OTHER = range(1, 6)
_END = re.compile(";")
_LENGTH = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def read_newick_trees(stream: TreeStream, lengths: str = "drop") -> Iterator[Forest]:
    """Yield the trees of a stream; after a bad one, reading resumes after the next semicolon."""
    return pack_post_order(stream, _trees(stream, lengths == "keep"))


def _trees(stream: TreeStream, keeps_lengths: bool) -> Iterator[PostOrder]:
    window = _Window(stream)
    while not window.at_end:
        tree = _Tree(window, keeps_lengths)
        try:
            for token in window.tokens():
                if tree.add(token):
                    yield PostOrder(tree.labels, tree.arity, tree.first_line, window.last_line)
                    tree = _Tree(window, keeps_lengths)
            tree.check_end()
        except TreeSyntaxError as error:
            stream.on_bad(error)
            window.skip_tree()


class _Window(TextWindow):
    """The tokens of a text, and the line of the last one."""

    last_line = 1

    def encoding(self, head: bytes) -> tuple[str, str]:
        refuse_other_files(head, self.stream.name)
        return "utf-8-sig", "surrogateescape"

    def too_long(self) -> SourceError:
        return self.error(f"a label or a comment of more than {MAX_TEXT:,} characters")

    @property
    def at_end(self) -> bool:
        """Whether everything has been read."""
        return self.ended and self.at >= len(self.text)

    def error(self, problem: str) -> TreeSyntaxError:
        """Return an error with the line of the last token."""
        return TreeSyntaxError(f"{self.stream.name}:{self.last_line}: {problem}")

    def tokens(self) -> Iterator[re.Match[str]]:
        """Yield the remaining tokens, without comments; one that may continue waits for more text."""
        while True:
            for token in _TOKEN.finditer(self.text, self.at):
                unfinished = token.end() == len(self.text) or token[0] in "'["
                if unfinished and not self.ended and token.lastindex != _MARK:
                    break
                self.last_line, self.at = self.line(token.start()), token.end()
                if token.lastindex == _OTHER:
                    raise self.error(
                        "a ] without its [" if token[0] == "]" else f"a {token[0]} that is not closed"
                    )
                if token.lastindex != _COMMENT:
                    if not token[0].isascii():
                        self._check_text(token[0])
                    yield token
            if self.ended:
                self.at = len(self.text)
                return
            self.grow()

    def _check_text(self, text: str) -> None:
        """Raise if a token is not UTF-8."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            byte = ord(text[error.start]) - 0xDC00  # encoded by surrogateescape
            raise self.error(f"the byte {byte:#x} is not UTF-8") from None

    def skip_tree(self) -> None:
        """Skip to the end of the tree, after the next semicolon."""
        if self.text[self.at - 1 : self.at] != ";":
            self.skip(_END)


class _Tree:
    """A tree in post-order, the order of Newick itself, built token by token."""

    def __init__(self, window: _Window, keeps_lengths: bool) -> None:
        self._window, self._keeps_lengths = window, keeps_lengths
        self.labels: list[str] = []
        self.arity: list[int] = []
        self.first_line = 0
        self._counts: list[int] = []  # children so far of the open nodes
        self._begin_node()

    def _begin_node(self, children: int = 0) -> None:
        self._children = children  # those of the node that may get its label and length next
        self._label: str | None = None
        self._length: str | None = None
        self._wants_length = False

    def add(self, token: re.Match[str]) -> bool:
        """Add a token; return whether it ends the tree."""
        text = token[0]
        self.first_line = self.first_line or self._window.last_line
        if token.lastindex in (_PLAIN, _QUOTED):
            self._take_text(text, token.lastindex == _QUOTED)
        elif self._wants_length:
            raise self._window.error(f"expected the length of a branch after ':', found {text!r}")
        elif text == ":":
            if self._length is not None:
                raise self._window.error("a second ':' at the same node")
            self._wants_length = True
        elif text == "(":
            if self._children or self._label is not None or self._length is not None:
                raise self._window.error("expected ',', ')' or ';', found '('")
            self._counts.append(0)
        else:
            return self._end_node(text)
        return False

    def _take_text(self, text: str, quoted: bool) -> None:
        if self._wants_length:
            if quoted or not _LENGTH.fullmatch(text):
                raise self._window.error(f"expected the length of a branch after ':', found {text!r:.40}")
            self._length, self._wants_length = text, False
        elif self._label is not None or self._length is not None:
            raise self._window.error(f"expected ',', ')' or ';', found {text!r:.40}")
        else:
            self._label = text[1:-1].replace("''", "'") if quoted else text

    def _end_node(self, mark: str) -> bool:
        if mark != ";" and not self._counts:
            raise self._window.error(f"a {mark!r} outside of brackets")
        if mark == ";" and self._counts:
            raise self._window.error(f"{len(self._counts)} bracket(s) not closed before ';'")
        if mark == ";" and not self.labels and self._label is None:
            raise self._window.error("no tree before ';'")
        label = self._label or ""
        length = f":{self._length}" if self._keeps_lengths and self._length is not None else ""
        self.labels.append(label + length)
        self.arity.append(self._children)
        if mark == ";":
            return True
        self._counts[-1] += 1
        self._begin_node(self._counts.pop() if mark == ")" else 0)
        return False

    def check_end(self) -> None:
        """Raise if the text ends inside a tree."""
        if self.first_line:
            raise self._window.error("the last tree does not end with ';'")
