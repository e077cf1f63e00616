"""Trees as pictures: SVG inside HTML, with the values of nodes as colours. Large trees are drawn in parts.

There is no script: a part that is folded is a link to a picture of its own below, and a number is shown
where a node is pointed at, or touched.
"""

from __future__ import annotations

import hashlib
import heapq
import html
import unicodedata
from collections.abc import Sequence

from treedot.printable import printable
from treedot.trees.tree import Tree

SHOWN = 60  # nodes of one picture
MAX_DRAWN = 3000  # nodes of all pictures of a tree
MAX_CHILDREN = 200  # of one node that are drawn
MAX_LABEL = 24  # characters of a label that are shown
CHARACTER, PADDING, GAP = 7.3, 6, 8  # pixels
ROW, BOX = 50, 20  # from one level to the next, and the height of a node
DARKEST = 0.5  # of a colour behind text

STYLE = """
.tree svg { display: block; font: 12px ui-monospace, monospace; margin: auto; overflow: visible }
.tree { overflow-x: auto; max-width: 100% }
.tree path { stroke: currentColor; opacity: 0.35; fill: none }
.tree text { fill: currentColor; text-anchor: middle }
.tree rect { fill: transparent; rx: 4px }
.tree .for rect { fill: var(--accent, #3b82b8) } .tree .against rect { fill: var(--bad, #d05a40) }
.tree .folded rect { stroke: currentColor; stroke-dasharray: 3 2; stroke-opacity: 0.6 }
.tree .number { font-size: 10px; visibility: hidden }
.tree g:is(:hover, :focus) > .number { visibility: visible }
.tree g:focus { outline: none } .tree g:focus rect { stroke: currentColor }
"""


def tree_html(tree: Tree, values: Sequence[float] | None = None, largest: float | None = None) -> str:
    """Return a tree drawn as HTML, in several pictures where it is large; ``STYLE`` belongs to it.

    Parameters
    ----------
    tree : Tree
        The tree.
    values : sequence of float, optional
        One for each node, in post-order: positive ones are shown in one colour, negative ones in another.
    largest : float, optional
        The value with the darkest colour; by default the largest of these.

    Examples
    --------
    >>> picture = tree_html(Tree.parse("(NP (DT a) (NN tree))"), [0, 0.5, 0, -1, 2])
    >>> picture.count("<rect"), picture.count('class="for"'), picture.count('class="against"')
    (5, 2, 1)
    """
    return _Drawing(tree, values, largest).html()


class _Drawing:
    """The nodes of a tree by their numbers in post-order, and what is known of each."""

    def __init__(self, tree: Tree, values: Sequence[float] | None, largest: float | None) -> None:
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
        self.interest = self._interest()

    def _interest(self) -> list[float]:
        """Return of every node how much there is to see in its subtree: values, else nodes."""
        found: list[float] = []
        for node, children in enumerate(self.children):
            own = 1.0 if self.values is None else abs(self.values[node])
            found.append(own + sum(found[c] for c in children))
        return found

    def html(self) -> str:
        """Return the picture of the root, and behind it those of what is folded there."""
        parts: list[str] = []
        waiting, drawn = [len(self.label) - 1], 0
        while waiting and drawn < MAX_DRAWN:
            root = waiting.pop(0)
            shown, folded = self._opened(root)
            drawn += len(shown)
            picture = self._svg(root, shown, folded)
            if parts:
                title = f"{html.escape(_shortened(self.label[root]))}, {self.size[root]:,} nodes"
                picture = f'<div id="{self.name}-{root}">{picture}</div>'
                picture = f"<details><summary>{title}</summary>{picture}</details>"
            parts.append(picture)
            waiting += folded
        if waiting:
            left = sum(self.size[node] for node in waiting)
            parts.append(f"<p>{len(waiting):,} more subtrees, of {left:,} nodes, are not drawn.</p>")
        return "\n".join(parts)

    def _opened(self, root: int) -> tuple[dict[int, int], list[int]]:
        """Return which nodes one picture shows, with their levels, and which of these are folded."""
        shown, folded = {root: 0}, []
        waiting = [(-self.interest[root], root)]
        while waiting:
            _, node = heapq.heappop(waiting)
            if node != root and len(shown) + len(self.children[node]) > SHOWN:
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
        title = html.escape(f"tree with the root {_shortened(self.label[root])}", quote=True)
        return f'<div class="tree"><svg {size} role="img" aria-label="{title}">{drawn}</svg></div>'

    def _layout(
        self, root: int, shown: dict[int, int], texts: dict[int, str]
    ) -> tuple[dict[int, float], float]:
        """Return the middle of every node, above that of its children's, and the width of all."""
        below = {node: [c for c in self.children[node] if c in shown] for node in shown}
        family, width = dict[int, float](), dict[int, float]()
        for node in sorted(shown):  # children before their parents
            family[node] = sum(width[c] + GAP for c in below[node]) - GAP
            width[node] = max(CHARACTER * _cells(texts[node]) + 2 * PADDING, family[node])
        left = {root: 0.0}
        for node in sorted(shown, reverse=True):
            at = left[node] + (width[node] - family[node]) / 2
            for child in below[node]:
                left[child] = at
                at += width[child] + GAP
        return {node: left[node] + width[node] / 2 for node in shown}, width[root]

    def _text(self, node: int, folded: bool) -> str:
        text, more = _shortened(self.label[node]), len(self.children[node]) - MAX_CHILDREN
        if folded:
            return f"{text} ▸{self.size[node] - 1}"
        return f"{text} (+{more} children)" if more > 0 else text

    def _box(self, node: int, text: str, x: float, y: float, folded: bool) -> str:
        value = 0.0 if self.values is None else self.values[node]
        label = printable(self.label[node])
        says = label if self.values is None else f"{label}: {value:+.4g}"
        half = (CHARACTER * _cells(text)) / 2 + PADDING
        kind = " ".join(
            name for name, is_so in (("for", value > 0), ("against", value < 0), ("folded", folded)) if is_so
        )
        opacity = f' fill-opacity="{DARKEST * min(1.0, abs(value) / self.largest):.2f}"' if value else ""
        rect = f'<rect x="{x - half:.1f}" y="{y}" width="{2 * half:.1f}" height="{BOX}"{opacity}/>'
        text = f'<text x="{x:.1f}" y="{y + 14}">{html.escape(text)}</text>'
        number = f'<text class="number" x="{x:.1f}" y="{y + BOX + 11}">{value:+.3g}</text>' if value else ""
        focus = ' tabindex="0"' if value else ""
        box = f'<g class="{kind}"{focus}><title>{html.escape(says)}</title>{rect}{text}{number}</g>'
        return f'<a href="#{self.name}-{node}">{box}</a>' if folded else box


def _shortened(text: str) -> str:
    text = printable(text)
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def _cells(text: str) -> int:
    """Return how many characters of usual width a text is as wide as."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
