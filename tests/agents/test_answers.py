"""What coding agents are answered: short, with place, similarity and what differs; errors are sentences."""

import random

import pytest

from treedot.agents import answers
from treedot.agents.answers import MAX_ANSWER, compare, find_similar
from treedot.cli import main
from treedot.errors import TreedotError
from treedot.search.index.followed_index import FollowedIndex

TOTAL = """def total(numbers, least):
    found = 0
    for number in numbers:
        if number > least:
            found += number
    return found
"""
OTHER = """def shown(table):
    with open(table.name) as file:
        return [line.strip() for line in file]
"""
RENAMED = TOTAL.replace("total", "sum_of").replace("number", "x").replace("found", "s")


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("\n" + TOTAL)
    (tmp_path / "src/b.py").write_text(OTHER)
    assert main(["index", "src", "-o", "x.index"]) == 0
    return FollowedIndex("x.index")


def test_a_result_has_its_place_similarity_and_what_differs(index):
    assert find_similar(index, RENAMED).splitlines() == [
        "1. src/a.py:2-7 total: similarity 1.00, cosine 0.52",
        "   def total(numbers, least):",
        "   6 of 6 lines differ; 4 names renamed (s -> found, x -> number, xs -> numbers, …)",
    ]


def test_several_units_are_searched_one_by_one(index):
    text = find_similar(index, f"import os\n\n{TOTAL}\n{OTHER}")
    heads = [line for line in text.splitlines() if not line.startswith(" ")]
    assert heads == [
        "Similar to total:",
        "1. src/a.py:2-7 total: similarity 1.00, cosine 1.00",
        "Similar to shown:",
        "1. src/b.py:1-3 shown: similarity 1.00, cosine 1.00",
    ]
    many = "\n".join(OTHER.replace("shown", f"shown{i}") for i in range(5))
    assert "Only the first 3 of 5 units were searched for" in find_similar(index, many)


def test_an_inner_function_is_part_of_its_outer_one(index):
    nested = "def outer(a):\n    def inner(b):\n        return b\n    return inner(a)\n"
    assert "inner" not in find_similar(index, nested)


def test_code_without_a_function_is_searched_as_a_whole(index):
    assert find_similar(index, TOTAL.partition("\n")[2].replace("    return found\n", "")) != ""
    assert find_similar(index, "x = 1").startswith("Nothing similar among 2 function units")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"code": " \n"}, "code is empty: give source code"),
        ({"code": "def f(:\n  pass"}, "code has 1 syntax error as python code: give whole functions"),
        ({"code": "# only a comment"}, "code has no python code"),
        ({"code": "x = 1", "language": "cobol"}, "unknown language 'cobol': use one of python, javascript"),
        ({"code": "x = 1", "k": 0}, "k must be from 1 to 20, not 0"),
        ({"code": "x = 1\n" * 20_000}, r"code has 120,000 characters \(at most 100,000\): give a part of it"),
    ],
)
def test_errors_of_the_caller_are_clear(index, arguments, message):
    with pytest.raises(TreedotError, match=message):
        find_similar(index, **arguments)


@pytest.mark.parametrize("name", ["py", "Python", ".PY", " python "])
def test_languages_have_other_spellings(index, name):
    assert find_similar(index, TOTAL, name).startswith("1. src/a.py:2-7 total")


def test_answers_are_bounded(index, tmp_path):
    lines = [f"def {'long' * 60}{i}(numbers, least):" + TOTAL.partition(":")[2] for i in range(30)]
    (tmp_path / "src/many.py").write_text("\n".join(lines))
    index._due = 0
    text = find_similar(index, TOTAL, k=20)
    assert MAX_ANSWER - 200 < len(text) <= MAX_ANSWER
    assert text.endswith("… cut: ask for fewer results or smaller pieces")
    rows = [f"    x{i} = {i} * y" for i in range(300)]
    a = "def f(y):\n" + "\n".join(rows)
    b = "def f(y):\n" + "\n".join(row.replace("*", "+") for row in rows)
    assert len(compare(index, a, b)) <= MAX_ANSWER
    assert "… and 560 lines" in compare(index, a, b)
    assert "lines not compared: more than 400" in compare(index, a, f"{b}\n" + "    pass\n" * 200)


def test_places_and_lines_hold_no_control_characters(index, tmp_path):
    (tmp_path / "src/\x1b[2J.py").write_text(TOTAL.replace("    found = 0", "    found = 0  # \x1b[2J"))
    index._due = 0
    assert "\x1b" not in find_similar(index, RENAMED)
    assert "\x1b" not in compare(index, "src/\x1b[2J.py:1", RENAMED)


def test_two_pieces_are_compared(index):
    changed = TOTAL.replace("found += number", "found -= number")
    assert compare(index, TOTAL, changed).splitlines() == [
        "similarity 0.86, cosine 0.91; 1.00 of the names and literals agree",
        "edit distance: 1 node to insert, delete or relabel (27 and 27 nodes)",
        "1 of 6 lines differ",
        "-found += number",
        "+found -= number",
    ]


def test_a_place_of_the_index_is_compared(index):
    assert "similarity 1.00" in compare(index, "src/a.py:2-7 total", RENAMED)
    assert "the same text" in compare(index, "src/a.py:4", TOTAL)
    assert "similarity 0" in compare(index, "src/a.py:2", "src/b.py:1")
    with pytest.raises(TreedotError, match=r"src/a\.py: no unit contains line 1$"):
        compare(index, "src/a.py:1", TOTAL)
    with pytest.raises(TreedotError, match=r"b: /etc/secret\.py is not in the index: give code instead"):
        compare(index, TOTAL, "/etc/secret.py:1")
    with pytest.raises(TreedotError, match=r"a has \d+ syntax error"):  # never read as a file
        compare(index, "/etc/passwd:1", TOTAL)


def test_a_file_that_was_deleted_meanwhile_has_a_place_only(index, tmp_path):
    index.look()
    index._due = float("inf")
    (tmp_path / "src/a.py").unlink()
    assert find_similar(index, TOTAL) == "1. src/a.py:2-7 total: similarity 1.00, cosine 1.00"
    with pytest.raises(TreedotError, match="a is empty"):
        compare(index, "src/a.py:2", TOTAL)


def test_notes_tell_what_is_not_followed(index, tmp_path, monkeypatch):
    index._due, index.waiting = float("inf"), 3
    assert find_similar(index, TOTAL).endswith(
        "3 changed files are not read yet: ask again in a few seconds."
    )
    monkeypatch.chdir("/")
    elsewhere = FollowedIndex(tmp_path / "x.index")
    assert "not below the current folder, so edits are not followed" in find_similar(elsewhere, TOTAL)


def test_hostile_code_is_answered(index):
    """Damaged code is answered, or refused with one of treedot's errors."""
    choose, texts = random.Random(1), [TOTAL, OTHER, "(" * 3000, "[" * 500 + "]" * 500, "\0\ud800é" * 50]
    n_answers = 0
    for _ in range(200):
        text = list(choose.choice(texts))
        for _ in range(choose.randint(0, 5)):
            text[choose.randrange(len(text))] = chr(choose.choice([0, 9, 10, 40, 0xD800, 0x1F600, 0x2028]))
        language = choose.choice([None, "python", "java", "c", "\0"])
        try:
            n_answers += len(find_similar(index, "".join(text), language)) <= MAX_ANSWER
            n_answers += len(compare(index, "".join(text), TOTAL, language)) <= MAX_ANSWER
        except TreedotError:
            continue
    assert n_answers > 10
    assert answers.find_similar(index, TOTAL).startswith("1. src/a.py")
