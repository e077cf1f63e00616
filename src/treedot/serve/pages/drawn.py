"""Two trees drawn side by side, with what they share, and boxes of fragments."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from treedot._pages.printable import printable
from treedot.models.explain.pair import PairExplanation, SharedFragment
from treedot.serve.comparing import Edits
from treedot.trees import Tree
from treedot.trees.drawing import tree_html

LEGEND = (
    '<p class="legend"><i class="up"></i> in shared fragments, stronger in more of them; '
    '<i class="alone"></i> deleted or inserted, <i class="renamed"></i> relabelled, by the fewest edits. '
    "Point at a node for its partner in the other tree.</p>"
)


def drawn_pair(shared: PairExplanation, edits: Edits | None, titles: tuple[str, str]) -> str:
    """Return two trees side by side, in one scale of colours."""
    largest = max(float(abs(values).max()) for values in (shared.values_a, shared.values_b))
    sides = (
        ("a", titles[0], shared.a, shared.values_a.tolist()),
        ("b", titles[1], shared.b, shared.values_b.tolist()),
    )
    drawn = "".join(
        f'<section data-tree="{name}"{_marks(edits, side)}><h3>{html.escape(printable(title))}</h3>'
        f"{_drawn(tree, values, largest)}</section>"
        for side, (name, title, tree, values) in enumerate(sides)
    )
    return f'<div class="beside">{drawn}</div>{LEGEND if edits else ""}'


def _drawn(tree: Tree, values: list[float], largest: float) -> str:
    return tree_html(tree, values, largest, scripted=True)


def _marks(edits: Edits | None, side: int) -> str:
    """Return attributes that say which node is the partner of which, and which ones differ."""
    if edits is None:
        return ""
    partners = ",".join(f"{pair[side]}:{pair[1 - side]}" for pair in edits.pairs)
    alone = _numbers((edits.deleted, edits.inserted)[side])
    renamed = _numbers(pair[side] for pair in edits.relabelled)
    return f' data-partners="{partners}" data-alone="{alone}" data-renamed="{renamed}"'


def shared_boxes(fragments: Sequence[SharedFragment]) -> str:
    """Return shared fragments in boxes; pointing at one marks its occurrences in both trees."""
    return _boxes(
        (
            f"{one.value:.4f} <small>{len(one.nodes_a)} × {len(one.nodes_b)}</small>",
            one.fragment,
            {"a": one.nodes_a, "b": one.nodes_b},
        )
        for one in fragments
    )


def fragment_boxes(captioned: Iterable[tuple[str, Tree, list[list[int]]]]) -> str:
    """Return fragments of one tree in boxes, each with a caption in HTML and its occurrences."""
    return _boxes((caption, fragment, {"a": nodes}) for caption, fragment, nodes in captioned)


def _boxes(items: Iterable[tuple[str, Tree, dict[str, list[list[int]]]]]) -> str:
    boxes = (
        f'<div class="box" tabindex="0" role="group" aria-label="{html.escape(str(fragment), quote=True)}"'
        f"{_occurrences(nodes)}><b>{caption}</b>{tree_html(fragment, scripted=True)}</div>"
        for caption, fragment, nodes in items
    )
    return f'<div class="fragments">{"".join(boxes)}</div>'


def _occurrences(nodes: dict[str, list[list[int]]]) -> str:
    return "".join(
        f' data-in-{side}="{_numbers({node for inner in found for node in inner})}"'
        for side, found in nodes.items()
    )


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, sorted(numbers)))
