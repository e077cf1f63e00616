"""The three databases of ``database.py``: one function each, which writes vectors and returns a ``Store``.

The numbers are float32, float16, or bits, eight in a byte. The settings of the vectors are stored beside
them, where each database has room for a text. Everything runs on one thread.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treedot import Vectors
from treedot.vectors import DenseSpec

TYPES = {
    "float32": np.asarray,
    "float16": np.float16,
    "1 bit": lambda matrix: np.packbits(matrix > 0, axis=1),
}


class Store(NamedTuple):
    """A table of vectors, the text beside them, its size in bytes, and a clock of processor time."""

    find: Callable[[np.ndarray, int, bool], np.ndarray]  # (query, k, exact) to rows, the nearest first
    settings: Callable[[], str]
    size: int
    clock: Callable[[], float] = time.process_time


def search(store: Store, queries: Vectors, kind: str, k: int, exact: bool = False) -> list[np.ndarray]:
    """Return the k rows nearest to each query; raise SpecMismatchError if the stored settings are others."""
    DenseSpec.from_dict(json.loads(store.settings())).require_same(queries.spec)
    return [store.find(query, k, exact) for query in TYPES[kind](queries.matrix)]


def usearch(folder: Path, matrix: np.ndarray, settings: str) -> Store:
    """Write a graph of neighbours (HNSW) to one file, and the settings to another."""
    from usearch.index import Index

    file = folder / f"{matrix.dtype}.usearch"
    kind, distance = {4: ("f32", "ip"), 2: ("f16", "ip"), 1: ("b1", "hamming")}[matrix.itemsize]
    width = matrix.shape[1] * (8 if kind == "b1" else 1)
    index = Index(ndim=width, metric=distance, dtype=kind, expansion_search=100)
    index.add(np.arange(len(matrix)), matrix, threads=1)
    index.save(file)
    beside = file.with_suffix(".usearch.json")
    beside.write_text(settings, encoding="utf-8")

    def find(query: np.ndarray, k: int, exact: bool) -> np.ndarray:
        return index.search(query, k, exact=exact, threads=1).keys

    return Store(find, beside.read_text, file.stat().st_size)


def lancedb(folder: Path, matrix: np.ndarray, settings: str) -> Store:
    """Write a table in files, whose rows lie in cells (IVF), with the settings in the schema."""
    os.environ.update(LANCE_CPU_THREADS="1", LANCEDB_LOG="error", LANCE_LOG="error")
    import lancedb
    import pyarrow as pa
    from lancedb.index import IvfFlat

    vector = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])
    rows = pa.table({"row": np.arange(len(matrix)), "vector": vector}, metadata={"treedot.spec": settings})
    database = lancedb.connect(folder)
    database.drop_table(str(matrix.dtype), ignore_missing=True)
    table = database.create_table(str(matrix.dtype), rows)
    distance = "hamming" if matrix.dtype == np.uint8 else "dot"
    cells = IvfFlat(distance_type=distance, num_partitions=round(len(matrix) ** 0.5))
    table.create_index("vector", config=cells)

    def find(query: np.ndarray, k: int, exact: bool) -> np.ndarray:
        asked = table.search(query).distance_type(distance).select(["row", "_distance"]).limit(k)
        return (asked.bypass_vector_index() if exact else asked).to_arrow()["row"].to_numpy()

    size = sum(file.stat().st_size for file in folder.glob(f"{matrix.dtype}.lance/**/*") if file.is_file())
    return Store(find, lambda: table.schema.metadata[b"treedot.spec"].decode(), size)


def postgresql(folder: Path, matrix: np.ndarray, settings: str) -> Store:
    """Fill a table of the server that PGHOST names, with an index (HNSW), and the settings as its comment."""
    import psycopg
    from psycopg import sql

    if "PGHOST" not in os.environ:
        raise ImportError("PGHOST does not name a server on this machine")
    kind, operator, operators = {
        4: ("vector", "<#>", "vector_ip_ops"),
        2: ("halfvec", "<#>", "halfvec_ip_ops"),
        1: ("bit", "<~>", "bit_hamming_ops"),
    }[matrix.itemsize]
    table, width = f"trees_{matrix.dtype}", matrix.shape[1] * (8 if kind == "bit" else 1)
    connection = psycopg.connect(autocommit=True, prepare_threshold=None)  # a plan for each query

    def text(row: np.ndarray) -> str:
        return "".join(map(str, np.unpackbits(row))) if kind == "bit" else str(row.tolist())

    def ask(question: str, *values: str) -> list[tuple]:
        return connection.execute(question, values).fetchall()

    for command in (
        "CREATE EXTENSION IF NOT EXISTS vector",
        f"DROP TABLE IF EXISTS {table}",
        f"CREATE TABLE {table} (row int, vector {kind}({width}))",
        sql.SQL(f"COMMENT ON TABLE {table} IS {{}}").format(settings),
        "SET hnsw.ef_search = 100",
    ):
        connection.execute(command)
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in enumerate(map(text, matrix)):
            copy.write_row(row)
    connection.execute(f"CREATE INDEX ON {table} USING hnsw (vector {operators})")

    def find(query: np.ndarray, k: int, exact: bool) -> np.ndarray:
        connection.execute(f"SET enable_indexscan = {not exact}")
        connection.execute(f"SET enable_seqscan = {exact}")
        nearest = f"SELECT row FROM {table} ORDER BY vector {operator} %s::{kind}({width}) LIMIT {k}"
        return np.array([row for (row,) in ask(nearest, text(query))])

    def read_settings() -> str:
        return ask("SELECT obj_description(%s::regclass)", table)[0][0]

    (size, server), *_ = ask("SELECT pg_total_relation_size(%s::regclass), pg_backend_pid()", table)

    def clock() -> float:
        nanoseconds = Path(f"/proc/{server}/schedstat").read_text().split()[0]
        return time.process_time() + int(nanoseconds) / 1e9

    return Store(find, read_settings, size, clock)


STORES = {"usearch": usearch, "LanceDB": lancedb, "PostgreSQL": postgresql}


def fill_all(folder: Path, vectors: Vectors, engines: Iterable[str]) -> Iterator[tuple[str, str, Store]]:
    """Yield each database that is installed with every type of numbers; print which are not installed."""
    settings = json.dumps({**vectors.spec.to_dict(), "fingerprint": vectors.fingerprint})
    for name in engines:
        try:
            for kind, packed in TYPES.items():
                yield name, kind, STORES[name](folder, packed(vectors.matrix), settings)
        except ImportError as missing:
            print(f"{name} is left out: {missing}")
