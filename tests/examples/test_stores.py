"""The databases of the example find the neighbours that treedot finds, and refuse vectors of another spec."""

import json
from dataclasses import replace

import numpy as np
import pytest

import stores
from components import component
from database import recall
from strategies import random_forest
from treedot import DistributedTreeVectorizer, Vectors, nearest
from treedot.errors import SpecMismatchError
from treedot.vectors import DenseSpec

pytestmark = pytest.mark.slow  # importing LanceDB takes seconds
component("databases")

EMBEDDED = {name: stores.STORES[name] for name in ("usearch", "LanceDB")}
SPEC = DenseSpec(n_components=512)
K = 10
ERROR = {"float32": 1e-5, "float16": 2e-3}  # of a dot product of vectors of length 1


@pytest.fixture(scope="module")
def vectors():
    forest = random_forest(1, 550)
    matrix = DistributedTreeVectorizer(n_components=SPEC.n_components).transform(forest)
    return Vectors(matrix[:500], SPEC), Vectors(matrix[500:], SPEC)


@pytest.fixture(params=EMBEDDED)
def opened(request, vectors, tmp_path):
    settings = json.dumps({**SPEC.to_dict(), "fingerprint": SPEC.fingerprint})
    return lambda kind: EMBEDDED[request.param](tmp_path, stores.TYPES[kind](vectors[0].matrix), settings)


def found(store, queries, kind, exact, k=K):
    return stores.search(store, queries, kind, k, exact)


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_exact_search_finds_the_neighbours_of_nearest(opened, vectors, kind):
    stored, queries = vectors
    _, true = nearest(queries, stored, k=K)
    for rows, query, products in zip(
        found(opened(kind), queries, kind, True), queries.matrix, true, strict=True
    ):
        assert len(set(rows.tolist())) == K
        np.testing.assert_allclose(stored.matrix[rows] @ query, products, rtol=0, atol=ERROR[kind])


def test_exact_search_of_bits_finds_those_that_differ_least(opened, vectors):
    stored, queries = vectors
    differ = (queries.matrix[:, None] > 0) != (stored.matrix > 0)
    true = np.sort(differ.sum(axis=2), axis=1)[:, :K]
    rows = np.array(found(opened("1 bit"), queries, "1 bit", True))
    assert (np.take_along_axis(differ.sum(axis=2), rows, axis=1) == true).all()


@pytest.mark.parametrize(
    ("kind", "k", "least"), [("float32", K, 0.95), ("float16", K, 0.95), ("1 bit", 10 * K, 0.85)]
)
def test_the_index_finds_most_true_neighbours(opened, vectors, kind, k, least):
    stored, queries = vectors
    _, true = nearest(queries, stored, k=K)
    bounds = true[:, -1] - ERROR["float32"]
    rows = found(opened(kind), queries, kind, False, k)
    assert recall(rows, stored, queries, bounds) >= least


@pytest.mark.parametrize("change", [{"seed": 1}, {"decay": 0.2}, {"composition": "product"}])
def test_queries_of_another_spec_are_refused(opened, vectors, change):
    _, queries = vectors
    store = opened("float32")
    assert json.loads(store.settings())["fingerprint"] == SPEC.fingerprint
    other = Vectors(queries.matrix, replace(SPEC, **change))
    with pytest.raises(SpecMismatchError, match=f"different settings: {next(iter(change))} "):
        found(store, other, "float32", False)


def test_settings_that_were_changed_are_refused(vectors, tmp_path):
    settings = json.dumps({**SPEC.to_dict(), "seed": 1, "fingerprint": SPEC.fingerprint})
    store = stores.usearch(tmp_path, vectors[0].matrix, settings)
    with pytest.raises(SpecMismatchError, match="their description was changed"):
        found(store, vectors[1], "float32", True)
