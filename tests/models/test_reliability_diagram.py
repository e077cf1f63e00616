"""The reliability diagram: where its points are, how large, and what they say."""

import re
from xml.etree import ElementTree

import pytest

from treedot._pages.plot import LEFT, SIZE, place
from treedot.models.probability_evaluation import ReliabilityBin
from treedot.models.reliability_diagram import HIGH, LARGEST, LOW, SMALLEST, reliability_diagram

BINS = [
    ReliabilityBin(0.9, 1.0, n_trees=400, confidence=0.95, accuracy=0.9, interval=(0.87, 0.93)),
    ReliabilityBin(0.5, 0.6, n_trees=100, confidence=0.55, accuracy=0.5, interval=(0.4, 0.6)),
    ReliabilityBin(0.2, 0.3, n_trees=1, confidence=0.25, accuracy=0.0, interval=(0.0, 0.79)),
]


def drawn(bins):
    """Return the circles and the whiskers of a diagram."""
    (svg,) = re.findall("<svg.*?</svg>", reliability_diagram(bins), re.DOTALL)
    nodes = list(ElementTree.fromstring(re.sub(' xmlns="[^"]*"', "", svg)).iter())
    return [node for node in nodes if node.tag == "circle"], [
        node for node in nodes if node.get("class") == "whisker"
    ]


def height(share):
    return SIZE - place(share, LOW, HIGH)


def test_a_point_lies_at_its_probability_and_accuracy_with_its_interval():
    circles, whiskers = drawn(BINS)
    assert len(circles) == len(whiskers) == len(BINS)
    for one, circle, whisker in zip(BINS, circles, whiskers, strict=True):
        x = LEFT + place(one.confidence, LOW, HIGH)
        assert float(circle.get("cx")) == pytest.approx(x, abs=0.06)
        assert float(circle.get("cy")) == pytest.approx(height(one.accuracy), abs=0.06)
        assert float(whisker.get("x1")) == float(whisker.get("x2")) == float(circle.get("cx"))
        ends = sorted(float(whisker.get(name)) for name in ("y1", "y2"))
        assert ends == pytest.approx(sorted(map(height, one.interval)), abs=0.06)


def test_a_perfect_bin_lies_on_the_diagonal():
    circles, _ = drawn(
        [ReliabilityBin(0.0, 1.0, 10, share, share, (share, share)) for share in (0.0, 0.3, 1.0)]
    )
    sums = [float(circle.get("cx")) - LEFT + float(circle.get("cy")) for circle in circles]
    assert sums == pytest.approx([SIZE] * 3, abs=0.11)


def test_the_area_of_a_point_grows_with_its_trees_down_to_a_smallest_size():
    radius = [float(circle.get("r")) for circle in drawn(BINS)[0]]
    assert radius == [LARGEST, LARGEST / 2, SMALLEST]


def test_a_point_says_what_it_is():
    said = [circle.find("title").text for circle in drawn(BINS)[0]]
    assert said[0] == "mean probability 0.950, accuracy 0.900, 400 trees"


def test_without_bins_only_the_frame_is_drawn():
    assert drawn([]) == ([], [])
