"""Draw a tree as SVG in HTML, with the values of its nodes as colours; a large tree in several parts.

There is no script. A folded subtree is a link to its own picture below, and the value of a node appears when
it is pointed at or touched. A wide picture shrinks a little to fit; beyond that it scrolls, with a shadow at
the edge where it continues.
"""

from __future__ import annotations

import hashlib
import heapq
import html
import unicodedata
from collections.abc import Sequence

from treedot._pages.printable import printable
from treedot.trees.tree import Tree

SHOWN = 60  # nodes of one picture, not counting small subtrees
NEVER_FOLDED = 6  # nodes of a subtree that is always shown
MAX_DRAWN = 3000  # nodes of all pictures of a tree
MAX_CHILDREN = 200  # most children of a node that are drawn
MAX_LABEL = 24  # characters of a label that are shown
CHARACTER, PADDING, GAP = 7.3, 6, 8  # pixels
ROW, BOX = 50, 20  # from one level to the next, and the height of a node
DARKEST = 0.5  # most opaque colour behind text

STYLE = """
.tree svg { display: block; font: 12px ui-monospace, monospace; margin: auto; overflow: visible }
.tree svg { width: 100%; height: auto; max-width: var(--width); min-width: calc(0.75 * var(--width)) }
.tree { overflow-x: auto; max-width: 100%; --cover: var(--back, Canvas) 0.7rem, transparent; background:
linear-gradient(to right, var(--cover)) left / 3rem 100% no-repeat local,
linear-gradient(to left, var(--cover)) right / 3rem 100% no-repeat local,
linear-gradient(to right, #8886, transparent) left 1px top 1px / 0.6rem calc(100% - 2px) no-repeat,
linear-gradient(to left, #8886, transparent) right 1px top 1px / 0.6rem calc(100% - 2px) no-repeat }
.legend { font-size: 0.85rem; opacity: 0.8; margin: 0.2rem 0; text-align: center }
.legend i { padding: 0 0.6em; margin: 0 0.2em; border-radius: 3px }
.legend .up { background: var(--accent, #3b82b8) } .legend .down { background: var(--bad, #d05a40) }
.tree path { stroke: currentColor; opacity: 0.35; fill: none }
.tree text { fill: currentColor; text-anchor: middle }
.tree rect { fill: transparent; rx: 4px }
.tree .for rect { fill: var(--accent, #3b82b8) } .tree .against rect { fill: var(--bad, #d05a40) }
.tree .folded rect { stroke: currentColor; stroke-dasharray: 3 2; stroke-opacity: 0.6 }
.tree .number { font-size: 10px; visibility: hidden }
.tree g:is(:hover, :focus) > .number { visibility: visible }
.tree g:focus { outline: none } .tree g:focus rect { stroke: currentColor }
"""


def tree_html(
    tree: Tree,
    values: Sequence[float] | None = None,
    largest: float | None = None,
    *,
    scripted: bool = False,
) -> str:
    """Return a tree drawn as HTML, in several pictures if it is large; the page needs ``STYLE``.

    Parameters
    ----------
    tree : Tree
        The tree.
    values : sequence of float, optional
        One value for each node, in post-order. Positive and negative values have different colours; larger
        values have stronger colours.
    largest : float, optional
        The magnitude that has the strongest colour; use the same one for trees to be compared. By default,
        the largest magnitude in ``values``.
    scripted : bool, default=False
        For a page with a script that forbids style attributes: nodes have their numbers in the attribute
        ``data-node``, and the script sets the width of a picture from ``data-width``.

    Examples
    --------
    >>> picture = tree_html(Tree.parse("(NP (DT a) (NN tree))"), [0, 0.5, 0, -1, 2])
    >>> picture.count("<rect"), picture.count('class="for"'), picture.count('class="against"')
    (5, 2, 1)
    """
    return _Drawing(tree, values, largest, scripted).html()


