"""Read the tree that a request contains, within limits."""

from __future__ import annotations

import io
import re

from treedot.errors import LimitError, ParameterError, SourceError
from treedot.languages import LANGUAGES
from treedot.readers import iter_trees, parse_code
from treedot.search.reading import Reading, outermost
from treedot.serve.fields import AUTO
from treedot.trees import Forest

MAX_NODES = 2000
MAX_DEPTH = 400

_DOT_BRACKET = re.compile(r"(>[^\n]*\n)?[A-Za-z]+\r?\n[().\[\]{}<>]+", re.ASCII)
_CONLLU = re.compile(r"(#[^\n]*\n)*1(-\d+)?\t")


def read_input(text: str, format: str, name: str, reading: Reading | None = None) -> tuple[Forest, str]:
    """Return the one tree of a text, and the format that it was read in.

    A text in a programming language that does not hold exactly one unit, such as a function, is one tree as
    a whole. Raises SourceError if the text is not in the format, and LimitError if the tree is too large.
    """
    if not text.strip():
        raise ParameterError(f"{name} is empty: give a tree in brackets, source code, or a document")
    kind = guessed_format(text) if format == AUTO else format
    found = _read_code(text, kind, reading or Reading()) if kind in LANGUAGES else _read(text, kind, name)
    if len(found) != 1:
        raise ParameterError(f"{name} has {len(found)} trees as {kind}: give one tree, or choose its format")
    _check_size(found, name)
    return found, kind


def guessed_format(text: str) -> str:
    r"""Return the format that a text probably has; Python if it looks like no other one.

    Examples
    --------
    >>> [guessed_format(text) for text in ("(S (NP a))", "(a,b)c;", "GCAAGC\n((..))", "<p>a</p>")]
    ['brackets', 'newick', 'dot-bracket', 'html']
    """
    bare = text.strip()
    if _DOT_BRACKET.fullmatch(bare):
        return "dot-bracket"
    if bare.startswith("(") and bare.endswith(";"):
        return "newick"
    if bare.startswith("("):
        return "brackets"
    if bare.startswith("<"):
        return "xml" if bare.startswith("<?xml") else "html"
    if _CONLLU.match(bare):
        return "conllu"
    return "json" if bare[0] in "{[" else "python"


def _read_code(text: str, language: str, reading: Reading) -> Forest:
    found = parse_code(text, language, settings=reading.code(min_nodes=1))
    outer = outermost(found)
    if len(outer) == 1:  # with the functions inside it
        return found[outer]
    return parse_code(text, language, settings=reading.code(min_nodes=1, unit="file"))


def _read(text: str, kind: str, name: str) -> Forest:
    try:
        return Forest.concat(iter_trees(io.BytesIO(text.encode()), kind))
    except SourceError as error:
        raise SourceError(f"{name}: {str(error).removeprefix('<stream>').lstrip(': ')}") from None


def _check_size(forest: Forest, name: str) -> None:
    if forest.n_nodes > MAX_NODES:
        raise LimitError(
            f"{name} is a tree of {forest.n_nodes:,} nodes (at most {MAX_NODES:,}): give a part of it"
        )
    depth = int(forest.depth.max())
    if depth > MAX_DEPTH:
        raise LimitError(f"{name} is a tree of depth {depth:,} (at most {MAX_DEPTH}): give a part of it")
