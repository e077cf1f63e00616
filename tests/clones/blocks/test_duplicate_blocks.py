"""Similar blocks inside larger functions: which pairs are found, and which are reported."""

import random
import sqlite3

import numpy as np
import pytest
from fuzz.seeds import read_seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies import examples
from treedot import Forest, find_duplicates
from treedot.clones.blocks import duplicate_blocks, equal_runs, find_duplicate_blocks, reference
from treedot.clones.blocks.duplicate_blocks import similar_spans
from treedot.errors import ParameterError
from treedot.languages import LANGUAGES
from treedot.readers import CodeSettings, parse_code
from treedot.readers.code.parse_cache import FILE, ParseCache, keeping_parsed

FILES = CodeSettings("file", "blur", "blur", blurred=True, statements=True)
BOTH = CodeSettings("function", "blur", "blur", 20, blurred=True, statements=True)

SIMPLE = ["a = b", "a = f(b, c)", "a.b[c] = d + 1", "f(a, b=c)", "return a", "a += [b for b in c if d]"]
COMPOUND = ["if a > b:", "for a in f(b):", "while not a:", "with a.b(c) as d:", "def f(a, b=c):"]

BLOCK = [
    "total = sum(price * count for price, count in items if count)",
    "if total > limit:",
    "    raise ValueError(f'{total} exceeds {limit}')",
    "for item in items:",
    "    item.total = [total, limit][item.count % 2]",
    "log.info('total %d', total)",
]
FILLERS = (  # statements of different functions
    ["x = {a: b, **{c: [d] for d in e}}", "assert a[b:c], (a, b)", "print(*x, sep=y, end=z or a)"],
    ["del a[b:], c.d", "a @= ~b // -c", "yield from (a if b else c for d in e)"],
    ["while a is not b:", "    c ^= d << e", "x, *y = lambda z: z[0]"],
)


@st.composite
def programs(draw, depth=0):
    """Return the lines of a program whose statements repeat often."""
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        if depth < 3 and draw(st.integers(0, 3)) == 0:
            lines.append(draw(st.sampled_from(COMPOUND)))
            lines += ["  " + line for line in draw(programs(depth + 1))]
        else:
            lines.append(draw(st.sampled_from(SIMPLE)))
    return lines


def edited(lines: list[str], seed: int) -> list[str]:
    """Return lines of which some simple statements are replaced by others."""
    chance = random.Random(seed)

    def replaced(line: str) -> str:
        indent = line[: len(line) - len(line.lstrip())]
        return line if line.endswith(":") or chance.random() < 0.8 else indent + chance.choice(SIMPLE)

    return [replaced(line) for line in lines]


def function(name: str, lines: list[str], *more: str) -> str:
    return "".join(f"{line}\n" for line in [f"def {name}(a, b):", *more, *("    " + line for line in lines)])


def parsed(*sources: str, language: str = "python", settings: CodeSettings = FILES) -> Forest:
    return Forest.concat(
        parse_code(source, language, file=f"{k}", settings=settings) for k, source in enumerate(sources)
    )


def test_a_block_ends_at_an_ignored_function():
    ignored = ["def left_out(a):", "    # treedot: ignore", "    return [a, a[a], {a: a}, f(a, b=a)]"]
    lines = [*BLOCK, *ignored, *BLOCK]
    files = parsed(*["".join(f"{line}\n" for line in lines)] * 2)
    spans = similar_spans(files, 0.7, 20)
    assert spans == reference.Definition(files, 0.7, 20).pairs()
    found = find_duplicate_blocks(files, min_nodes=20)
    ends = {(found.trees.columns["start"][i], found.trees.columns["end"][i]) for i in range(len(found.trees))}
    assert ends
    assert all(end <= len(BLOCK) or start > len(BLOCK) + len(ignored) for start, end in ends)


def places(found) -> list[list[tuple[str, int, int]]]:
    columns = [found.trees.columns[name] for name in ("file", "start", "end")]
    return [[tuple(column[i] for column in columns) for i in group.members] for group in found.groups]


