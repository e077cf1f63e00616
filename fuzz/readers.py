"""Every reader as a target: files are read or rejected, and the trees read are valid.

For a new reader, add a line to ``READERS``: the suffix of its files, and some sound files.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from fuzz.target import FileTarget, Target, require
from fuzz.trees import random_trees
from treedot import Forest, Tree, TreedotError, iter_trees, read_trees


def reader(
    suffix: str, seeds: Callable[[], list[bytes]], pack: Callable[[bytes], bytes] = bytes, *needs: str
) -> Target:
    """Return the target of a reader."""
    return FileTarget(suffix, cache(seeds), check_reader, pack, needs=needs)


def check_reader(path: Path) -> None:
    """Read a file as a whole, and in batches without bad trees: both must give the same trees."""
    problems: list[TreedotError] = []
    try:
        whole = read_trees(path)
    except TreedotError:
        for batch in iter_trees(path, batch_size=3, on_bad=problems.append):
            check_forest(batch)
        require(problems, "a raised error is not reported to on_bad")
        raise
    batches = list(iter_trees(path, batch_size=3, on_bad=problems.append))
    require(not problems, "on_bad is called for a sound file")
    require(all(len(batch) <= 3 for batch in batches), "a batch is too large")
    require(Forest.concat(batches) == whole, "the trees of batches differ from those of the whole file")
    check_forest(whole)
    check_round_trip(whole, path.parent)


def check_forest(forest: Forest) -> None:
    """Raise if the arrays of a forest do not describe trees: readers pack them unchecked."""
    Forest(forest.label, forest.arity, forest.offsets, forest.labels, forest.columns)


def check_round_trip(forest: Forest, folder: Path) -> None:
    """Write a forest in every format, and read it again."""
    if not len(forest):
        return
    path = folder / "again.mrg"
    forest.write_brackets(path)
    require(read_trees(path) == forest, "brackets do not give back what was written")
    if find_spec("pyarrow") is None:
        return
    without_columns = Forest(forest.label, forest.arity, forest.offsets, forest.labels)
    require(Forest.from_arrow(without_columns.to_arrow()) == forest, "Arrow does not give back the trees")


def seed_trees() -> list[list[Tree]]:
    """Return some lists of trees, always the same."""
    random = Random(0)
    return [random_trees(random, max_nodes=40) for _ in range(8)]


def brackets() -> list[bytes]:
    """One tree per line, over several lines, and with an outer bracket that has no label."""
    texts = [[str(tree) for tree in trees] for trees in seed_trees()]
    plain = ["\n".join(lines).encode() for lines in texts]
    return [*plain, plain[0].replace(b" ", b"\n  "), b"( (S (NP I) (VP run)))\r\n" * 3]


def _rows() -> list[list[dict[str, str]]]:
    return [[{"label": f"{k},x", "tree": str(tree)} for k, tree in enumerate(t)] for t in seed_trees()]


def tsv() -> list[bytes]:
    """Tables with a header, without characters that would break lines or fields."""
    found = []
    for rows in _rows():
        lines = ["label\ttree", *(f"{row['label']}\t{row['tree']}" for row in rows)]
        found.append("\n".join(lines).encode())
    return found


def comma_separated() -> list[bytes]:
    """Tables with a header; fields are quoted if necessary."""
    found = []
    for rows in _rows():
        text = io.StringIO()
        table = csv.DictWriter(text, ["label", "tree"])
        table.writeheader()
        table.writerows(rows)
        found.append(text.getvalue().encode())
    return found


def _nested(tree: Tree) -> object:
    return [tree.label, *map(_nested, tree.children)] if tree.children else tree.label


def json_lines() -> list[bytes]:
    """Trees as texts and as nested lists, with other values beside them."""
    found = ["\n".join(json.dumps(row) for row in rows).encode() for rows in _rows()]
    for trees in seed_trees():
        rows = [{"tree": _nested(tree), "n": k, "x": [None, {"y": 1.5}]} for k, tree in enumerate(trees)]
        found.append("\n".join(json.dumps(row) for row in rows if isinstance(row["tree"], list)).encode())
    return found


def _tables() -> list[Any]:
    """Forests, texts of trees in every type that Arrow has for them, and columns of all kinds."""
    import pyarrow as pa

    forests = [Forest.from_trees(trees, {"number": list(range(len(trees)))}) for trees in seed_trees()]
    texts = [str(tree) for tree in forests[0]]
    count = len(texts)
    kept = {
        "text": pa.array(texts, pa.large_string()),
        "number": pa.array(range(count), pa.uint8()),
        "real": pa.array([0.5, None] * count, pa.float32())[:count],
        "record": pa.array([{"a": [1, 2], "b": None}] * count),
        "time": pa.array([1] * count, pa.timestamp("ns", tz="UTC")),
        "bytes": pa.array([b"\xff"] * count),
    }
    trees = [
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array([*texts[1:], None]),
        pa.array(texts).dictionary_encode(),
        pa.array([["A", "b", "c"]] * count),
    ]
    return [
        *(forest.to_arrow() for forest in forests),
        _in_version_1(forests[0].to_arrow()),
        *(pa.table({"tree": column, **kept}) for column in trees),
    ]


def _in_version_1(table: Any) -> Any:
    """Return the table of a forest in version 1 of the format."""
    names = ["label", "arity", *table.column_names[2:]]
    return table.rename_columns(names).replace_schema_metadata({"treedot.forest": "1"})


def parquet() -> list[bytes]:
    """Parquet files, compressed and not, of one row group and of several."""
    from pyarrow.parquet import write_table

    found = []
    for k, table in enumerate(_tables()):
        file = io.BytesIO()
        compression = ["none", "snappy", "zstd", "gzip"][k % 4]
        write_table(table, file, compression=compression, row_group_size=2 if k % 3 else None)
        found.append(file.getvalue())
    return found


def arrow() -> list[bytes]:
    """Arrow files, compressed and not."""
    from pyarrow.feather import write_feather

    found = []
    for k, table in enumerate(_tables()):
        file = io.BytesIO()
        compression = ["uncompressed", "lz4", "zstd"][k % 3]
        write_feather(table, file, compression=compression, chunksize=3 if k % 2 else None)
        found.append(file.getvalue())
    return found


def conllu() -> list[bytes]:
    """Sentences of every shape, with ranges, empty nodes and comments."""
    random = Random(1)
    found = []
    for size in (1, 3, 8, 20):
        heads = [0, *(random.randrange(1, k) for k in range(2, size + 1))]
        words = (f"{k}\tw{k}\tw{k % 5}\tX\tT{k % 3}\t_\t{h}\tr{k % 4}\t_\t_" for k, h in enumerate(heads, 1))
        comments = f"# sent_id = s{size}\n# text = some words\n1-2\tww" + "\t_" * 8 + "\n"
        found.append((comments + "\n".join(words) + "\n1.1" + "\t_" * 9 + "\n\n").encode() * 2)
    return found


def newick() -> list[bytes]:
    """Trees with labels, in quotes and without, lengths and comments."""

    def text(tree: Tree, k: int) -> str:
        below = f"({','.join(text(child, k + 1) for child in tree.children)})" if tree.children else ""
        quoted = "'" + tree.label.replace("'", "''") + "'"
        return below + (quoted if k % 3 else f"n{k}") + ("" if k % 2 else f":{k / 4}[x]")

    return ["\n".join(f"{text(tree, 0)};" for tree in trees).encode() for trees in seed_trees()]


def dot_bracket() -> list[bytes]:
    """Structures with and without names, nested and adjacent."""

    def structure(tree: Tree) -> str:
        return f"({''.join(map(structure, tree.children))})" if tree.children else "."

    texts = [[structure(tree) for tree in trees] for trees in seed_trees()]
    plain = ["\n".join(f"{'ACGU' * len(t)}"[: len(t)] + f"\n{t} (-1.5)" for t in some) for some in texts]
    named = ["\n".join(f">{k}\n{'G' * len(t)}\n{t}" for k, t in enumerate(some)) for some in texts]
    return [text.encode() for text in plain + named]


def svmlight() -> list[bytes]:
    """Examples with one tree and several, with vectors and comments."""
    found = []
    for k, trees in enumerate(seed_trees()):
        lines = [f"{(-1) ** k} |BT| {tree} |BT| (A b) |ET| 1:{k} 3:.5 |BV| 2:1 |EV| # c" for tree in trees]
        found.append("\n".join(["# examples", *lines, "1 |BT| (A (B b)(C c)) |ET|"]).encode())
    return found


def kelp() -> list[bytes]:
    """Examples with representations of several types, with and without names."""
    found = []
    for k, trees in enumerate(seed_trees()):
        name = ":t" if k % 2 else ""
        lines = [f"a b |BT{name}| {tree} |ET| |BV:v| x:1 y:{k} |EV| |BS| some text |ES|" for tree in trees]
        found.append("\n".join([*lines, f"c |BT{name}| (SYNT##a(LEX##b::n)) |ET|"]).encode())
    return found


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.compress(data)


READERS = {
    "brackets": reader(".mrg", brackets),
    "tsv": reader(".tsv", tsv),
    "csv": reader(".csv", comma_separated),
    "jsonl": reader(".jsonl", json_lines),
    "parquet": reader(".parquet", parquet, bytes, "pyarrow"),
    "arrow": reader(".arrow", arrow, bytes, "pyarrow"),
    "conllu": reader(".conllu", conllu),
    "newick": reader(".nwk", newick),
    "dot-bracket": reader(".dbn", dot_bracket),
    "svmlight": reader(".svmlight", svmlight),
    "kelp": reader(".klp", kelp),
    "gz": reader(".mrg.gz", brackets, _gzip),
    "xz": reader(".tsv.xz", tsv, lzma.compress),
    "zst": reader(".jsonl.zst", json_lines, _zstd, "zstandard"),
}
