"""``Tree``: one tree, immutable, comparable and printable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from treedot.errors import TreeSyntaxError
from treedot.trees.brackets import TOKEN, check_text, escape, unescape

MAX_REPR = 400  # characters of brackets


class Tree:
    """A rooted, ordered tree with a text label on every node.

    Parameters
    ----------
    label : str
        Any text that UTF-8 can encode, so no lone surrogates. It may be empty.
    children : iterable of Tree or str, default=()
        The subtrees from left to right; a plain string is a leaf. A node without children is a leaf.

    Examples
    --------
    >>> tree = Tree("NP", [Tree("DT", ["the"]), Tree("NN", ["tree"])])
    >>> print(tree)
    (NP (DT the) (NN tree))
    >>> tree == Tree.parse("(NP (DT the) (NN tree))")
    True
    >>> tree.size, tree.depth
    (5, 3)
    """

    __slots__ = ("_forest", "_hash", "children", "label")

    label: str
    children: tuple[Tree, ...]
    _hash: int
    _forest: Any  # the packed tree, set on first use

    def __init__(self, label: str, children: Iterable[Tree | str] = ()) -> None:
        if not isinstance(label, str):
            raise TypeError(f"label must be a str, not {type(label).__name__}: {label!r}")
        if not label.isascii():
            check_text(label)
        if isinstance(children, (str, Tree)):
            raise TypeError("children must be a sequence of trees; for one child write [child]")
        family = tuple(child if isinstance(child, Tree) else Tree(child) for child in children)
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "children", family)
        object.__setattr__(self, "_hash", hash((label, tuple(child._hash for child in family))))

    @classmethod
    def parse(cls, text: str) -> Tree:
        """Read one tree from bracket text.

        Parameters
        ----------
        text : str
            The text, such as ``"(A (B b) c)"``.

        Returns
        -------
        Tree
            The tree.

        Raises
        ------
        TreeSyntaxError
            If the text is not exactly one tree.

        Examples
        --------
        >>> Tree.parse("(A (B b) c)").children
        (Tree.parse('(B b)'), Tree.parse('(c)'))
        """
        if "(" not in text and ")" not in text:
            tokens = TOKEN.findall(text)
            if len(tokens) == 1:
                return cls(unescape(tokens[0]))
        root: Tree | None = None
        open_nodes: list[list[Any]] = []  # [label or None, children]
        for match in TOKEN.finditer(text):
            token, position = match[0], match.start() + 1
            if root is not None:
                raise TreeSyntaxError(f"text after the end of the tree at character {position}: {token!r}")
            if token == "(":
                if open_nodes and open_nodes[-1][0] is None:
                    open_nodes[-1][0] = ""
                open_nodes.append([None, []])
            elif not open_nodes:
                raise TreeSyntaxError(f"expected '(' at character {position}, found {token!r}")
            elif token == ")":
                label, children = open_nodes.pop()
                tree = cls(label or "", children)
                if open_nodes:
                    open_nodes[-1][1].append(tree)
                else:
                    root = tree
            elif open_nodes[-1][0] is None:
                open_nodes[-1][0] = unescape(token)
            else:
                open_nodes[-1][1].append(cls(unescape(token)))
        if open_nodes:
            raise TreeSyntaxError(f"{len(open_nodes)} bracket(s) are never closed in {_shorten(text)!r}")
        if root is None:
            raise TreeSyntaxError("no tree found: the text is empty")
        return root

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no children (the paper's *terminal*)."""
        return not self.children

    @property
    def size(self) -> int:
        """The number of nodes."""
        return sum(1 for _ in self.postorder())

    @property
    def depth(self) -> int:
        """The number of nodes on the longest path from the root to a leaf."""
        deepest = 0
        stack = [(self, 1)]
        while stack:
            node, level = stack.pop()
            deepest = max(deepest, level)
            stack.extend((child, level + 1) for child in node.children)
        return deepest

    def postorder(self) -> Iterator[Tree]:
        """Yield every node, children from left to right before their parent.

        Yields
        ------
        Tree
            A node.
        """
        stack = [(self, iter(self.children))]
        while stack:
            node, rest = stack[-1]
            child = next(rest, None)
            if child is None:
                stack.pop()
                yield node
            else:
                stack.append((child, iter(child.children)))

    def pretty(self, width: int = 80) -> str:
        """Return bracket text over several lines.

        Parameters
        ----------
        width : int, default=80
            A subtree that fits into this many columns stays on one line.

        Returns
        -------
        str
            The text.

        Examples
        --------
        >>> print(Tree.parse("(S (NP (DT the) (NN tree)) (VP (VBZ grows)))").pretty(width=30))
        (S
          (NP (DT the) (NN tree))
          (VP (VBZ grows)))
        """
        flat: dict[int, int] = {}
        for node in self.postorder():
            own = len(escape(node.label)) + (0 if node.is_leaf else 2 + len(node.children))
            flat[id(node)] = own + sum(flat[id(child)] for child in node.children)
        lines: list[str] = []
        stack = [(self, False, 0, 0)]  # node, as a bare token?, indent, brackets to close after it
        while stack:
            node, bare, indent, closing = stack.pop()
            if node.is_leaf or indent + flat[id(node)] + closing <= width:
                text = escape(node.label) if bare else str(node)
                lines.append(" " * indent + text + ")" * closing)
            else:
                lines.append(" " * indent + "(" + escape(node.label))
                last = len(node.children) - 1
                stack.extend(
                    (node.children[k], node._writes_bare(k), indent + 2, closing + 1 if k == last else 0)
                    for k in range(last, -1, -1)
                )
        return "\n".join(lines)

    def _writes_bare(self, k: int) -> bool:
        """Return whether child ``k`` can be written as a token that is not mistaken for this node's label."""
        child = self.children[k]
        return child.is_leaf and child.label != "" and (k > 0 or self.label != "")

    def __str__(self) -> str:
        parts: list[str] = []
        stack: list[Tree | str] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                parts.append(item)
                continue
            parts.append("(" + escape(item.label))
            stack.append(")")
            for k in range(len(item.children) - 1, -1, -1):
                child = item.children[k]
                stack.append(escape(child.label) if item._writes_bare(k) else child)
                stack.append(" ")
        return "".join(parts)

    def __repr__(self) -> str:
        """Return an expression that makes the tree; a large tree is abbreviated."""
        text = str(self)
        if len(text) > MAX_REPR:
            return f"<Tree of {self.size} nodes: {_shorten(text, 80)}>"
        return f"Tree.parse({text!r})"

    def _repr_html_(self) -> str:
        from treedot.trees.drawing import STYLE, tree_html

        return f"<style>{STYLE}</style>{tree_html(self)}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        stack = [(self, other)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            if a._hash != b._hash or a.label != b.label or len(a.children) != len(b.children):
                return False
            stack.extend(zip(a.children, b.children, strict=True))
        return True

    def __hash__(self) -> int:
        return self._hash

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Tree is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Tree is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Tree.parse, (str(self),)

    def __copy__(self) -> Tree:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tree:
        return self


def _shorten(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
