"""Sequences of edits through ``treedot dups --fail-on-new``; ``python -m fuzz.gate`` runs many more."""

import shutil
from random import Random

import pytest

pytest.importorskip("tree_sitter_javascript")

from fuzz.gate import main, sequence

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]


@pytest.mark.parametrize("seed", ["1 1", "1 5", "2 32"])
def test_the_gate_fails_exactly_where_a_changed_function_has_a_new_partner(tmp_path, seed):
    verdicts = list(sequence(Random(seed), tmp_path, steps=6))
    assert [verdict for verdict in verdicts if not verdict.is_right] == []
    assert {verdict.expected for verdict in verdicts} == {0, 1}


def test_the_command_says_how_many_verdicts_there_were(capsys):
    assert main(["--sequences", "1", "--steps", "1", "--seed", "3"]) == 0
    assert "3 verdicts" in capsys.readouterr().out
