import csv
import gzip
import json
import re
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from treedot import DistributedTreeVectorizer, Forest, Tree, iter_trees, read_trees, save_vectors
from treedot._storage import files
from treedot.cli import main
from treedot.errors import LimitError, ParameterError, SourceError
from treedot.readers import tables

ROWS = [("1", "(S (A a) b)", "one"), ("2", "(S c)", "two"), ("3", "(S (A a) d)", "three")]


def tsv(path, rows=ROWS, header="id\ttree\ttext"):
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n")
    return path


def test_tsv_keeps_the_other_columns(tmp_path):
    forest = read_trees(tsv(tmp_path / "t.tsv"))
    assert list(map(str, forest)) == [row[1] for row in ROWS]
    assert forest.columns == {"id": ["1", "2", "3"], "text": ["one", "two", "three"]}
    assert read_trees(tmp_path / "t.tsv", column="tree") == forest
    batches = list(iter_trees(tmp_path / "t.tsv", batch_size=2))
    assert [len(batch) for batch in batches] == [2, 1]
    assert batches[1].columns["text"] == ["three"]


@pytest.mark.slow
def test_csv_with_quotes_newlines_and_long_fields(tmp_path):
    big = "(S " + "(A a) " * 50_000 + ")"
    (tmp_path / "t.csv").write_text(f'text,tree\n"a, ""b""","(S\n (A a))"\nplain,{big}\n')
    forest = read_trees(tmp_path / "t.csv")
    assert forest[0] == Tree.parse("(S (A a))")
    assert forest[1].size == 100_001
    assert forest.columns["text"] == ['a, "b"', "plain"]


@pytest.mark.large
def test_reading_csv_in_threads_leaves_the_limit_of_the_csv_module_as_it_was(tmp_path):
    usual = csv.field_size_limit()
    long = "(S " + "(A a) " * (usual // 4) + ")"
    rows = "(a b)\n" * 2000
    (tmp_path / "t.csv").write_text(f"tree\n{rows}{long}\n{rows}")
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(read_trees, [tmp_path / "t.csv"] * 16))
    finally:
        sys.setswitchinterval(switch)
    assert [len(forest) for forest in found] == [4001] * 16
    assert csv.field_size_limit() == usual


def test_the_limit_of_the_csv_module_is_as_usual_between_batches(tmp_path):
    usual = csv.field_size_limit()
    (tmp_path / "t.csv").write_text("tree\n" + "(a b)\n" * 5)
    for forest in iter_trees(tmp_path / "t.csv", batch_size=2):
        assert 1 <= len(forest) <= 2
        assert csv.field_size_limit() == usual
    (tmp_path / "t.csv").write_text("tree\n(a b)\n(a\n")
    for kept in ({}, {"on_bad": lambda error: pytest.fail(str(csv.field_size_limit()))}):
        with pytest.raises((SourceError, pytest.fail.Exception), match=f"never closed|^{usual}$"):
            read_trees(tmp_path / "t.csv", **kept)
        assert csv.field_size_limit() == usual


