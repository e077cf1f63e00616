"""Helpers of several bridges: trees of tokens, brackets and forests."""

from __future__ import annotations

from treedot.errors import SourceError
from treedot.readers.brackets.reader import read_cells
from treedot.readers.bridges.registry import Backwards
from treedot.readers.bridges.settings import ObjectSettings
from treedot.readers.dependencies import FORMS, HeadError, Tokens, sentence_of
from treedot.readers.on_bad import OnBad
from treedot.trees import Forest


def of_tokens(name: str, tokens: Tokens, settings: ObjectSettings) -> Backwards:
    """Return the dependency tree of a sentence."""
    try:
        return FORMS[settings.unit or "grct"](sentence_of(tokens, settings.pos, settings.words))
    except HeadError as error:
        raise SourceError(f"the {name} is not a tree: {error}") from None


def of_brackets(name: str, text: str) -> Backwards:
    """Return the tree of a bracket text."""
    return of_forest(read_cells([text], lambda _: f"the parse of the {name}", OnBad())[0])


def of_forest(forest: Forest) -> Backwards:
    """Return the only tree of a forest."""
    return [forest.labels[k] for k in reversed(forest.label.tolist())], forest.arity[::-1].tolist()


def check_single(name: str, count: int, all_of_them: str) -> None:
    """Raise if a document holds several sentences, since an item of a list is one tree."""
    if count > 1:
        raise SourceError(
            f"the {name} has {count} sentences, each with a root of its own, and an item of a list is one "
            f"tree: pass its sentences, {all_of_them}"
        )