class _Drawing:
    """The nodes of a tree, numbered in post-order, and their properties."""

    def __init__(
        self, tree: Tree, values: Sequence[float] | None, largest: float | None, scripted: bool
    ) -> None:
        self.label: list[str] = []
        self.children: list[list[int]] = []
        self.size: list[int] = []
        waiting: list[int] = []
        for number, node in enumerate(tree.postorder()):
            first = len(waiting) - len(node.children)
            self.label.append(node.label)
            self.children.append(waiting[first:])
            self.size.append(1 + sum(self.size[c] for c in waiting[first:]))
            waiting[first:] = [number]
        self.values = None if values is None else [float(value) for value in values]
        self.largest = largest or max((abs(v) for v in self.values or ()), default=0.0) or 1.0
        self.name = "tree-" + hashlib.blake2b(str(tree).encode(), digest_size=4).hexdigest()
        self.scripted = scripted
        self.interest = self._interest()

    def _interest(self) -> list[float]:
        """Return the weight of every subtree, for choosing the nodes to show: its values, or its nodes."""
        found: list[float] = []
        for node, children in enumerate(self.children):
            own = 1.0 if self.values is None else abs(self.values[node])
            found.append(own + sum(found[c] for c in children))
        return found

    def html(self) -> str:
        """Return the picture of the root, followed by the pictures of folded subtrees."""
        whole, waiting = self._picture(len(self.label) - 1)
        parts: list[str] = []
        drawn = whole.count("<rect")
        while waiting and drawn < MAX_DRAWN:
            root = waiting.pop(0)
            picture, folded = self._picture(root)
            drawn += picture.count("<rect")
            title = f"{html.escape(_shortened(self.label[root]))}, {self.size[root]:,} nodes"
            inside = f'<div id="{self.name}-{root}">{picture}</div>'
            parts.append(f"<details><summary>{title}</summary>{inside}</details>")
            waiting += folded
        whole += self._legend()
        if not parts:
            return whole
        more = f"<p>{len(waiting):,} more are not drawn.</p>" if waiting else ""
        title = f"{len(parts):,} folded subtrees"
        return f"{whole}\n<details><summary>{title}</summary>\n{''.join(parts)}{more}</details>"

    def _legend(self) -> str:
        """Return the legend of the colours that occur."""
        values = self.values or [0.0]
        kinds = (("up", "adds", max(values) > 0), ("down", "takes away", min(values) < 0))
        texts = [f'<i class="{name}"></i> {text}' for name, text, is_there in kinds if is_there]
        if not texts:
            return ""
        return (
            f'<p class="legend">{", ".join(texts)}; stronger colours are larger values.  '
            "Point at a node, or touch it, for its value.</p>"
        )

    def _picture(self, root: int) -> tuple[str, list[int]]:
        """Return the picture of a subtree, and the nodes that are folded in it."""
        shown, folded = self._opened(root)
        return self._svg(root, shown, folded), folded

    def _opened(self, root: int) -> tuple[dict[int, int], list[int]]:
        """Return the nodes that one picture shows, with their levels, and those of them that are folded."""
        shown, folded = {root: 0}, []
        waiting = [(-self.interest[root], root)]
        while waiting:
            _, node = heapq.heappop(waiting)
            small = self.size[node] <= NEVER_FOLDED
            if node != root and not small and len(shown) + len(self.children[node]) > SHOWN:
                folded.append(node)
                continue
            for child in self.children[node][:MAX_CHILDREN]:
                shown[child] = shown[node] + 1
                if self.children[child]:
                    heapq.heappush(waiting, (-self.interest[child], child))
        return shown, sorted(folded)

    def _svg(self, root: int, shown: dict[int, int], folded: list[int]) -> str:
        texts = {node: self._text(node, node in folded) for node in shown}
        centre, width = self._layout(root, shown, texts)
        height = ROW * max(shown.values()) + BOX + 16
        lines, boxes = [], []
        for node, level in shown.items():
            x, y = centre[node], ROW * level
            boxes.append(self._box(node, texts[node], x, y, node in folded))
            lines += [
                f"M{x:.0f} {y + BOX}L{centre[c]:.0f} {y + ROW}" for c in self.children[node] if c in shown
            ]
        drawn = f'<path d="{"".join(lines)}"/>{"".join(boxes)}'
        size = f'width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
        size += f' data-width="{width:.0f}"' if self.scripted else f' style="--width: {width:.0f}px"'
        title = html.escape(f"tree with the root {_shortened(self.label[root])}", quote=True)
        return f'<div class="tree"><svg {size} role="figure" aria-label="{title}">{drawn}</svg></div>'

    def _layout(
        self, root: int, shown: dict[int, int], texts: dict[int, str]
    ) -> tuple[dict[int, float], float]:
        """Return the horizontal centre of every node, and the total width; a parent is above its children.

        Siblings are as close as their subtrees allow. ``outline`` holds the left and right ends of a subtree
        on every level, relative to the centre of its root.
        """
        outline: dict[int, list[tuple[float, float]]] = {}
        offset = {root: 0.0}  # from the parent's centre
        for node in sorted(shown):  # children before their parents
            below: list[tuple[float, float]] = []
            children = [c for c in self.children[node] if c in shown]
            for child in children:
                pairs = zip(below, outline[child], strict=False)
                offset[child] = max((a[1] + GAP - b[0] for a, b in pairs), default=0.0)
                below = _beside(below, outline.pop(child), offset[child])
            middle = (offset[children[0]] + offset[children[-1]]) / 2 if children else 0.0
            for child in children:
                offset[child] -= middle
            half = _half(texts[node])
            outline[node] = [(-half, half), *((a - middle, b - middle) for a, b in below)]
        left, right = min(a for a, _ in outline[root]), max(b for _, b in outline[root])
        centre = {root: -left}
        for node in sorted(shown, reverse=True):
            for child in self.children[node]:
                if child in shown:
                    centre[child] = centre[node] + offset[child]
        return centre, right - left

    def _text(self, node: int, folded: bool) -> str:
        text, more = _shortened(self.label[node]), len(self.children[node]) - MAX_CHILDREN
        if folded:
            return f"{text} ▸{self.size[node] - 1}"
        return f"{text} (+{more} children)" if more > 0 else text

    def _box(self, node: int, text: str, x: float, y: float, folded: bool) -> str:
        value = 0.0 if self.values is None else self.values[node]
        label = printable(self.label[node])
        says = label if self.values is None else f"{label}: {value:+.4g}"
        half = _half(text)
        kind = " ".join(
            name for name, is_so in (("for", value > 0), ("against", value < 0), ("folded", folded)) if is_so
        )
        opacity = f' fill-opacity="{DARKEST * min(1.0, abs(value) / self.largest):.2f}"' if value else ""
        rect = f'<rect x="{x - half:.1f}" y="{y}" width="{2 * half:.1f}" height="{BOX}"{opacity}/>'
        text = f'<text x="{x:.1f}" y="{y + 14}">{html.escape(text)}</text>'
        number = f'<text class="number" x="{x:.1f}" y="{y + BOX + 11}">{value:+.3g}</text>' if value else ""
        focus = ' tabindex="0"' if value else ""
        focus += f' data-node="{node}"' if self.scripted else ""
        box = f'<g class="{kind}"{focus}><title>{html.escape(says)}</title>{rect}{text}{number}</g>'
        return f'<a href="#{self.name}-{node}">{box}</a>' if folded else box


def _shortened(text: str) -> str:
    text = printable(text)
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def _half(text: str) -> float:
    """Return half the width of a node; some characters are twice as wide as others."""
    cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return CHARACTER * cells / 2 + PADDING


def _beside(
    a: list[tuple[float, float]], b: list[tuple[float, float]], shift: float
) -> list[tuple[float, float]]:
    """Return the outline of two adjacent outlines, the second one shifted to the right."""
    moved = [(left + shift, right + shift) for left, right in b]
    both = [(x[0], y[1]) for x, y in zip(a, moved, strict=False)]
    return both + (a if len(a) > len(b) else moved)[len(both) :]
