"""The trees of NLTK's ``DependencyGraph``; an ``nltk.Tree`` is an object with a label and children."""

from __future__ import annotations

from typing import Any

from treedot.errors import SourceError
from treedot.readers.bridges.registry import Backwards
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.bridges.trees import of_tokens
from treedot.readers.dependencies import MISSING, Tokens


def read_graph(graph: Any, settings: ObjectSettings) -> Backwards:
    """Return the dependency tree of a graph, whose coarse tags are taken for UPOS."""
    nodes = [graph.nodes[address] for address in sorted(graph.nodes) if address]
    if not nodes:
        raise SourceError("the DependencyGraph has no words")
    if [node["address"] for node in nodes] != list(range(1, len(nodes) + 1)):
        raise SourceError("the words of the DependencyGraph must have the addresses 1, 2, 3, …")
    if any(node["word"] is None or node["head"] is None for node in nodes):
        raise SourceError("a word of the DependencyGraph has no text or no head: add it with add_node")
    form, lemma, upos, xpos, deprel = (
        [node[key] or MISSING for node in nodes] for key in ("word", "lemma", "ctag", "tag", "rel")
    )
    tokens = Tokens(form, lemma, upos, xpos, [node["head"] for node in nodes], deprel)
    return of_tokens("DependencyGraph", tokens, settings)
