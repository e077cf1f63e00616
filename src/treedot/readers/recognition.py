"""Recognise files without trees by their first bytes, for clear errors."""

from __future__ import annotations

import re
from pathlib import Path

from treedot._storage.safetensors import begins_as_arrays
from treedot.errors import SourceError

HEAD = 1024  # bytes to inspect

# No UTF-8 text begins with any of these, except the letters of the archives and tables.
_ARRAY, _ZIP, _PARQUET, _ARROW = b"\x93NUMPY", b"PK\x03\x04", b"PAR1", b"ARROW1\0\0"
_COMPRESSED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_OTHER_LINES = {"conllu": "CoNLL-U", "kelp": "a file of KeLP", "svmlight": "a file of SVM-LIGHT-TK"}
_PICKLE = re.compile(rb"\x80[\x02-\x05]")


def refuse_other_files(head: bytes, name: str) -> None:
    """Raise if a source to be read as text begins like another file type."""
    head = head[:HEAD]
    found = _what_it_is(head, name)
    if found is None and not head.lstrip().startswith(b"(") and b"\0" in head:
        found = "is a binary file, not text"
    if found is not None:
        raise SourceError(f"{name} {found}")


def table_hint(head: bytes) -> str:
    """Return a hint about the format for a text that looks like another one; "" if it does not."""
    line = head[:HEAD].lstrip().split(b"\n")[0]
    kind = _kind_of_line(line)
    if kind is None:
        return ""
    what = _OTHER_LINES.get(kind, "a table")
    return f" (if this is {what}, use format={kind!r})"


def _kind_of_line(line: bytes) -> str | None:
    """Return the format of a table, or of a file with a tree or token per line, from its first line."""
    if b"|BT" in line:
        return "kelp" if b"|BT:" in line else "svmlight"
    if re.match(rb"1(-\d+)?(\t[^\t]*){9}$|# (sent_id|text|newdoc)\b", line):
        return "conllu"
    return "jsonl" if line.startswith(b"{") else "tsv" if b"\t" in line else "csv" if b"," in line else None


def _what_it_is(head: bytes, name: str) -> str | None:
    if head.startswith(_ARRAY):
        return "contains a matrix, not trees: load it with load_vectors or numpy.load"
    if head.startswith(_ZIP):
        match Path(name).suffix.lower():
            case ".npz":
                return "contains arrays, not trees: load it with load_vectors or numpy.load"
            case ".xlsx":
                return "is an Excel workbook: save its sheet as .csv"
        return "is a zip archive: unpack it"
    for magic, kind in ((_PARQUET, "parquet"), (_ARROW, "arrow")):
        if head.startswith(magic):
            return f"is a table in {kind}: use format={kind!r}"
    for magic, suffix in _COMPRESSED.items():
        if head.startswith(magic):
            return f"is compressed: rename it so that its name ends in {suffix}"
    if _PICKLE.match(head):
        return "is a pickle, such as joblib.dump writes, not trees: load it with joblib.load"
    if begins_as_arrays(head):
        if b"treedot index" in head:
            return "is an index of trees: open it with TreeIndex.open"
        if b"treedot fragment vectorizer" in head:
            return "is a vectorizer: load it with FragmentVectorizer.load"
        return "contains arrays (safetensors), not trees"
    return None
