"""Source code of every language as a target: its units, its statements, and the blocks in it."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.documents import check_places, choose
from fuzz.readers import check_forest, check_reader, check_round_trip
from fuzz.seeds import read_seeds
from fuzz.target import FileTarget, Target, require
from fuzz.tokens import CODE as SYNTAX
from fuzz.tokens import mutate_text
from treedot import Forest, read_code
from treedot.cli.dups_blocks import units_and_files
from treedot.clones import find_duplicate_blocks
from treedot.clones.blocks.duplicate_blocks import similar_spans
from treedot.clones.blocks.reference import Definition
from treedot.languages import LANGUAGES
from treedot.parameters import CODE_UNITS, POLICIES
from treedot.readers import CodeSettings, parse_code

MAX_SECONDS = 2.0  # per text: some keep a parser busy for hours
THRESHOLD, MIN_NODES = 0.6, 15  # of blocks
FEW = 40  # statements of texts whose blocks are compared with the definition, which takes long,
SMALL = 800  # and their nodes: it is recursive


def check_code(path: Path, language: str) -> None:
    """Read source code with some settings, again with all texts kept, and again with its statements.

    All must find the same units.
    """
    data = path.read_bytes()
    choices = {"unit": CODE_UNITS, "identifiers": POLICIES, "literals": POLICIES, "stubs": (False, True)}
    chosen = choose(data, choices)
    settings: dict[str, Any] = chosen | {"blurred": True, "max_seconds": MAX_SECONDS}
    forest = read_code(path, language=language, **settings)
    check_forest(forest)
    check_places(forest)
    texts_kept = CodeSettings(chosen["unit"], stubs=chosen["stubs"], max_seconds=MAX_SECONDS)
    kept = parse_code(data, language, settings=texts_kept)
    check_forest(kept)
    if len(forest) or len(kept):
        _check_same_units(forest, kept, settings)
    with_files = parse_code(data, language, settings=CodeSettings(**settings, statements=True))
    _check_statements(with_files, forest, data)
    _check_blocks(data, language)
    if len(data) % 4 == 0:  # it takes as long as all of the above
        check_round_trip(kept, path.parent)
        check_reader(path)


def _check_same_units(forest: Forest, kept: Forest, settings: dict[str, Any]) -> None:
    for name in ("start", "end", "name", "errors"):
        require(forest.columns[name] == kept.columns[name], f"{name} depends on how texts are treated")
    if "drop" not in (settings["identifiers"], settings["literals"]):
        blurred = [len(hashes) for hashes in forest.columns["blurred"]]
        fewer = np.diff(kept.offsets) - np.diff(forest.offsets)
        require(fewer.tolist() == blurred, "the numbers of hashes and of blurred texts differ")


def _check_statements(with_files: Forest, forest: Forest, data: bytes) -> None:
    """Raise if reading statements changes units, or a statement is not in its file."""
    check_forest(with_files)
    units, files = units_and_files(with_files, "file" if len(with_files) == len(forest) else "function")
    require(units == forest, "the units depend on whether statements are read")
    require(len(files) <= 1, "a text has several files")
    columns = (files.columns.get(name, ()) for name in ("blurred", "statements"))  # none without a file
    for size, hashes, rows in zip(files.sizes, *columns, strict=True):
        node, start, end, first, last = rows.T
        require(bool(((node >= 0) & (node < size)).all()), "a statement is no node of its file")
        require(len(np.unique(node)) == len(node), "a node is two statements")
        require(bool(((start >= 1) & (start <= end)).all()), "a statement ends before it begins")
        require(int(end.max(initial=0)) <= data.count(b"\n") + 1, "a statement ends after its file")
        require(bool(((first >= 0) & (first <= last) & (last <= len(hashes))).all()), "texts are missing")


def _check_blocks(data: bytes, language: str) -> None:
    """Find blocks in two copies of a text; in a small one, they must be those of the definition."""
    settings = CodeSettings("file", "blur", "blur", blurred=True, max_seconds=MAX_SECONDS, statements=True)
    files = Forest.concat(parse_code(data, language, file=name, settings=settings) for name in "ab")
    found = find_duplicate_blocks(files, threshold=THRESHOLD, min_nodes=MIN_NODES)
    check_forest(found.trees)
    check_places(found.trees)
    for group in found.groups:
        require(len(group.members) > 1, "a block is a group of its own")
        require(THRESHOLD <= group.similarity <= 1, "the blocks of a group are not similar")
    n_statements = sum(len(rows) for rows in files.columns.get("statements", ()))
    if n_statements and n_statements <= FEW and files.n_nodes <= SMALL and len(data) % 4 == 1:
        defined = Definition(files, THRESHOLD, MIN_NODES).pairs()
        require(
            similar_spans(files, THRESHOLD, MIN_NODES) == defined, "blocks are not those of the definition"
        )


def _code(language: str) -> Target:
    entry = LANGUAGES[language]
    return FileTarget(
        entry.suffixes[0],
        cache(partial(read_seeds, language)),
        partial(check_code, language=language),
        damage=partial(mutate_text, syntaxes=(SYNTAX,)),
        needs=(entry.module,),
    )


CODE: dict[str, Target] = {language: _code(language) for language in LANGUAGES}
