"""The trees of spaCy's ``Doc`` and ``Span``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from treedot._runtime.array_types import IntArray
from treedot.errors import SourceError
from treedot.readers.bridges.registry import Backwards
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.bridges.trees import check_single, of_brackets, of_tokens
from treedot.readers.dependencies import MISSING, Tokens

COLUMNS = ("ORTH", "LEMMA", "POS", "TAG", "DEP", "HEAD", "IS_SPACE")
_HEAD, _IS_SPACE = COLUMNS.index("HEAD"), COLUMNS.index("IS_SPACE")
NO_SENTENCES = "add the component 'parser', 'senter' or 'sentencizer' to the pipeline"
ALL_OF_THEM = "list(doc.sents)"


def read_parse(thing: Any, settings: ObjectSettings) -> Backwards:
    """Return the dependency tree of a Doc or a Span, or its constituency tree by benepar."""
    if not len(thing):
        raise SourceError(f"the {type(thing).__name__} has no tokens")
    if settings.unit == "constituency":
        return _constituents(thing)
    name, doc = type(thing).__name__, getattr(thing, "doc", thing)
    if not doc.has_annotation("DEP"):
        raise SourceError(
            f"the {name} has no dependency parse: add the component 'parser' to the pipeline, or load a "
            "trained one that has it, such as spacy.load('en_core_web_sm')"
        )
    tokens = _tokens(thing)
    check_single(name, tokens.head.count(0), ALL_OF_THEM)
    return of_tokens(name, tokens, settings)


def sentences_of(doc: Any) -> Iterable[Any]:
    """Return the sentences of a Doc."""
    if len(doc) and not doc.has_annotation("SENT_START"):
        raise SourceError(f"the Doc has no sentence boundaries: {NO_SENTENCES}")
    found: Iterable[Any] = doc.sents
    return found


def _tokens(thing: Any) -> Tokens:
    """Return the columns of a Doc or a Span, read at once: objects of tokens are slow.

    A token whose head lies outside of a Span is its root.
    """
    values = thing.to_array(_ids())
    own = np.arange(len(values))
    head = own + values[:, _HEAD].view(np.int64)
    head[(head < 0) | (head >= len(values)) | (head == own)] = -1
    if values[:, _IS_SPACE].any():
        values, head = _without_spaces(values, head)
    strings = thing.vocab.strings
    form, lemma, upos, xpos, deprel = (
        [strings[key] or MISSING for key in column] for column in values[:, :_HEAD].T.tolist()
    )
    return Tokens(form, lemma, upos, xpos, (head + 1).tolist(), deprel)


def _without_spaces(values: IntArray, head: IntArray) -> tuple[IntArray, IntArray]:
    """Leave out white space that is a token of its own, unless something depends on it."""
    kept = (values[:, _IS_SPACE] == 0) | (head < 0) | np.isin(np.arange(len(head)), head)
    number = np.cumsum(kept) - 1  # of the tokens that are kept
    values, head = values[kept], head[kept]
    return values, np.where(head < 0, -1, number[head])


@cache
def _ids() -> list[int]:
    from spacy.attrs import IDS

    return [IDS[name] for name in COLUMNS]


def _constituents(thing: Any) -> Backwards:
    """Return the constituency tree that benepar added to the only sentence."""
    if getattr(thing, "doc", thing) is thing:  # a Doc, not a Span
        sentences = list(sentences_of(thing))
        check_single("Doc", len(sentences), ALL_OF_THEM)
        thing = sentences[0]
    text = thing._.parse_string if thing._.has("parse_string") else ""
    if not text:
        raise SourceError(
            "the Span has no constituency parse: add the component 'benepar' to the pipeline, "
            "nlp.add_pipe('benepar', config={'model': 'benepar_en3'})"
        )
    return of_brackets("Span", text)
