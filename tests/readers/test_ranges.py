"""Ranges of files hold the same trees, columns and errors as the file they are of."""

import gzip
import itertools
import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treedot import Forest, read_trees
from treedot.errors import SourceError
from treedot.readers.on_bad import OnBad
from treedot.readers.ranges import FileRange, Reading, iter_range, split_file
from treedot.trees.writers import forest_file

TREES = [f"(S (NP (N w{i})) (VP v{i % 7}))" for i in range(300)]
TEXTS = {
    "trees.mrg": "\n".join(TREES),
    "pretty.mrg": "".join(f"{tree.replace(' (VP', chr(10) + '(VP')}\n\n" for tree in TREES),
    "one-line.txt": " ".join(TREES),
    "table.tsv": "id\ttree\n" + "".join(f"{i}\t{tree}\n" for i, tree in enumerate(TREES)),
    "table.jsonl": "\n".join(json.dumps({"tree": tree, "id": i}) for i, tree in enumerate(TREES)),
}


def read_in_ranges(path, size, format=None, on_bad=None):
    """Return the trees of all ranges, the columns, and the ranges."""
    how, ranges = Reading(format), split_file(str(path), format, size)
    forests, columns = [], {}
    for found in ranges:
        for forest, kept in iter_range(str(path), found, how, 16, OnBad(on_bad)):
            forests.append(Forest(forest.label, forest.arity, forest.offsets, forest.labels))
            for name, values in kept.items():
                columns.setdefault(name, []).extend(getattr(values, "to_pylist", lambda v=values: v)())
    return Forest.concat(forests), columns, ranges


def check_that_ranges_meet(ranges, end):
    assert ranges[0].begin == 0
    assert ranges[-1].end == end
    assert all(a.end == b.begin for a, b in itertools.pairwise(ranges))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("size", [1, 100, 5000, 10**9])
def test_the_ranges_of_a_text_hold_what_the_file_holds(tmp_path, name, size):
    (tmp_path / name).write_text(TEXTS[name])
    trees, columns, ranges = read_in_ranges(tmp_path / name, size)
    whole = read_trees(tmp_path / name)
    assert trees == whole
    assert columns == dict(whole.columns)
    check_that_ranges_meet(ranges, os.path.getsize(tmp_path / name))
    assert len(ranges) == 1 if size == 10**9 else len(ranges) > 1


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("packed", [1, 2, None])  # versions of packed forests, or texts
def test_the_ranges_of_a_table_hold_what_the_file_holds(tmp_path, suffix, packed):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path, rows = tmp_path / f"trees.{suffix}", 64
    columns = {"id": list(range(len(TREES)))}
    if packed != 1:
        columns["label"] = [f"class {k % 3}" for k in columns["id"]]
    if packed is not None:
        forest = Forest(*(lambda f: (f.label, f.arity, f.offsets, f.labels))(read_trees(TREES)), columns)
        table = forest.to_arrow().cast(
            pa.schema(
                [
                    ("__treedot_label__", pa.large_list(pa.string())),
                    ("__treedot_arity__", pa.large_list(pa.int32())),
                    *((name, pa.array(values).type) for name, values in columns.items()),
                ]
            )
        )
        if packed == 1:
            table = table.rename_columns(["label", "arity", *columns])
    else:
        table = pa.table({"tree": TREES, **columns})
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=rows)
    else:
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table, max_chunksize=rows)
    trees, found, ranges = read_in_ranges(path, 1)
    assert trees == read_trees(TREES)
    assert found == columns
    check_that_ranges_meet(ranges, 5)
    assert [r.rows for r in ranges] == [0, 64, 128, 192, 256]
    assert read_in_ranges(path, 10**9)[-1] == [FileRange(0, 5)]


