"""Every part of ``benchmarks.decoding`` on a few trees, and the figure that is drawn from it."""

import gzip
import json
import runpy
from pathlib import Path

import pytest

from benchmarks import decoding

TREES = (
    "(S (NP (DT the) (NN tree)) (VP (VBZ grows)))",
    "(S (NP (DT a) (NN bird)) (VP (VBZ sings)))",
    "(S (NP (NN bird)) (VP (VBZ sees) (NP (DT a) (NN tree))))",
)
NUMBER_OF_LINES = {
    "bars": 6,
    "grid": 13,
    "compositions": 6,
    "certificates": 7,
    "unknown": 3,
    "growth": 3,
    "fragments": 3,
}
MAKE_PICTURE = Path(__file__).parents[2] / "docs" / "images" / "make_decoding.py"

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path):
    """Return a folder with a few trees for every corpus."""
    for name in ("qc_test", "qc_train", "questionbank", "ptb_sample", "craft"):
        (tmp_path / f"{name}.tsv.gz").write_bytes(gzip.compress("\n".join(("tree", *TREES)).encode()))
    return tmp_path


def measured(data, part):
    target = data / f"{part}.json"
    decoding.main(["--data", str(data), "--parts", part, "-o", str(target)])
    return json.loads(target.read_text())


def test_every_part_is_tried():
    assert NUMBER_OF_LINES.keys() == set(decoding.PARTS)


@pytest.mark.parametrize("part", decoding.PARTS)
def test_small_trees_are_read_back_in_every_part(part, data, monkeypatch):
    monkeypatch.setattr(decoding, "SEEDS", 1)
    found = measured(data, part)
    assert [line["part"] for line in found] == [part] * NUMBER_OF_LINES[part]
    for line in found:
        if "exact" in line:
            assert line["exact"] == 1
            assert line["wrong certificates"] == 0
        if part == "unknown":
            assert line["certified"] == 0
        if part == "growth":
            assert line.keys() >= {"ms of the first", "ms of one more"}
        if part == "fragments":
            assert 0 < line["scatter of productions"] < 3


def test_the_figure_is_drawn_from_the_grid(data):
    pytest.importorskip("matplotlib")
    measured(data, "grid")
    picture = data / "decoding.png"
    runpy.run_path(str(MAKE_PICTURE))["draw"](data / "grid.json", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
