r"""The text form of a tree: ``(LABEL child child …)``, for any label.

A child is a bracketed tree or a bare token; ``(A)`` and ``A`` are the same leaf, and a bracket
that is followed by another bracket has the empty label: ``( (S x))``. Tokens end at brackets and
at ASCII whitespace, so within a label those characters are written ``\xHH`` (their code in
hexadecimal). A backslash stands for itself, as in the Penn Treebank's ``1\/2``, except before
``xHH``, where it is written ``\x5c``. An empty label is written as nothing, and the leaf that
would then be mistaken for a label gets brackets of its own: ``( (a) b)``; the empty leaf is ``()``.
"""

from __future__ import annotations

import re

from treedot.errors import SourceError

TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)
_SPECIAL = re.compile(r"[()\s]|\\(?=x[0-9a-fA-F]{2})", re.ASCII)
_ESCAPED = re.compile(r"\\x([0-9a-fA-F]{2})")


def escape(label: str) -> str:
    """Return the token that stands for a label in bracket text."""
    return _SPECIAL.sub(lambda match: f"\\x{ord(match[0]):02x}", label)


def unescape(token: str) -> str:
    """Return the label that a token of bracket text stands for."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), token) if "\\x" in token else token


def check_text(text: str) -> None:
    """Raise where labels hold half of a surrogate pair, which is no character and has no bytes in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise SourceError(
            f"a label holds {half!r}, half of a surrogate pair, which no file in UTF-8 can carry: replace "
            "it, as in label.encode(errors='replace').decode()"
        ) from None