@settings(max_examples=examples(40), deadline=None)
@given(programs(), programs(), st.integers(0, 9), st.sampled_from([0.5, 0.7, 0.9]))
def test_the_pairs_are_those_of_the_definition(one, other, seed, threshold):
    copied = "\n".join([*other, *edited(one, seed), "last(1)"])
    files = parsed("\n".join([*one, *other]), copied)
    assert similar_spans(files, threshold, 15) == reference.Definition(files, threshold, 15).pairs()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pairs_are_those_of_the_definition_in_every_language(language):
    texts = [text.decode(errors="replace") for text in read_seeds(language)]
    files = parsed("\n".join(texts), "\n".join(reversed(texts)), texts[0] * 2, language=language)
    pairs = similar_spans(files, 0.6, 15)
    assert pairs == reference.Definition(files, 0.6, 15).pairs()
    assert pairs


def test_a_block_pasted_into_another_function_is_found_although_it_was_renamed_and_edited():
    renamed = [line.replace("total", "cost").replace("item", "part") for line in BLOCK]
    pasted = [*renamed[:3], "note = 1", *renamed[3:]]
    one = function("f", [*BLOCK, "while a:", "    a = g(a)[b:]", "    del a[0]"])
    other = function("g", ["x = {a: b}", "assert a is not b, x", "print(x, a, sep=b)", *pasted])
    found = find_duplicate_blocks(parsed(one, other, settings=BOTH)[[1, 3]])
    assert places(found) == [[("0", 2, 7), ("1", 5, 11)]]
    (group,) = found.groups
    assert group.band == "near"
    assert 0.7 < group.similarity < 1


def test_copies_of_a_block_take_one_pair_less_in_the_list():
    found = find_duplicate_blocks(parsed(*(function("f", [*lines, *BLOCK]) for lines in FILLERS)))
    assert places(found) == [[("0", 5, 10), ("1", 5, 10), ("2", 5, 10)]]
    assert found.groups[0].band == "identical"


def test_blocks_in_functions_of_a_group_are_not_reported_again():
    forest = parsed(function("f", BLOCK), function("g", [*BLOCK, "return total"]), settings=BOTH)
    is_file = np.array([rows is not None for rows in forest.columns["statements"]])
    functions, files = forest[np.flatnonzero(~is_file)], forest[np.flatnonzero(is_file)]
    groups = find_duplicates(functions, min_nodes=20)
    assert len(groups) == 1
    assert find_duplicate_blocks(files, functions=functions, groups=groups).groups == []
    found = find_duplicate_blocks(files, functions=functions)
    assert len(found.groups) == 1


def test_a_table_that_shares_less_than_50_bits_comes_last_although_its_score_is_higher():
    table = "\n".join(["prices = {", *["    'a': [(1, -2), 'b', x, {x: x}],"] * 20, "}\n"])
    functions = (function("f", [*lines, *BLOCK]) for lines in FILLERS[:2])
    found = find_duplicate_blocks(parsed(table, table, *functions))
    block, last = found.groups
    assert places(found) == [[("2", 5, 10), ("3", 5, 10)], [("0", 1, 22), ("1", 1, 22)]]
    assert last.score > block.score
    assert 35 < last.bits < 45


def test_a_block_has_the_name_of_the_function_around_it():
    sources = function("f", [*FILLERS[0], *BLOCK]), function("g", [*BLOCK, *FILLERS[1]])
    forest = parsed(*sources, settings=BOTH)
    found = find_duplicate_blocks(forest[[1, 3]], functions=forest[[0, 2]])
    assert found.trees.columns["name"] == ["f", "g"]
    assert [found.trees.columns[name] for name in ("start", "language")] == [[5, 2], ["python"] * 2]


