"""The challenges of Recognising Textual Entailment: pairs from XML, trees from a parser."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from paper.corpora import ENTAILMENT_SETS
from paper.prepare.downloads import Downloads
from paper.prepare.parses import Parses
from paper.prepare.tables import Table
from treedot.errors import SourceError

# NLTK's rte2_dev.xml has only half of the pairs, so the full one is taken where it is.
FILES = {"rte2_dev": ("RTE2_dev.xml",), "rte5_dev": ("RTE5_train.xml",), "rte5_test": ("RTE5_test.xml",)}
COLUMNS = ("id", "label", "label_orig", "task", "text", "hypothesis", "text_tree", "hypothesis_tree")
CLASSES = {"TRUE": "YES", "FALSE": "NO", "YES": "YES", "NO": "NO"}
CLASSES |= {"ENTAILMENT": "YES", "UNKNOWN": "NO", "CONTRADICTION": "NO"}
# A full stop ends a sentence before a capital, a digit or a quote, unless it ends an initial or a title.
END = re.compile(r"""(?<=[.!?])["')]*\s+(?=["'(]*[A-Z0-9])""")
NO_END = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|Gen|Sen|Rep|Gov|Lt|Col|Capt|St|Mt|No|no|vs|Jr|Sr|Inc|Corp|Co|Ltd"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\.|\b(?:[A-Za-z]\.){2,})$"
)


def tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return the development and the test pairs of the four challenges that the paper uses."""
    names = [f"{name}_{part}" for name in ENTAILMENT_SETS for part in ("dev", "test")]
    return [_table(name, found.file(*FILES.get(name, ()), f"{name}.xml"), parses) for name in names]


def _table(name: str, path: Path, parses: Parses) -> Table:
    try:
        pairs = ElementTree.fromstring(path.read_bytes()).iter("pair")
    except ElementTree.ParseError as error:
        raise SourceError(f"{path} is not XML: {error}") from error
    rows = []
    for pair in pairs:
        label = pair.get("entailment") or pair.get("value") or ""
        if label not in CLASSES:
            raise SourceError(
                f"{path}: pair {pair.get('id')} has the class {label!r}, not one of {[*CLASSES]}"
            )
        text, hypothesis = (" ".join((pair.findtext(part) or "").split()) for part in ("t", "h"))
        if not text or not hypothesis:
            raise SourceError(f"{path}: pair {pair.get('id')} lacks its text <t> or its hypothesis <h>")
        split = sentences(text)
        trees = parses.tree(split), parses.tree([hypothesis])
        row = (pair.get("id"), CLASSES[label], label, pair.get("task"), text, hypothesis, *trees, len(split))
        rows.append(row)
    return Table(name, (*COLUMNS, "text_sentences"), rows)


def sentences(text: str) -> list[str]:
    """Split a text into sentences.

    >>> sentences("Mr. Smith left. He ran!")
    ['Mr. Smith left.', 'He ran!']
    """
    found, start = [], 0
    for end in END.finditer(text):
        before = text[start : end.end()].rstrip()
        if not NO_END.search(before):
            found.append(before)
            start = end.end()
    return [*found, text[start:]]