def compressed(suffix, content):
    if suffix == ".zst":
        return pytest.importorskip("zstandard").compress(content)
    return gzip.compress(content) if suffix == ".gz" else content


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_a_table_without_line_breaks_is_refused_before_it_fills_the_memory(
    tmp_path, monkeypatch, kind, suffix
):
    monkeypatch.setattr(files, "MAX_LINE", 1 << 20)
    row = b'{"tree": "(a b)"}\n' if kind == "jsonl" else b"tree\n"
    path = tmp_path / f"t.{kind}{suffix}"
    path.write_bytes(compressed(suffix, row + bytes(128 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match=rf"t\.{kind}{suffix}:2: this line is longer than 1 MiB: "):
            read_trees(path, on_bad=print)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


def test_a_quote_that_is_never_closed_does_not_swallow_the_whole_table(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_LINE", 1 << 20)
    (tmp_path / "t.csv").write_text('tree\n(a b)\n"(a b)\n' + "(a b)\n" * 400_000)
    with pytest.raises(SourceError, match=r"t\.csv:\d+: field larger than field limit \(1048576\)"):
        read_trees(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('tree\tn\n(a b)\t1\n"(a """")"\t2\n', 3),
        ('"tree"\t"n"\n"(a b)"\t"1"\n', 1),
        ('tree\ttext\n(a b)\t"one\ntwo"\n', 3),
        ('text\ttree\n"one\ttwo"\t(a b)\n', 2),
        ('text\ttree\n"one\ntwo"\t(a b)\n', 2),
    ],
)
def test_quoted_tsv_is_refused_with_what_to_do(tmp_path, text, line):
    (tmp_path / "t.tsv").write_text(text)
    with pytest.raises(SourceError, match=rf"t\.tsv:{line}\b.*a field seems quoted.*save the table as \.csv"):
        read_trees(tmp_path / "t.tsv")


def test_a_quote_that_is_part_of_a_tsv_field_stays(tmp_path):
    (tmp_path / "t.tsv").write_text('text\ttree\n"So," he said\t(a ")\n')
    forest = read_trees(tmp_path / "t.tsv")
    assert forest.columns["text"] == ['"So," he said']
    assert forest[0] == Tree("a", ['"'])


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
@pytest.mark.parametrize("suffix", ["jsonl", "tsv", "csv"])
def test_errors_come_in_the_order_of_the_lines(tmp_path, suffix, batch_size):
    if suffix == "jsonl":
        good, bad_tree, bad_row = '{"tree": "(a b)", "n": 1}', '{"tree": "(a"}', "nonsense"
    else:
        good, bad_tree, bad_row = (row.replace(",", "\t" if suffix == "tsv" else ",") for row in
                                   ("(a b),1", "(a,1", "(a b),1,2"))  # fmt: skip
    header = "" if suffix == "jsonl" else good.replace("(a b)", "tree").replace("1", "n") + "\n"
    lines = [
        good,
        bad_tree,
        bad_row,
        bad_tree,
        good,
        good,
        bad_row,
        bad_row,
        bad_tree,
        good,
        b"\xff".decode("latin1"),
    ]
    path = tmp_path / f"t.{suffix}"
    path.write_bytes((header + "\n".join(lines) + "\n").encode("latin1"))
    numbers = [k + 1 + bool(header) for k, line in enumerate(lines) if line != good]
    errors = []
    forests = list(iter_trees(path, batch_size=batch_size, on_bad=errors.append))
    assert sum(map(len, forests)) == 4
    assert all(forest.columns["n"] == [1 if suffix == "jsonl" else "1"] * len(forest) for forest in forests)
    assert [
        int(str(error).split(f"t.{suffix}:")[1].split(":")[0].split(",")[0]) for error in errors
    ] == numbers
    with pytest.raises(SourceError) as first:
        read_trees(path)
    assert str(first.value) == str(errors[0])


def test_jsonl_with_text_and_nested_lists(tmp_path):
    rows = [
        {"tree": "(S (A a))", "n": 1},
        {"tree": ["S", ["A", "a"], "b"], "n": 2},
        {"tree": "(S c)", "n": 3},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    forest = read_trees(tmp_path / "t.jsonl")
    assert list(map(str, forest)) == ["(S (A a))", "(S (A a) b)", "(S c)"]
    assert forest.columns == {"n": [1, 2, 3]}


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_parquet_and_arrow_with_a_text_column_or_a_packed_forest(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow")
    forest = Forest.from_trees([Tree.parse(row[1]) for row in ROWS], {"text": [row[2] for row in ROWS]})
    forest.save(tmp_path / f"packed{suffix}")
    again = read_trees(tmp_path / f"packed{suffix}")
    assert again == forest
    assert again.columns == forest.columns
    assert [len(part) for part in iter_trees(tmp_path / f"packed{suffix}", batch_size=2)] == [2, 1]
    table = pa.table({"parse": [row[1] for row in ROWS], "id": [1, 2, 3]})
    path = tmp_path / f"text{suffix}"
    if suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.feather.write_feather(table, str(path))
    found = read_trees(path, column="parse")
    assert found == forest
    assert found.columns == {"id": [1, 2, 3]}
    with pytest.raises(SourceError, match=rf"text\{suffix}: there is no column 'tree'; .* 'parse', 'id'"):
        read_trees(path)


def test_a_packed_forest_in_parquet_may_have_any_row_groups(tmp_path):
    pa = pytest.importorskip("pyarrow")
    forest = Forest.from_trees([Tree.parse(f"(A (B b{k}) c)") for k in range(7)])
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(forest.to_arrow(), path, row_group_size=3)
    assert read_trees(path) == forest
    assert Forest.load(path) == forest
    batches = list(iter_trees(path, batch_size=2))
    assert Forest.concat(batches) == forest
    assert max(map(len, batches)) == 2


FLIP_BITS = """
import random, sys
from pathlib import Path
from treedot import Forest, load_vectors, read_trees
from treedot.errors import SourceError, SpecMismatchError

readers = {"packed": (read_trees, Forest.load), "text": (read_trees,), "vectors": (load_vectors,)}
flips = int(sys.argv[1])
for path in map(Path, sys.argv[2:]):
    whole = path.read_bytes()
    random.seed(0)
    read = refused = 0
    for k in range(flips):
        position, bit = random.randrange(len(whole)), random.randrange(8)
        print(path.name, position, bit, file=sys.stderr, flush=True)
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bit
        target = path.with_stem(f"damaged{k}")  # a new file: the last one may still be mapped into memory
        target.write_bytes(damaged)
        for load in readers[path.stem]:
            try:
                load(target)
                read += 1
            except (SourceError, SpecMismatchError):
                refused += 1
        target.unlink()
    print(read, refused)
"""


@pytest.mark.slow
def test_a_file_with_a_flipped_bit_is_read_or_refused_and_never_ends_the_process(tmp_path):
    pa = pytest.importorskip("pyarrow")
    forest = Forest.from_trees([Tree.parse(row[1]) for row in ROWS], {"text": [row[2] for row in ROWS]})
    table = pa.table({"tree": [row[1] for row in ROWS], "id": [1, None, 3]})
    vectorizer = DistributedTreeVectorizer(n_components=256)
    forest.save(tmp_path / "packed.parquet")
    forest.save(tmp_path / "packed.arrow")
    pa.parquet.write_table(table, tmp_path / "text.parquet")
    pa.feather.write_feather(table, str(tmp_path / "text.arrow"))
    save_vectors(
        tmp_path / "vectors.parquet", vectorizer.transform(forest), vectorizer, columns=forest.columns
    )
    flips, paths = 300, sorted(tmp_path.iterdir())
    command = [sys.executable, "-c", FLIP_BITS, str(flips), *map(str, paths)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    for path, line in zip(paths, result.stdout.splitlines(), strict=True):
        read, refused = map(int, line.split())
        assert read + refused == flips * (2 if path.stem == "packed" else 1)
        assert min(read, refused) > 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("id\tparse\n1\t(a b)\n", r"t\.tsv:1: there is no column 'tree'; choose one of 'id', 'parse'"),
        ("id\ttree\n1\t(a b)\n2\t(a b\n", r"t\.tsv:3, column 'tree', character 1: this tree is never closed"),
        ("id\ttree\n1\t(a b) (c d)\n", r"t\.tsv:2, column 'tree': expected one tree, found several"),
        ("id\ttree\n1\t(a b)\n2\t\n", r"t\.tsv:3, column 'tree': expected one tree, found none"),
        ("id\ttree\n1\n", r"t\.tsv:2: 1 fields under 2 column names"),
        ("tree\ttree\n1\t2\n", "occurs twice"),
        ("id\tparse\n", r"t\.tsv:1: there is no column 'tree'"),
        ("id\ttree\n", "no tree"),
        ("", "no tree"),
    ],
)
def test_bad_tables_are_refused_with_their_line(tmp_path, text, complaint):
    (tmp_path / "t.tsv").write_text(text)
    with pytest.raises(SourceError, match=complaint):
        read_trees(tmp_path / "t.tsv")


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_a_table_without_column_names_does_not_lose_its_first_tree(tmp_path, suffix):
    separator = "\t" if suffix == "tsv" else ","
    path = tmp_path / f"t.{suffix}"
    for rows in (["(S (A a) b){}x", "(S c){}y"], ["(S (A a) b)"]):
        path.write_text("\n".join(rows).format(*[separator] * 2) + "\n")
        with pytest.raises(
            SourceError, match=r":1: the first line must name the columns, but contains a tree, \(S"
        ):
            read_trees(path)
    path.write_text(separator.join(["tree", "(share)"]) + "\n" + separator.join(["(a b)", "1"]) + "\n")
    assert read_trees(path).columns == {"(share)": ["1"]}


def test_misaligned_cells_do_not_slip_through(tmp_path):
    path = tsv(tmp_path / "t.tsv", [("1", "(a b) (c d)", "x"), ("2", "", "y")])
    with pytest.raises(SourceError, match=r"t\.tsv:2"):
        read_trees(path)
    path = tsv(tmp_path / "t.tsv", [("1", "(a", "x"), ("2", "b)", "y")])
    with pytest.raises(SourceError, match=r"t\.tsv:2"):
        read_trees(path)


def test_undecodable_bytes_have_a_place(tmp_path):
    (tmp_path / "t.tsv").write_bytes(b"id\ttree\nx\xff\t(a b)\n")
    with pytest.raises(SourceError, match=r"t\.tsv:2:2: the byte 0xff is not UTF-8"):
        read_trees(tmp_path / "t.tsv")


def test_bad_rows_can_be_left_out(tmp_path):
    path = tsv(tmp_path / "t.tsv", [("1", "(a b)", "x"), ("2", "(a", "y"), ("3", "(c d)", "z")])
    errors = []
    forest = read_trees(path, on_bad=errors.append)
    assert forest.columns["id"] == ["1", "3"]
    assert list(map(str, forest)) == ["(a b)", "(c d)"]
    assert len(errors) == 1
    (tmp_path / "t.jsonl").write_text('{"tree": "(a b)"}\nnonsense\n[1]\n{"tree": [1, 2]}\n{"tree": null}\n')
    errors = []
    assert len(read_trees(tmp_path / "t.jsonl", on_bad=errors.append)) == 1
    assert [str(e).split("t.")[1][:7] for e in errors] == ["jsonl:2", "jsonl:3", "jsonl:4", "jsonl:5"]


def test_rows_may_have_different_columns(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"tree": "(a b)"}\n{"tree": "(a c)", "y": 1}\n')
    assert read_trees(tmp_path / "t.jsonl").columns == {"y": [None, 1]}
    assert Forest.concat(iter_trees(tmp_path / "t.jsonl", batch_size=1)).columns == {"y": [None, 1]}


def new_columns(path, lines):
    """Write JSON lines that each have a column of their own."""
    path.write_text("".join(f'{{"tree": "(a b)", "c{i}": {i}}}\n' for i in range(lines)))
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".klp"])
def test_a_new_column_in_each_line_takes_work_in_proportion_to_the_lines(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(tables, "MAX_CELLS", 1 << 12)
    path = new_columns(tmp_path / "t.jsonl", 2000)
    if suffix == ".klp":
        path = tmp_path / "t.klp"
        path.write_text("".join(f"x |BT:t| (a b) |ET| |BS:c{i}| {i} |ES|\n" for i in range(2000)))
    cells, names = 0, {}
    for forest in iter_trees(path, batch_size=1000):
        cells += len(forest) * len(forest.columns)
        names |= {name: values for name, values in forest.columns.items() if name != "class"}
        assert len(forest) * len(forest.columns) <= 2 << 12
        for k, name in enumerate(name for name in forest.columns if name != "class"):
            assert [i for i, value in enumerate(forest.columns[name]) if value is not None] == [k]
    assert list(names) == [f"c{i}" for i in range(2000)]
    assert cells < 2000 * 100  # and not 2000 times 1000


def test_trees_with_ever_new_columns_are_refused_before_these_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_CELLS", 1 << 12)
    path = new_columns(tmp_path / "t.jsonl", 2000)
    assert len(read_trees(path).columns) == 2000
    monkeypatch.setattr("treedot.trees.columns.MAX_EMPTY", 1 << 16)
    with pytest.raises(LimitError, match=r"'c0', 'c1', 'c2', 'c3', 'c4' and \d+ more\), nearly all of them"):
        read_trees(path)


def test_messages_name_the_first_few_columns(tmp_path, capsys):
    many = [f"c{i}" for i in range(100_000)]
    for text, complaint in (
        (
            "\t".join(many),
            "there is no column 'tree'; choose one of 'c0', 'c1', 'c2', 'c3', 'c4' and 99,995 more",
        ),
        ("\t".join([*many, "tree", "tree"]), "the column name 'tree' occurs twice in the header"),
    ):
        (tmp_path / "t.tsv").write_text(f"{text}\n")
        with pytest.raises(SourceError, match=complaint) as raised:
            read_trees(tmp_path / "t.tsv")
        assert len(str(raised.value)) < 500
    assert len(repr(Forest([0], [0], [0, 1], ["a"], {name: [0] for name in many}))) < 500
    pytest.importorskip("pyarrow")
    path = new_columns(tmp_path / "t.jsonl", 5000)
    assert main(["convert", str(path), "-o", str(tmp_path / "t.arrow")]) == 1
    said = capsys.readouterr().err
    assert re.search(r"the first trees lack [\d,]+ columns, ('c\d+',? ){5}and [\d,]+ more", said)
    assert len(said) < 500
    assert main(["info", str(path)]) == 0
    assert "c18, c19 and 4,980 more\n" in capsys.readouterr().out


def test_odd_rows_can_be_left_out(tmp_path):
    (tmp_path / "t.jsonl").write_text(
        '{"tree": "(a b)"}\n{"x": 1}\n{"tree": "(a \\ud800)"}\n' + "[" * 5000 + "\n"
    )
    errors = []
    assert len(read_trees(tmp_path / "t.jsonl", on_bad=errors.append)) == 1
    assert len(errors) == 3
    (tmp_path / "t.csv").write_bytes(b"tr\xffee\n(a b)\n")
    with pytest.raises(SourceError, match=r"t\.csv:1:3: the byte 0xff"):
        read_trees(tmp_path / "t.csv", on_bad=errors.append)


def test_blank_lines_are_no_rows(tmp_path):
    (tmp_path / "t.tsv").write_text("tree\n(a b)\n\n")
    assert len(read_trees(tmp_path / "t.tsv")) == 1


def test_the_format_can_be_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")

    pa.parquet.write_table(pa.table({"tree": ["(a b)"]}), tmp_path / "plain")
    assert len(read_trees(tmp_path / "plain", "parquet")) == 1
    damaged = bytearray((tmp_path / "plain").read_bytes())
    damaged[8:40] = b"\xff" * 32
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    with pytest.raises(SourceError, match=r"damaged\.parquet"):
        read_trees(tmp_path / "damaged.parquet")


def test_brackets_have_no_columns(tmp_path):
    (tmp_path / "t.mrg").write_text("(a b)")
    with pytest.raises(ParameterError, match="set the format"):
        read_trees(tmp_path / "t.mrg", column="tree")
    assert len(read_trees(tsv(tmp_path / "t.txt"), "tsv")) == 3


def test_a_whole_batch_of_bad_trees_is_left_out_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"tree": ["bad"] * 5 + ["(a b)"] * 5, "id": range(10)})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=5)
    errors = []
    forest = read_trees(tmp_path / "t.parquet", on_bad=errors.append)
    assert forest.columns["id"] == [5, 6, 7, 8, 9]
    assert len(errors) == 5
