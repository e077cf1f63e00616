"""The trees of Stanza's ``Document``, ``Sentence`` and ``Tree``."""

from __future__ import annotations

from typing import Any

from treedot.errors import SourceError
from treedot.readers.bridges.registry import Backwards
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.bridges.trees import check_single, of_tokens
from treedot.readers.dependencies import MISSING, Tokens
from treedot.readers.finite import CHECK_AFTER, check_finite


def read_parse(thing: Any, settings: ObjectSettings) -> Backwards:
    """Return the dependency tree of a Sentence, or its constituency tree."""
    sentence = _only_sentence(thing)
    if settings.unit == "constituency":
        if sentence.constituency is None:
            raise SourceError(
                "the Sentence has no constituency parse: add 'constituency' to the pipeline's processors, "
                "'tokenize,pos,constituency'"
            )
        return read_constituents(sentence.constituency, settings)
    return of_tokens("Sentence", _tokens(sentence.words), settings)


def sentences_of(document: Any) -> list[Any]:
    """Return the sentences of a Document."""
    return list(document.sentences)


def read_constituents(tree: Any, settings: ObjectSettings) -> Backwards:
    """Return a constituency tree, with brackets in words as Stanza writes them, ``-LRB-``."""
    labels: list[str] = []
    arity: list[int] = []
    waiting = [tree]
    unchecked = CHECK_AFTER
    while waiting:
        node = waiting.pop()
        label, children = node.label or "", node.children
        labels.append(label.replace("(", "-LRB-").replace(")", "-RRB-"))
        arity.append(len(children))
        waiting += children
        if len(labels) > unchecked:
            check_finite(tree, lambda node: list(node.children))
            unchecked = 1 << 62
    return labels, arity


def _only_sentence(thing: Any) -> Any:
    if not hasattr(thing, "sentences"):
        return thing
    check_single("Document", len(thing.sentences), "document.sentences")
    if not thing.sentences:
        raise SourceError("the Document has no sentences")
    return thing.sentences[0]


def _tokens(words: list[Any]) -> Tokens:
    if not words:
        raise SourceError("the Sentence has no words")
    if any(word.head is None or word.deprel is None for word in words):
        raise SourceError(
            "the Sentence has no dependency parse: add 'depparse' to the pipeline's processors, "
            "'tokenize,mwt,pos,lemma,depparse', or choose unit='constituency'"
        )
    return Tokens(
        [word.text for word in words],
        [word.lemma or MISSING for word in words],
        [word.upos or MISSING for word in words],
        [word.xpos or MISSING for word in words],
        [word.head for word in words],
        [word.deprel or MISSING for word in words],
    )
