"""Where do vectors of trees live? Functions of Python's standard library, in up to three vector databases.

You learn: search by approximation, in float32, float16 and 1 bit per number; how many of the true neighbours
each database finds, in which time and space; and how stored settings keep vectors of other settings out.

    pip install usearch lancedb 'psycopg[binary]'
    python examples/database.py    # with PGHOST=/folder/of/the/socket also in PostgreSQL
"""

import argparse
import itertools
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from stores import STORES, fill_all, search
from treedot import Vectors, load_vectors, nearest
from treedot.cli import main as treedot
from treedot.errors import SpecMismatchError

STDLIB, QUERIES, K = sorted(Path(argparse.__file__).parent.glob("*.py")), 100, 10


def recall(found: list[np.ndarray], stored: Vectors, queries: Vectors, least: np.ndarray) -> float:
    """Return the share of the true neighbours that is found; if more than K rows are, the best K count."""
    pairs = zip(found, queries.matrix, least, strict=True)
    right = [(stored.matrix[rows] @ query >= bound).sum() for rows, query, bound in pairs]
    return float(np.minimum(right, K).mean()) / K


def main(arguments: list[str] | None = None) -> None:
    """Encode, store, search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", nargs="+", default=STDLIB, type=Path, help="files or folders of code")
    parser.add_argument("--most", default=5000, type=int, help="number of functions, chosen at random")
    parser.add_argument("--n-components", default="1024", help="dimension of the vectors")
    parser.add_argument("--engines", nargs="+", default=[*STORES], choices=STORES)
    parser.add_argument("--out", default=".", type=Path, help="folder of the vectors and of the databases")
    options = parser.parse_args(arguments)
    file = options.out / "functions.parquet"
    treedot(["encode", *map(str, options.source), "-d", options.n_components, "-o", str(file)])
    vectors = load_vectors(file)
    rows = np.random.default_rng(0).permutation(len(vectors))[: QUERIES + options.most]
    queries, stored = (Vectors(vectors.matrix[part], vectors.spec) for part in np.split(rows, [QUERIES]))
    start = time.process_time()
    least = nearest(queries, stored, k=K)[1][:, -1] - 1e-5
    print(f"{len(stored):,} functions; td.nearest: {(time.process_time() - start) * 1000 / QUERIES:.2f} ms")
    for name, kind, store in fill_all(options.out, stored, options.engines):
        print(f"{name}, {kind}: {store.size / 1e6:.1f} MB")
        for exact, k in itertools.product((True, False), (K, 10 * K) if kind == "1 bit" else (K,)):
            start = store.clock()
            share = recall(search(store, queries, kind, k, exact), stored, queries, least)
            took = (store.clock() - start) * 1000 / QUERIES
            print(f"    {'exact' if exact else 'index'}, {k} rows: recall {share:.3f}, {took:.2f} ms")
        try:
            search(store, Vectors(queries.matrix, replace(queries.spec, seed=1)), kind, K)
        except SpecMismatchError as error:
            print(f"    refused: {error}")


if __name__ == "__main__":
    main()
