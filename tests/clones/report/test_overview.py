"""How much is copied, by files and folders: against a plain count of lines."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import examples
from treedot.clones.report.overview import MAX_FOLDERS, overview

FILES = [
    f"{top}{inner}{name}.py" for top in ("", "a/", "/b/") for inner in ("", "c/d/", "e/") for name in "xy"
]
SPANS = st.builds(
    lambda file, start, length: (file, start, start + length),
    st.sampled_from(FILES),
    st.integers(1, 30),
    st.integers(0, 12),
)


@settings(max_examples=examples(40))
@given(st.lists(st.lists(SPANS, min_size=2, max_size=5), max_size=6))
def test_every_line_in_a_copy_counts_once(groups):
    lines = defaultdict(set)
    for file, start, end in (span for group in groups for span in group):
        lines[file].update(range(start, end + 1))
    found = overview(groups, dict.fromkeys(FILES, 100))
    assert {file.file: file.copied for file in found.files} == {
        file: len(some) for file, some in lines.items()
    }
    assert found.copied == sum(map(len, lines.values()))
    assert (found.groups, found.lines) == (len(groups), 100 * len(FILES))
    assert [file.copied for file in found.files] == sorted(
        (file.copied for file in found.files), reverse=True
    )
    for file in found.files:
        assert file.groups == sum(any(span[0] == file.file for span in group) for group in groups)


@settings(max_examples=examples(40))
@given(st.lists(st.lists(SPANS, min_size=2, max_size=5), min_size=1, max_size=6))
def test_every_file_lies_in_one_folder_and_every_pair_of_members_in_a_square(groups):
    found = overview(groups, {})
    places = {
        file.file: [k for k, name in enumerate(found.folders) if holds(name, file.file)]
        for file in found.files
    }
    assert all(len(inside) == 1 for inside in places.values())
    assert (found.more_folders, found.lines) == (0, 0)
    expected = defaultdict(lambda: [0, 0])
    for group in groups:
        inside = [places[file][0] for file, _, _ in group]
        pairs = {tuple(sorted((a, b))) for i, a in enumerate(inside) for b in inside[:i]}
        for pair in pairs:
            expected[pair][0] += min(end - start + 1 for _, start, end in group)
            expected[pair][1] += 1
    assert {pair: list(shared) for pair, shared in found.shared.items()} == expected


def holds(folder, file):
    """Return whether a folder of an overview holds a file."""
    start = folder.removesuffix("*") if folder.endswith("*") else f"{folder}/"
    return file.startswith(start) and not (folder.endswith("*") and "/" in file[len(start) :])


def test_the_heaviest_folder_is_divided_while_there_is_room_and_a_single_one_is_entered():
    groups = [
        [("src/p/heavy/one/a.py", 1, 90), ("src/p/heavy/b.py", 1, 90)],
        [("src/p/light/x/c.py", 1, 9)] * 2,
    ]
    assert overview(groups, {}).folders == ("src/p/heavy/*", "src/p/heavy/one", "src/p/light")
    assert overview([[("a/b/c.py", 1, 2), ("a/b/d.py", 1, 2)]], {}).folders == ("a/b/*",)


def test_of_many_folders_those_with_most_copied_lines_are_shown():
    groups = [[(f"f{k:02}/a.py", 1, k), (f"f{k:02}/b.py", 1, k)] for k in range(1, 31)]
    found = overview(groups, {})
    assert found.folders == tuple(f"f{k}" for k in range(31 - MAX_FOLDERS, 31))
    assert (found.more_folders, len(found.shared)) == (30 - MAX_FOLDERS, MAX_FOLDERS)


def test_without_groups_nothing_is_copied():
    found = overview([], {"a.py": 7})
    assert (found.groups, found.members, found.copied, found.files, found.shared) == (0, 0, 0, (), {})
    assert found.lines == 7
