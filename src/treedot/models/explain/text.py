"""Explanations as text: a line for every inner node of a tree, coloured by its value for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any

from treedot._pages.printable import printable
from treedot.models.explain.decision import Explanation
from treedot.models.explain.model import FragmentWeight, ModelExplanation
from treedot.models.explain.pair import PairExplanation, SharedFragment
from treedot.models.explain.tree_values import REMOVAL, FragmentShare
from treedot.trees import Forest, Tree

DEEPEST = 30  # levels of indentation
LONGEST = 120  # characters of a subtree in a sentence
FOR, AGAINST = (195, 153, 117, 75), (224, 217, 210, 203)  # backgrounds of 256 colours, faint to strong
BLACK, RESET = "\x1b[38;5;16m", "\x1b[0m"


@singledispatch
def text_of(found: Any, color: bool) -> str:
    """Return an explanation as text."""
    raise NotImplementedError


@text_of.register(Explanation)
def _explanation(found: Explanation, color: bool) -> str:
    lines = [decision_words(found)]
    for one in found.trees:
        lines += [""] if one.column is None else ["", f"{printable(one.column)}:"]
        lines += _tree_lines(one.tree, one.node_values.tolist(), color)
    if any(one.values_are == REMOVAL for one in found.trees):
        lines += ["", values_words("score")]
    if found.links:
        lines += ["", links_words()]
        lines += [f"  {value:+.3f}  {mark} {printable(word)}" for mark, word, value in found.links]
    titles = ("raises it", "lowers it") if found.target is None else ("for", "against")
    for title, fragments in zip(titles, (found.supporting, found.opposing), strict=True):
        if fragments:
            lines += ["", f"{title}:", *map(_fragment_line, fragments)]
    says = flip_words(found)
    return "\n".join([*lines, *(["", says] if says else [])])


@text_of.register(PairExplanation)
def _pair(found: PairExplanation, color: bool) -> str:
    lines = [f"kernel {found.value:.6g}"]
    lines += [f"{name} {value:+.3f}" for name, value in found.others.items()]
    for tree, values in ((found.a, found.values_a), (found.b, found.values_b)):
        lines += ["", *_tree_lines(tree, values.tolist(), color)]
    if found.values_are == REMOVAL:
        return "\n".join([*lines, "", values_words("kernel")])
    lines += ["", "shared:", *map(_fragment_line, found.fragments), f"  {found.unlisted:+.3f}  all others"]
    return "\n".join(lines)


@text_of.register(ModelExplanation)
def _model(found: ModelExplanation, color: bool) -> str:
    parts = [extent_words(found)]
    for name, (supporting, opposing) in found.fragments.items():
        title = [] if name is None else [printable(str(name))]
        parts.append("\n".join([*title, *map(_fragment_line, [*supporting, *opposing])]))
    return "\n\n".join(parts)


def extent_words(found: ModelExplanation) -> str:
    """Describe the number of fragments and trees that were considered."""
    stopped = "" if found.complete else "; the limit was reached"
    return f"{found.n_fragments:,} fragments of {found.n_trees:,} trees{stopped}"


def decision_words(found: Explanation) -> str:
    """Return the explained class, its probability, its score and the parts of the score, in words."""
    what = "Prediction" if found.target is None else f"Class {printable(str(found.target))}, score"
    if found.probability is not None:
        what = f"Class {printable(str(found.target))}, probability {found.probability:.3f}, score"
    parts = ", ".join(f"{printable(name)} {value:+.3f}" for name, value in found.parts)
    return f"{what} {found.score:+.3f} = {parts}"


def values_words(what: str) -> str:
    """Return a sentence that says what values by removal are; ``what`` is "score" or "kernel"."""
    return f"The value of a node is how much the {what} falls if the node's children are removed."


def links_words() -> str:
    """Return a heading that says what the values of links are."""
    return "links, and how much the score falls if one is undone:"


def flip_words(found: Explanation) -> str:
    """Return a sentence about the removal that changes the decision; an empty text if none was sought."""
    if not found.flip_sought:
        return ""
    if found.flip is None:
        return "The decision stays the same whichever subtree is removed."
    decision, leaf = printable(str(found.flip.decision)), printable(str(Tree(found.flip.subtree.label)))
    subtree = printable(str(found.flip.subtree))
    subtree = subtree if len(subtree) <= LONGEST else subtree[:LONGEST] + " …"
    where = "" if found.flip.column is None else f" in {printable(found.flip.column)}"
    return f"With {leaf} instead of {subtree}{where}, the decision would be {decision}."


def _fragment_line(share: FragmentShare | SharedFragment | FragmentWeight) -> str:
    column = getattr(share, "column", None)
    where = "" if column is None else f"{printable(column)}: "
    return f"  {share.value:+.3f}  {where}{printable(str(share.fragment))}"


def _tree_lines(tree: Tree, values: Sequence[float], color: bool) -> Iterator[str]:
    """Yield the lines of a tree from the root; children that are all leaves share their parent's line."""
    forest = Forest.from_tree(tree)
    start, child = forest.children
    texts = [printable(forest.labels[k]) for k in forest.label]
    largest = max(map(abs, values)) or 1.0
    waiting = [(forest.n_nodes - 1, 0)]
    while waiting:
        node, level = waiting.pop()
        family = child[start[node] : start[node + 1]].tolist()
        together = not forest.arity[family].any()
        text = " ".join(texts[k] for k in [node, *(family if together else ())])
        value = f"  {values[node]:+.3f}" if family else ""
        strength = values[node] / largest if color else 0.0
        yield "  " * min(level, DEEPEST) + _coloured(text, strength) + value
        waiting += [] if together else [(k, level + 1) for k in reversed(family)]


def _coloured(text: str, strength: float) -> str:
    """Return a text on the background colour of a strength from -1 to 1."""
    if abs(strength) < 0.05:
        return text
    ramp = FOR if strength > 0 else AGAINST
    number = ramp[min(int(abs(strength) * len(ramp)), len(ramp) - 1)]
    return f"{BLACK}\x1b[48;5;{number}m{text}{RESET}"
