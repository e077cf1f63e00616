"""Explanations as HTML: coloured trees and words, and the strongest fragments."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from treedot._pages.page import page
from treedot._pages.printable import printable
from treedot.models.explain.decision import Explanation
from treedot.models.explain.links import LinkShare
from treedot.models.explain.model import FragmentWeight, ModelExplanation
from treedot.models.explain.pair import PairExplanation, SharedFragment
from treedot.models.explain.text import decision_words, extent_words, flip_words, links_words, values_words
from treedot.models.explain.tree_values import REMOVAL, SHAPLEY, FragmentShare
from treedot.trees import Forest, Tree
from treedot.trees.drawing import DARKEST, STYLE, tree_html

MAX_WORDS = 500

EXPLANATION_STYLE = f"""{STYLE}
.words {{ line-height: 2.2; overflow-wrap: anywhere }}
.words span {{ padding: 0.2em 0.3em; border-radius: 4px }}
.words {{ width: fit-content; margin: 1rem auto }}
.fragments {{ display: flex; flex-wrap: wrap; gap: 0.6rem; margin: 0.5rem 0 }}
.fragments > div {{ max-width: 100%; box-sizing: border-box; padding: 0.4rem 0.8rem; text-align: center }}
.fragments > div {{ border: 1px solid var(--line, #8884); border-radius: 6px }}
.fragments b {{ display: block; margin-bottom: 0.4rem; font-variant-numeric: tabular-nums }}
"""

_MEANING = """
<details><summary>What the numbers mean</summary>
<p>The score is a sum over the fragments of the tree: connected pieces in which every node has all of its
children or none. The contribution of a fragment is divided equally among its occurrences, then among the
inner nodes of each; the value of a node, its Shapley value, is the sum of its shares. The length and damping
of the row are held fixed. A word has the colour of its parent node.</p></details>
"""

_PAIR_MEANING = """
<details><summary>What the numbers mean</summary>
<p>The kernel is a sum over the fragments that both trees share: connected pieces in which every node has all
of its children or none. The contribution of a fragment is divided equally among the inner nodes of its
occurrences; the value of a node, its Shapley value with the other tree fixed, is the sum of its shares.
Fragments of all sizes count; only the strongest small ones are listed.</p></details>
"""


_REMOVAL_MEANING = """
<details><summary>What the numbers mean</summary>
<p>{words} The rest of the tree is compared again, with its own length. Subtrees contain each other, so the
values overlap, and their sum has no meaning. A word has the colour of its parent node.</p></details>
"""


def page_of(found: Any) -> str:
    """Return an explanation as a whole page."""
    title, body = _titled(found)
    return page(title, body, EXPLANATION_STYLE)


def notebook_of(found: Any) -> str:
    """Return an explanation as HTML for notebooks."""
    return f"<style>{EXPLANATION_STYLE}</style>{_titled(found)[1]}"


@singledispatch
def _titled(found: Any) -> tuple[str, str]:
    """Return the title and the content of the page."""
    raise NotImplementedError


@_titled.register(ModelExplanation)
def _model(found: ModelExplanation) -> tuple[str, str]:
    parts = [f"<p>{extent_words(found)}</p>"]
    for name, (supporting, opposing) in found.fragments.items():
        title = "" if name is None else html.escape(printable(str(name)))
        parts += [*_strongest(f"For {title}", supporting), *_strongest(f"Against {title}", opposing)]
    return "What the model has learned", "\n".join(parts)


@_titled.register(Explanation)
def _explanation(found: Explanation) -> tuple[str, str]:
    what = "this prediction" if found.target is None else str(found.target)
    largest = max(float(abs(one.node_values).max()) for one in found.trees)
    return f"Why {printable(what)}?", "\n".join(
        [
            f'<p class="says">{html.escape(decision_words(found))}</p>',
            f"<p>{html.escape(flip_words(found))}</p>",
            *(coloured_tree(one.tree, one.node_values, largest, one.column) for one in found.trees),
            *_links(found.links),
            *_strongest("For" if found.target is not None else "Raises the prediction", found.supporting),
            *_strongest("Against" if found.target is not None else "Lowers the prediction", found.opposing),
            _meaning(_MEANING, "score", [one.values_are for one in found.trees]),
        ]
    )


def coloured_tree(tree: Tree, values: np.ndarray, largest: float, column: str | None = None) -> str:
    """Return a tree and its words as HTML; ``largest`` is the value with the strongest colour."""
    title = "" if column is None else f"<h2>{html.escape(printable(column))}</h2>"
    return f"{title}{tree_html(tree, values.tolist(), largest)}{_words(tree, values.tolist(), largest)}"


@_titled.register(PairExplanation)
def _pair(found: PairExplanation) -> tuple[str, str]:
    others = [f"<p>{html.escape(name)}: {value:+.3f}</p>" for name, value in found.others.items()]
    return "What two trees share", "\n".join(
        [
            f'<p class="says">The kernel is {found.value:.6g}.</p>',
            *others,
            coloured_pair(found),
            *_strongest("Shared fragments", found.fragments),
            "" if found.values_are == REMOVAL else f"<p>All others: {found.unlisted:+.3f}</p>",
            _meaning(_PAIR_MEANING, "kernel", [found.values_are]),
        ]
    )


def coloured_pair(found: PairExplanation) -> str:
    """Return two trees side by side as HTML, in one scale of colours."""
    sides = (found.a, found.values_a), (found.b, found.values_b)
    largest = max(float(abs(values).max()) for _, values in sides)
    pictures = [f"<div>{coloured_tree(tree, values, largest)}</div>" for tree, values in sides]
    return f'<div class="beside">{"".join(pictures)}</div>'


def _meaning(shapley: str, what: str, values_are: Sequence[str]) -> str:
    """Return what the values are: Shapley values, differences by removal, or some of each."""
    removal = _REMOVAL_MEANING.format(words=values_words(what)) if REMOVAL in values_are else ""
    return removal + (shapley if SHAPLEY in values_are else "")


def _strongest(title: str, shares: Sequence[FragmentShare | SharedFragment | FragmentWeight]) -> list[str]:
    if not shares:
        return []
    return [f"<h2>{title}</h2>", fragment_boxes((_times(share), share.fragment) for share in shares)]


def _links(links: Sequence[LinkShare]) -> list[str]:
    if not links:
        return []
    boxes = (
        f"<div><b>{value:+.3f}</b>{mark} {html.escape(printable(word))}</div>" for mark, word, value in links
    )
    title = links_words().removesuffix(":").capitalize()
    return [f"<h2>{title}</h2>", f'<div class="fragments">{"".join(boxes)}</div>']


def fragment_boxes(captioned: Iterable[tuple[str, Tree]]) -> str:
    """Return drawn fragments as HTML, each in a box below its caption, which is HTML already."""
    drawn = [f"<div><b>{caption}</b>{tree_html(fragment)}</div>" for caption, fragment in captioned]
    return f'<div class="fragments">{"".join(drawn)}</div>'


def _times(share: Any) -> str:
    counts = [len(nodes) for name, nodes in share._asdict().items() if name.startswith("nodes")]
    often = " × ".join(map(str, counts)) if counts != [1] * len(counts) else ""
    column = getattr(share, "column", None)
    where = "" if column is None else f", {html.escape(printable(column))}"
    return f"{share.value:+.3f}{f', {often} times' if often else ''}{where}"


def _words(tree: Tree, values: Sequence[float], largest: float) -> str:
    """Return the leaves from left to right as HTML, each in the colour of its parent."""
    forest = Forest.from_tree(tree)
    leaves = [k for k in range(forest.n_nodes) if forest.arity[k] == 0 and forest.parent[k] >= 0]
    words = [_word(forest, k, values[forest.parent[k]], largest or 1.0) for k in leaves[:MAX_WORDS]]
    more = f" and {len(leaves) - MAX_WORDS:,} more" if len(leaves) > MAX_WORDS else ""
    return f'<p class="words">{" ".join(words)}{more}</p>'


def _word(forest: Forest, leaf: int, value: float, largest: float) -> str:
    text = html.escape(printable(forest.labels[forest.label[leaf]]))
    name = html.escape(printable(forest.labels[forest.label[forest.parent[leaf]]]), quote=True)
    color = "var(--accent, #3b82b8)" if value > 0 else "var(--bad, #d05a40)"
    share = 100 * DARKEST * abs(value) / largest
    style = f"background: color-mix(in srgb, {color} {share:.0f}%, transparent)"
    return f'<span style="{style}" title="{name}: {value:+.4g}">{text}</span>'
