"""The benchmark of textual entailment, on next to nothing."""

import gzip

import pytest

from benchmarks import entailment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder of small sets, in which the hypothesis follows if its subject is that of the text."""
    folder = tmp_path_factory.mktemp("corpora")
    for name in entailment.SETS:
        for part in ("dev", "test"):
            lines = ["label\ttext_tree\thypothesis_tree", *map(line, range(24))]
            (folder / f"{name}_{part}.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


def line(k):
    subject, other = f"n{k % 7}", f"m{k % 5}"
    asked, verb = subject if k % 2 else other, "ran" if k % 3 == 0 else "saw"
    text = f"(S (NN {subject}) (VP (VBD saw) (NN {other})))"
    return f"{'YES' if k % 2 else 'NO'}\t{text}\t(S (NN {asked}) (VBD {verb}))"


def test_every_method_has_a_line_and_links_show_the_subject(data, capsys):
    methods = ["overlap", "rows", "rows, plain", "exact", "exact, product"]
    entailment.main(["--data", str(data), "--methods", *methods])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[0].removeprefix("| ") for line in lines] == methods
    mean = {method: float(line[7]) for method, line in zip(methods, lines, strict=True)}
    assert mean["rows"] == mean["exact"] == mean["exact, product"] == 1.0
    assert mean["overlap"] < 0.8


def test_settings_are_chosen_for_all_sets_together():
    tried = [{(0.1, 1.0): 0.5, (0.2, 1.0): 0.7}, {(0.1, 1.0): 0.8, (0.2, 1.0): 0.7}]
    method = entailment.Method(lambda task: tried[task], lambda task, setting: 0.0)
    assert entailment.chosen(method, [0, 1]) == (0.2, 1.0)


def test_a_given_setting_is_not_chosen(data, capsys, monkeypatch):
    asked = []
    method = entailment.Method(tried=None, tested=lambda task, setting: asked.append(setting) or 0.5)
    monkeypatch.setitem(entailment.METHODS, "dense", method)
    entailment.main(["--data", str(data), "--methods", "dense", "--setting", "0.4", "0.1"])
    assert asked == [(0.4, 0.1)] * len(entailment.SETS)
    assert capsys.readouterr().out.splitlines()[2].startswith("| dense | 0.4 | 0.1 | .500 |")