def test_a_run_in_too_many_places_is_reported_and_found_in_consecutive_places(monkeypatch):
    monkeypatch.setattr(equal_runs, "MAX_PLACES", 3)
    long = [f"x[{', '.join('a' * k)}] = f({', '.join('b' * (k % 5))})" for k in range(1, 20)]
    sources = [function("f", [*long, f"x{k} = " + "[" * k + "]" * k]) for k in range(1, 6)]
    limited = []
    found = find_duplicate_blocks(parsed(*sources), on_limit=limited.append)
    assert limited
    assert {file for group in places(found) for file, _, _ in group} == {"0", "1", "2", "3", "4"}


def in_c(name: str, *lines: str) -> str:
    return "\n".join([f"void {name}(int a) {{", *lines, "}"])


@pytest.mark.slow
def test_code_in_another_language_does_not_make_a_block_rare():
    block = [
        "int b = a * 2 + g(a);",
        "if (b > 3) {",
        "  h(b, a);",
        "}",
        "while (a < b) { a += k[a] ? 1 : 2; }",
    ]
    alone = parsed(in_c("f", *block, "s.x = 1;"), in_c("g", "return;", *block), language="c")
    python = parsed(*(function(f"f{k}", [*SIMPLE, *COMPOUND[:1], "    pass"]) for k in range(40)))
    with_python = Forest.concat([alone, python])
    (one,), (other, *_) = (find_duplicate_blocks(files).groups for files in (alone, with_python))
    assert one.members == other.members
    assert 0.9 * one.bits < other.bits <= one.bits  # less for constructs that both languages have
    assert similar_spans(with_python, 0.6, 15) == reference.Definition(with_python, 0.6, 15).pairs()


def test_without_files_or_statements_there_are_no_blocks():
    assert find_duplicate_blocks(parsed()).groups == []
    assert find_duplicate_blocks(parsed("", "x = 1\n")).groups == []


def test_files_without_the_column_of_statements_are_refused():
    files = parse_code("x = 1\n", "python", settings=CodeSettings("file"))
    with pytest.raises(ParameterError, match="statements=True"):
        find_duplicate_blocks(files)


def test_the_groups_do_not_depend_on_the_order_of_the_files():
    sources = [function("f", [*FILLERS[0], *BLOCK]), function("g", [*BLOCK, *FILLERS[1]]), "x = 1\n"]
    files = parsed(*sources)
    expected = places(find_duplicate_blocks(files))
    assert sorted(map(sorted, places(find_duplicate_blocks(files[[2, 1, 0]])))) == sorted(
        map(sorted, expected)
    )
    assert expected


@pytest.fixture
def searched(monkeypatch):
    """The thresholds of all searches."""
    thresholds = []
    search = duplicate_blocks.similar_runs

    def watched(statements, productions, equal, threshold, min_nodes):
        thresholds.append(threshold)
        return search(statements, productions, equal, threshold, min_nodes)

    monkeypatch.setattr(duplicate_blocks, "similar_runs", watched)
    return thresholds


def kept(folder, files, **how):
    """Return the blocks that are found with a cache."""
    with keeping_parsed(ParseCache(folder)):
        return find_duplicate_blocks(files, **how)


def contents(found):
    """Return everything in a result, in types that can be compared."""
    columns = dict(found.trees.columns)
    columns["blurred"] = [list(hashes) for hashes in columns["blurred"]]
    return found.groups, list(map(str, found.trees)), columns


@settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(programs(), programs(), st.integers(0, 9), st.sampled_from([0.3, 0.7, 0.9]))
def test_a_kept_search_gives_the_same_without_searching(tmp_path, searched, one, other, seed, threshold):
    forest = parsed(
        "\n".join([*one, *other, *BLOCK]), "\n".join([*BLOCK, *edited(other, seed)]), settings=BOTH
    )
    is_file = np.array([rows is not None for rows in forest.columns["statements"]])
    functions, files = forest[np.flatnonzero(~is_file)], forest[np.flatnonzero(is_file)]
    how = {"threshold": threshold, "min_nodes": 12, "functions": functions}
    how["groups"] = find_duplicates(functions, min_nodes=20, threshold=threshold)
    plain = contents(find_duplicate_blocks(files, **how))
    assert contents(kept(tmp_path, files, **how)) == plain
    before = len(searched)
    assert contents(kept(tmp_path, files, **how)) == plain
    assert len(searched) == before


