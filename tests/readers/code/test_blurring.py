"""Blurring trees afterwards gives what reading them blurred gives."""

from pathlib import Path

import pytest

from strategies import random_forest
from treedot import Forest
from treedot.languages import LANGUAGES
from treedot.readers import CodeSettings, parse_code
from treedot.readers.code.blurring import blurred

SEEDS = Path(__file__).parents[3] / "fuzz" / "seeds"


def parsed(text, language, **settings):
    return parse_code(text, language, settings=CodeSettings(unit="file", **settings))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_gives_the_trees_that_are_read_blurred(language):
    text = (SEEDS / f"{language}.txt").read_text(encoding="utf-8")
    kept = parsed(text, language)
    expected = parsed(text, language, identifiers="blur", literals="blur")
    assert kept != expected
    assert list(blurred(kept)) == list(expected)


def test_languages_are_blurred_each_in_its_way():
    texts = {"python": "def f(a):\n    return g(a, 'x', 1)\n", "ruby": "def f(a) g(a, :x, 1) end\n"}
    kept = Forest.concat([parsed(text, language) for language, text in texts.items()])
    expected = [
        parsed(text, language, identifiers="blur", literals="blur")[0] for language, text in texts.items()
    ]
    assert list(blurred(kept)) == expected


def test_trees_that_are_not_code_stay_as_they_are():
    forest = random_forest(0, 5)
    assert list(blurred(forest)) == list(forest)
