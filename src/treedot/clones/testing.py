"""Recognise files of tests by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

_FOLDER = re.compile(r"(?:.+[_-])?tests?|__tests__|specs?|e2e|cypress", re.IGNORECASE)
_FILE = re.compile(
    r"tests?[_.-].*|(?:.*[_.-])?tests?\.\w+|.*[_.-]spec\.\w+|conftest\.py|.*[A-Za-z0-9]Tests?\.\w+", re.DOTALL
)


def are_tests(files: Sequence[Any]) -> list[bool]:
    """Return whether each file holds tests, judged by its name and by its folders below those that all share.

    An unknown file counts as one without tests.

    Examples
    --------
    >>> are_tests(["src/shop/price.py", "src/tests/helpers.py", "src/shop/test_price.py", None])
    [False, True, True, False]
    """
    parts = {file: file.replace(os.sep, "/").split("/") for file in set(files) if isinstance(file, str)}
    folders = [some[:-1] for some in parts.values()]
    shared = sum(takewhile(bool, (len(set(names)) == 1 for names in zip(*folders, strict=False))))
    known = {
        file: bool(_FILE.fullmatch(some[-1])) or any(map(_FOLDER.fullmatch, some[shared:-1]))
        for file, some in parts.items()
    }
    return [known.get(file, False) if isinstance(file, str) else False for file in files]