def two_functions():
    """Return the functions and the files of two files with a common block, and a group of its functions."""
    forest = parsed(function("f", BLOCK), function("g", [*BLOCK, "return total"]), settings=BOTH)
    return forest[[0, 2]], forest[[1, 3]], find_duplicates(forest[[0, 2]], min_nodes=20)


def test_whatever_determines_the_blocks_is_searched_when_it_changes(tmp_path, searched):
    functions, files, groups = two_functions()
    moved, shifted = files[[0, 1]], files[[0, 1]]
    moved.columns["statements"] = [rows + np.array([0, 1, 1, 0, 0]) for rows in files.columns["statements"]]
    shifted.columns["statements"] = [rows[:-1] for rows in files.columns["statements"]]
    others = parsed(function("f", BLOCK), function("g", [*BLOCK, "return 1 + total"]))
    searches = [
        (files, {}),
        (files, {"threshold": 0.71}),
        (files, {"min_nodes": 41}),
        (files, {"functions": functions, "groups": groups}),
        (moved, {}),
        (shifted, {}),
        (others, {}),
    ]
    found = [kept(tmp_path, trees, **how) for _ in range(2) for trees, how in searches]
    assert len(searched) == 7
    assert [places(blocks) for blocks in found[:7]] == [places(blocks) for blocks in found[7:]]
    assert places(found[0])
    assert not found[3].groups
    assert places(found[4]) == [[(file, start + 1, end + 1) for file, start, end in places(found[0])[0]]]


def test_names_of_files_and_functions_are_not_kept(tmp_path, searched):
    functions, files, _ = two_functions()
    assert kept(tmp_path, files, functions=functions).trees.columns["name"] == ["f", "g"]
    for forest in (functions, files):
        forest.columns["file"] = ["a.py", "b.py"]
    functions.columns["name"] = ["h", "i"]
    found = kept(tmp_path, files, functions=functions)
    assert len(searched) == 1
    assert [file for file, _, _ in places(found)[0]] == ["a.py", "b.py"]
    assert found.trees.columns["name"] == ["h", "i"]


def test_which_files_hold_the_reported_functions_counts(tmp_path, searched):
    functions, files, groups = two_functions()
    assert not kept(tmp_path, files, functions=functions, groups=groups).groups
    functions.columns["file"] = ["c.py", "d.py"]
    assert kept(tmp_path, files, functions=functions, groups=groups).groups
    assert len(searched) == 2


@pytest.mark.parametrize("place", [0, 17, 30, -1])
def test_a_damaged_entry_is_ignored_and_replaced(tmp_path, searched, place):
    _, files, _ = two_functions()
    first = contents(kept(tmp_path, files))
    with sqlite3.connect(tmp_path / FILE) as database:
        ((entry,),) = database.execute("SELECT entry FROM found").fetchall()
        spoiled = bytearray(entry)
        spoiled[place] ^= 1
        database.execute("UPDATE found SET entry = ?", (bytes(spoiled),))
    database.close()
    for _ in range(2):
        assert contents(kept(tmp_path, files)) == first
    assert len(searched) == 2


def test_the_entry_of_functions_is_not_one_of_blocks(tmp_path, searched):
    _, files, _ = two_functions()
    with keeping_parsed(ParseCache(tmp_path)):
        find_duplicates(files)
        assert find_duplicate_blocks(files).groups
    assert len(searched) == 1


def test_a_reached_limit_is_reported_again(tmp_path, monkeypatch):
    monkeypatch.setattr(equal_runs, "MAX_PLACES", 1)
    monkeypatch.setattr(equal_runs, "SEED_NODES", (12,))
    counts = []
    for _ in range(2):
        kept(tmp_path, two_functions()[1], on_limit=counts.append)
    assert counts[0] > 0
    assert counts == counts[:1] * 2