def test_columns_of_tables_keep_their_types(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"tree": TREES[:2], "when": pa.array([1, None], pa.timestamp("ms", "UTC"))})
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as file:
        file.write_table(table)
    ((_, columns),) = iter_range(str(tmp_path / "t.arrow"), FileRange(0, 1), Reading(), 16, OnBad())
    assert columns["when"].equals(table["when"].chunk(0))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trees.mrg", "\n".join([*TREES[:50], "stray", *TREES[50:60], "(A ))", *TREES[60:], "(B (C"])),
        ("t.tsv", TEXTS["table.tsv"] + "1\t(A\n2\t3\t4\n" + TREES[0].join(["5\t", "\n"])),
        ("t.jsonl", TEXTS["table.jsonl"] + '\n{"tree": "(A"}\n7\n{"tree": "(A b)", "id": 1}'),
    ],
)
def test_errors_name_the_same_places_as_in_the_whole_file(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    errors = []
    whole = read_trees(tmp_path / name, on_bad=errors.append)
    assert errors
    found = []
    trees, _, ranges = read_in_ranges(tmp_path / name, 500, on_bad=found.append)
    assert len(ranges) > 1
    assert [str(error) for error in found] == [str(error) for error in errors]
    assert trees == whole


def test_errors_in_tables_name_the_same_rows(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "t.arrow"
    table = pa.table({"tree": [*TREES[:9], "(A", TREES[9], None], "id": range(12)})
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table, max_chunksize=4)
    errors = []
    trees, columns, _ = read_in_ranges(path, 1, on_bad=errors.append)
    assert trees == read_trees(TREES[:10])
    assert columns == {"id": [*range(9), 10]}
    assert [str(error).split(",")[0] for error in errors] == [f"{path} (row 10)", f"{path} (row 12)"]
    with pytest.raises(SourceError, match=r"row 10\)"):
        read_in_ranges(path, 1)


def outcome(read):
    """Return the trees and the errors of a file; columns aside, since a range may begin within a line."""
    errors = []
    try:
        trees = read(errors)
    except SourceError as error:
        trees = None
        errors.append(error)
    return trees, [re.sub(r"(:\d+):\d+ ", r"\1 ", str(error)) for error in errors]


@given(st.text(st.sampled_from("()ab \n"), max_size=60), st.integers(1, 20), st.booleans())
def test_any_text_reads_the_same_in_ranges(tmp_path_factory, text, size, skips):
    path = tmp_path_factory.getbasetemp() / "any.mrg"
    path.write_text(text)

    def in_ranges(errors):
        trees, _, _ = read_in_ranges(path, size, on_bad=errors.append if skips else None)
        if not len(trees):
            raise SourceError(f"{path} contains no tree")
        return trees

    whole = outcome(lambda errors: read_trees(path, on_bad=errors.append if skips else None))
    assert outcome(in_ranges) == whole


def test_what_cannot_be_cut_is_one_range(tmp_path):
    (tmp_path / "a.csv").write_text("tree\n" + '"(A b)"\n' * 100)
    (tmp_path / "a.mrg.gz").write_bytes(gzip.compress("\n".join(TREES).encode()))
    (tmp_path / "a.py").write_text("def f(): pass\n" * 100)
    for path in tmp_path.iterdir():
        trees, _, ranges = read_in_ranges(path, 10)
        assert ranges == [FileRange(0, path.stat().st_size)]
        assert len(trees) == len(read_trees(path))


def test_the_format_can_be_given(tmp_path):
    (tmp_path / "trees").write_text(TEXTS["table.tsv"])
    trees, _, ranges = read_in_ranges(tmp_path / "trees", 100, "tsv")
    assert len(ranges) > 1
    assert len(trees) == 300


def test_files_that_treedot_writes_can_be_cut(tmp_path):
    pytest.importorskip("pyarrow")
    forest = read_trees(TREES)
    for name in ("a.parquet", "a.arrow"):
        with forest_file(tmp_path / name) as writer:
            for _ in range(30):
                writer.write(forest)
        trees, _, ranges = read_in_ranges(tmp_path / name, 1)
        assert len(ranges) == 3
        assert trees == Forest.concat([forest] * 30)
