"""Source code of every language as a target."""

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
from treedot.languages import LANGUAGES
from treedot.parameters import CODE_UNITS, POLICIES
from treedot.readers import CodeSettings, parse_code

MAX_SECONDS = 2.0  # per text: some keep a parser busy for hours


def check_code(path: Path, language: str) -> None:
    """Read source code with some settings, and again with all texts kept: both must find the same units."""
    data = path.read_bytes()
    choices = {"unit": CODE_UNITS, "identifiers": POLICIES, "literals": POLICIES}
    settings: dict[str, Any] = choose(data, choices) | {"blurred": True, "max_seconds": MAX_SECONDS}
    forest = read_code(path, language=language, **settings)
    check_forest(forest)
    check_places(forest)
    kept = parse_code(
        data, language, settings=CodeSettings(settings["unit"], max_seconds=settings["max_seconds"])
    )
    check_forest(kept)
    if len(forest) or len(kept):
        _check_same_units(forest, kept, settings)
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
