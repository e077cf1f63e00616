r"""Trees as bracket text: ``(LABEL child child …)``, for any label.

A child is a bracketed tree or a bare token; ``(A)`` and ``A`` are the same leaf. A bracket followed by
another bracket has the empty label: ``( (S x))``. Tokens end at brackets and at ASCII whitespace; inside
a label, these characters are written ``\xHH``, their code in hexadecimal. A backslash is literal, as in the
Penn Treebank's ``1\/2``; only before ``xHH`` it is written ``\x5c``. An empty label is written as nothing.
A first child that would then be mistaken for the label is bracketed: ``( (a) b)``. The empty leaf is ``()``.
"""

from __future__ import annotations

import re

from treedot.errors import SourceError

TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)
_SPECIAL = re.compile(r"[()\s]|\\(?=x[0-9a-fA-F]{2})", re.ASCII)
_ESCAPED = re.compile(r"\\x([0-9a-fA-F]{2})")


def escape(label: str) -> str:
    """Return a label as a token of bracket text."""
    return _SPECIAL.sub(lambda match: f"\\x{ord(match[0]):02x}", label)


def unescape(token: str) -> str:
    """Return the label that a token of bracket text represents."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), token) if "\\x" in token else token


def check_text(text: str) -> None:
    """Raise SourceError if a label contains a lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise SourceError(
            f"a label contains the lone surrogate {half!r}, which UTF-8 cannot encode: replace it, for "
            "example with label.encode(errors='replace').decode()"
        ) from None
