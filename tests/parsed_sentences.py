"""Generated sentences with dependencies, and their CoNLL-U text."""

from __future__ import annotations

import io
import random
from typing import NamedTuple

from treedot import Forest
from treedot.parameters import DEPENDENCY_TREES
from treedot.readers.conllu import read_sentences
from treedot.readers.on_bad import OnBad
from treedot.readers.stream import TreeStream

FORMS = ("Trees", "grow", "(", "été", "x y", "::", "İ", "10", "don't", "\\x28", "_")
LEMMAS = ("tree", "grow", "", "", "Être", "-LRB-")
UPOS, XPOS = ("NOUN", "VERB", "PUNCT", ""), ("NNS", "VBP", "-LRB-", ".", "", "")
RELATIONS = ("nsubj", "obj", "acl:relcl", "")
SETTINGS = [(unit, pos, words) for unit in DEPENDENCY_TREES for pos in ("xpos", "upos")
            for words in ("lemma", "form")]  # fmt: skip


class Token(NamedTuple):
    """A row of CoNLL-U; what is missing is empty. The head counts from 1, and 0 is the root."""

    form: str
    lemma: str
    upos: str
    xpos: str
    head: int
    deprel: str


def generated_sentences(count: int, seed: int = 0) -> list[list[Token]]:
    """Return sentences of 1 to 12 tokens; their trees have any shape, with crossing edges too."""
    source = random.Random(seed)
    return [_sentence(source, source.randint(1, 12)) for _ in range(count)]


def _sentence(source: random.Random, size: int) -> list[Token]:
    order = source.sample(range(1, size + 1), size)
    head = {token: source.choice([0, *order[:k]][bool(k) :]) for k, token in enumerate(order)}
    parts = (FORMS, LEMMAS, UPOS, XPOS)
    return [
        Token(*map(source.choice, parts), head[k], source.choice(RELATIONS) if head[k] else "root")
        for k in range(1, size + 1)
    ]


def conllu(sentences: list[list[Token]]) -> str:
    """Return the text of sentences."""
    blocks = []
    for tokens in sentences:
        for number, (form, lemma, upos, xpos, head, deprel) in enumerate(tokens, 1):
            fields = (form, lemma, upos, xpos, "", str(head), deprel, "", "")
            blocks.append("\t".join([str(number), *(field or "_" for field in fields)]))
        blocks.append("")
    return "\n".join(blocks) + "\n"


def read_text(text: str, unit: str = "grct", pos: str = "xpos", words: str = "lemma") -> Forest:
    """Read CoNLL-U with any settings, which ``read_trees`` has not for text."""
    stream = TreeStream(io.BytesIO(text.encode()), "text", 1 << 20, OnBad())
    return Forest.concat(read_sentences(stream, unit, pos, words))
