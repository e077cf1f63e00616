"""treedot: tree kernels as dot products.

A tree becomes a vector, in time linear in the tree, such that the dot product of two vectors
approximates the classic tree kernel, which counts the tree fragments that two trees share
(*Distributed Tree Kernels*, Zanzotto & Dell'Arciprete, ICML 2012). The exact kernels stand beside.

The names below are loaded when they are first used, so that ``import treedot`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_HOME = {
    "ApproximateGramTransformer": "treedot.learn",
    "ApproximateTreeKernel": "treedot.kernels",
    "BoundedTreeKernel": "treedot.kernels",
    "Encoder": "treedot.encode",
    "Forest": "treedot.trees",
    "FragmentSelector": "treedot.learn",
    "FragmentVectorizer": "treedot.learn",
    "GramLinearSVC": "treedot.learn",
    "GramTransformer": "treedot.learn",
    "Spec": "treedot.encode",
    "SubsetTreeKernel": "treedot.kernels",
    "SubtreeKernel": "treedot.kernels",
    "Tree": "treedot.trees",
    "TreeIndex": "treedot.search",
    "TreeVectorizer": "treedot.learn",
    "count_fragments": "treedot.kernels",
    "fragments": "treedot.kernels",
    "iter_trees": "treedot.readers",
    "nearest": "treedot.search",
    "read_trees": "treedot.readers",
    "sparse_gram": "treedot.encode",
}

__all__ = [
    "ApproximateGramTransformer",
    "ApproximateTreeKernel",
    "BoundedTreeKernel",
    "Encoder",
    "Forest",
    "FragmentSelector",
    "FragmentVectorizer",
    "GramLinearSVC",
    "GramTransformer",
    "Spec",
    "SubsetTreeKernel",
    "SubtreeKernel",
    "Tree",
    "TreeIndex",
    "TreeVectorizer",
    "count_fragments",
    "fragments",
    "iter_trees",
    "nearest",
    "read_trees",
    "sparse_gram",
]

if TYPE_CHECKING:
    from treedot.encode import Encoder, Spec, sparse_gram
    from treedot.kernels import (
        ApproximateTreeKernel,
        BoundedTreeKernel,
        SubsetTreeKernel,
        SubtreeKernel,
        count_fragments,
        fragments,
    )
    from treedot.learn import (
        ApproximateGramTransformer,
        FragmentSelector,
        FragmentVectorizer,
        GramLinearSVC,
        GramTransformer,
        TreeVectorizer,
    )
    from treedot.readers import iter_trees, read_trees
    from treedot.search import TreeIndex, nearest
    from treedot.trees import Forest, Tree


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'treedot' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
