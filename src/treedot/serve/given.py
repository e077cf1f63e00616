"""The index and the model that the server was started with, in a worker.

They are read once, and again after their files are replaced.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

from treedot._storage.files import identity_of
from treedot.models.linear_model import LinearModel
from treedot.search.index.tree_index import TreeIndex


def current_index(path: str) -> TreeIndex:
    """Return the index at a path."""
    return _index(path, identity_of(path))


def current_model(path: str) -> LinearModel:
    """Return the model at a path."""
    return _model(path, identity_of(path))


@lru_cache(maxsize=1)
def _index(path: str, identity: tuple[int, ...] | None) -> TreeIndex:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other grammars than today's: results are shown all the same
        return TreeIndex.open(path)


@lru_cache(maxsize=1)
def _model(path: str, identity: tuple[int, ...] | None) -> LinearModel:
    return LinearModel.load(path)
