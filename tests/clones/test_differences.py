"""What differs between two texts, in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treedot import Forest, Tree
from treedot.clones import DuplicateGroup
from treedot.clones.differences import Difference, difference
from treedot.clones.report.findings import findings
from treedot.languages import LANGUAGES

TEXTS = st.lists(
    st.lists(st.sampled_from(["x", "y", "=", "(", ")", "1", "if"]), max_size=4).map(" ".join), max_size=6
)

FUNCTION = """\
def area(width, depth):
    if width < 0:
        raise ValueError("width")
    return width * depth
""".splitlines()


def renamed(text: list[str], old: str, new: str) -> list[str]:
    return [line.replace(old, new) for line in text]


@given(TEXTS, TEXTS)
def test_differences_are_counted_alike_from_both_sides(a, b):
    there, back = difference(a, b), difference(b, a)
    assert 0 <= there.different <= there.lines <= len(a) + len(b)
    assert (there.different == 0) == (back.different == 0)
    assert difference(a, a) == Difference(sum(1 for line in a if line), 0, ())


def test_layout_is_no_difference():
    other = [line.replace("    ", "\t") for line in FUNCTION]
    other[1:1] = ["", "  "]
    assert str(difference(FUNCTION, other)) == "the same text"


def test_renamed_names_are_told_and_their_lines_aligned():
    other = renamed(FUNCTION, "width", "height")
    assert difference(FUNCTION, other) == Difference(4, 4, (("width", "height"),))
    other.insert(1, "    # of one side")
    found = difference(FUNCTION, other)
    assert found == Difference(5, 5, (("width", "height"),))
    assert str(found) == "5 of 5 lines differ; 1 name renamed (width -> height)"


def test_the_most_frequent_names_come_first_and_the_rest_is_counted():
    other = FUNCTION
    for old in ("area", "ValueError", "depth", "width"):
        other = renamed(other, old, f"new_{old}")
    assert str(difference(FUNCTION, other)) == (
        "4 of 4 lines differ; 4 names renamed (width -> new_width, depth -> new_depth, area -> new_area, …)"
    )


def test_a_number_is_no_name_and_a_line_more_is_one_difference():
    assert str(difference(FUNCTION, renamed(FUNCTION, "0", "7"))) == "1 of 4 lines differ"
    assert str(difference(FUNCTION, FUNCTION[:2])) == "2 of 4 lines differ"


def test_words_of_the_language_are_no_names():
    a = ["for x in xs:", "    if x and True:", "        break"]
    b = ["for y in xs:", "    if y or z:", "        continue"]
    assert difference(a, b, LANGUAGES["python"]) == Difference(3, 3, (("x", "y"),))


@pytest.mark.parametrize("language", LANGUAGES)
def test_keywords_are_those_of_the_language_of_the_members(language):
    keyword = sorted(LANGUAGES[language].keywords)[0]
    texts = {"a": [f"{keyword} x"], "b": ["other y"]}
    places = {"file": ["a", "b"], "start": [1, 1], "end": [1, 1], "language": [language] * 2}
    forest = Forest.from_trees([Tree.parse("(A b)")] * 2, places)
    group = DuplicateGroup((0, 1), 1.0, 1.0, 1.0, 1.0, 2, "renamed")
    (found,) = findings(forest, [group], texts.__getitem__)
    assert found.difference == Difference(1, 1, (("x", "y"),))


@pytest.mark.parametrize(
    ("language", "comment"), [("python", "# {}"), ("java", "/* the {} */"), ("ruby", "# {}"), ("go", "// {}")]
)
def test_words_of_comments_are_no_names(language, comment):
    a, b = ([comment.format(name), f"f(x) {comment.format(name)}"] for name in ("alpha", "beta"))
    assert difference(a, b, LANGUAGES[language]) == Difference(1, 0, (), in_comments=True)
    assert str(difference(a, b, LANGUAGES[language])) == "only layout or comments differ"
    b[1] = b[1].replace("x", "y")
    assert difference(a, b, LANGUAGES[language]) == Difference(1, 1, (("x", "y"),))
    assert str(difference(a, a, LANGUAGES[language])) == "the same text"


def changes(texts: list[list[str]], band: str, agreement: float | None) -> str:
    places = {"file": [0, 1], "start": [1, 1], "end": [9, 9], "language": ["python"] * 2}
    forest = Forest.from_trees([Tree.parse("(A b)")] * 2, places)
    group = DuplicateGroup((0, 1), 1.0, 1.0, agreement, 1.0, 2, band)
    (found,) = findings(forest, [group], texts.__getitem__)
    return found.changes


def test_layout_is_all_that_differs_only_where_names_are_known_to_be_equal():
    wrapped = [["f(x, y)"], ["f(", "    x, y", ")"]]
    assert changes(wrapped, "identical", 1.0) == "only layout or comments differ"
    renamed = [["f(x, y)"], ["f(x, z)"]]
    assert changes(renamed, "identical", None) == "1 of 1 lines differ; 1 name renamed (y -> z)"
    commented = [["f(x, y)"], ["f(x, y)  # z"]]
    for band, agreement in (("identical", None), ("identical", 1.0), ("renamed", 0.9)):
        assert changes(commented, band, agreement) == "only layout or comments differ"
    assert changes([["f(x)"]] * 2, "identical", 1.0) == "the same text"
