"""``ObjectSettings``: which tree an object of a parser or a library becomes."""

from __future__ import annotations

from dataclasses import dataclass

from treedot.parameters import PARTS_OF_SPEECH, POLICIES, WORDS, checked_choice


@dataclass(frozen=True)
class ObjectSettings:
    """The settings of ``read_objects`` that apply to a single object.

    Parameters
    ----------
    unit : {"grct", "lct", "loct", "cgrct", "clct", "constituency"}, default=None
        The kind of tree of a parsed sentence; ``"grct"`` by default.
    pos : {"xpos", "upos"}, default="xpos"
        Which part of speech to use.
    words : {"lemma", "form"}, default="lemma"
        Which text of a word to use.
    attributes, text : {"keep", "blur", "drop"}, default="blur"
        How to represent attributes and texts of elements.
    comments : {"keep", "blur", "drop"}, default="drop"
        How to represent comments of elements.
    identifiers, literals : {"keep", "blur", "drop"}, default="keep"
        How to represent names, and numbers and strings, of source code.

    See Also
    --------
    read_objects : Describes the settings in full.
    """

    unit: str | None = None
    pos: str = "xpos"
    words: str = "lemma"
    attributes: str = "blur"
    text: str = "blur"
    comments: str = "drop"
    identifiers: str = "keep"
    literals: str = "keep"

    def __post_init__(self) -> None:
        checked_choice("pos", self.pos, PARTS_OF_SPEECH)
        checked_choice("words", self.words, WORDS)
        for name in ("attributes", "text", "comments", "identifiers", "literals"):
            checked_choice(name, getattr(self, name), POLICIES)
