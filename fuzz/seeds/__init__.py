"""Sound texts from which cases are made, one file per kind."""

from __future__ import annotations

from pathlib import Path

MARK = b"\n=====\n"  # between the texts of a file


def read_seeds(kind: str) -> list[bytes]:
    """Return the texts of a kind."""
    return Path(__file__).with_name(f"{kind}.txt").read_bytes().split(MARK)
