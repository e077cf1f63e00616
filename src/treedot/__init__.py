"""treedot: tree kernels as dot products.

A tree becomes a vector, in time linear in the tree, such that the dot product of two vectors counts the
tree fragments that the trees share: a sparse row of small fragments (``FragmentVectorizer``), or a dense
vector that approximates the classic tree kernel (``DistributedTreeVectorizer``, after *Distributed Tree
Kernels*, Zanzotto & Dell'Arciprete, ICML 2012). The exact kernels stand beside.

The names below are loaded when they are first used, so that ``import treedot`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers understand it; to import typing would take most of the time
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0.dev0"

_HOME = {
    "BoundedTreeKernel": "treedot.kernels",
    "Clusters": "treedot.search",
    "ColumnKernel": "treedot.kernels.combine.columns",
    "Comparison": "treedot.search",
    "DeviceError": "treedot.errors",
    "DistributedTreeVectorizer": "treedot.vectors",
    "DualLinearSVC": "treedot.models",
    "DuplicateGroup": "treedot.search",
    "Explanation": "treedot.models.explain",
    "Forest": "treedot.trees",
    "FragmentVectorizer": "treedot.vectors",
    "IncompleteError": "treedot.errors",
    "Kernel": "treedot.kernels.kernel",
    "KernelProduct": "treedot.kernels.combine.combinations",
    "KernelSum": "treedot.kernels.combine.combinations",
    "KernelTransformer": "treedot.models",
    "LimitError": "treedot.errors",
    "LinearKernel": "treedot.kernels.combine.columns",
    "LinearModel": "treedot.models",
    "MissingDependencyError": "treedot.errors",
    "ModelExplanation": "treedot.models.explain",
    "NormalizedKernel": "treedot.kernels.combine.combinations",
    "PairExplanation": "treedot.models.explain",
    "ParameterError": "treedot.errors",
    "PartialTreeKernel": "treedot.kernels",
    "PolynomialKernel": "treedot.kernels.combine.combinations",
    "RBFKernel": "treedot.kernels.combine.combinations",
    "RangeError": "treedot.errors",
    "ScaledKernel": "treedot.kernels.combine.combinations",
    "RouteKernel": "treedot.kernels",
    "SmoothedPartialTreeKernel": "treedot.kernels",
    "SourceError": "treedot.errors",
    "SpecMismatchError": "treedot.errors",
    "SubsetTreeKernel": "treedot.kernels",
    "SubtreeKernel": "treedot.kernels",
    "Tree": "treedot.trees",
    "TreeClassifier": "treedot.models",
    "TreeIndex": "treedot.search",
    "TreeKernel": "treedot.kernels.tree_kernel",
    "TreeSyntaxError": "treedot.errors",
    "TreedotError": "treedot.errors",
    "Vectors": "treedot.vectors",
    "WordVectors": "treedot.kernels.word_vectors",
    "align": "treedot.search",
    "cluster_trees": "treedot.search",
    "compare": "treedot.search",
    "count_fragments": "treedot.kernels.fragments",
    "dot_products": "treedot.vectors",
    "edit_distance": "treedot.search",
    "explain": "treedot.models.explain",
    "explain_model": "treedot.models.explain",
    "explain_pair": "treedot.models.explain",
    "find_duplicates": "treedot.search",
    "iter_code": "treedot.readers.code",
    "iter_trees": "treedot.readers",
    "list_fragments": "treedot.kernels.fragments",
    "load_vectors": "treedot.vectors",
    "nearest": "treedot.search",
    "read_code": "treedot.readers.code",
    "read_conllu": "treedot.readers.treebanks",
    "read_dot_bracket": "treedot.readers.treebanks",
    "read_html": "treedot.readers.documents.reader",
    "read_json": "treedot.readers.documents.reader",
    "read_kelp": "treedot.readers.kelp_svmlight",
    "read_newick": "treedot.readers.treebanks",
    "read_svmlight": "treedot.readers.kelp_svmlight",
    "read_trees": "treedot.readers",
    "read_xml": "treedot.readers.documents.reader",
    "save_vectors": "treedot.vectors",
    "similarity": "treedot.search",
    "train_files": "treedot.models",
}

__all__ = [
    "BoundedTreeKernel",
    "Clusters",
    "ColumnKernel",
    "Comparison",
    "DeviceError",
    "DistributedTreeVectorizer",
    "DualLinearSVC",
    "DuplicateGroup",
    "Explanation",
    "Forest",
    "FragmentVectorizer",
    "IncompleteError",
    "Kernel",
    "KernelProduct",
    "KernelSum",
    "KernelTransformer",
    "LimitError",
    "LinearKernel",
    "LinearModel",
    "MissingDependencyError",
    "ModelExplanation",
    "NormalizedKernel",
    "PairExplanation",
    "ParameterError",
    "PartialTreeKernel",
    "PolynomialKernel",
    "RBFKernel",
    "RangeError",
    "RouteKernel",
    "ScaledKernel",
    "SmoothedPartialTreeKernel",
    "SourceError",
    "SpecMismatchError",
    "SubsetTreeKernel",
    "SubtreeKernel",
    "Tree",
    "TreeClassifier",
    "TreeIndex",
    "TreeKernel",
    "TreeSyntaxError",
    "TreedotError",
    "Vectors",
    "WordVectors",
    "align",
    "cluster_trees",
    "compare",
    "count_fragments",
    "dot_products",
    "edit_distance",
    "explain",
    "explain_model",
    "explain_pair",
    "find_duplicates",
    "iter_code",
    "iter_trees",
    "list_fragments",
    "load_vectors",
    "nearest",
    "read_code",
    "read_conllu",
    "read_dot_bracket",
    "read_html",
    "read_json",
    "read_kelp",
    "read_newick",
    "read_svmlight",
    "read_trees",
    "read_xml",
    "save_vectors",
    "similarity",
    "train_files",
]

if TYPE_CHECKING:
    from treedot.clones import similarity
    from treedot.clones.duplicates import find_duplicates
    from treedot.clones.groups import DuplicateGroup
    from treedot.errors import (
        DeviceError,
        IncompleteError,
        LimitError,
        MissingDependencyError,
        ParameterError,
        RangeError,
        SourceError,
        SpecMismatchError,
        TreedotError,
        TreeSyntaxError,
    )
    from treedot.kernels import (
        BoundedTreeKernel,
        PartialTreeKernel,
        RouteKernel,
        SmoothedPartialTreeKernel,
        SubsetTreeKernel,
        SubtreeKernel,
    )
    from treedot.kernels.combine.columns import ColumnKernel, LinearKernel
    from treedot.kernels.combine.combinations import (
        KernelProduct,
        KernelSum,
        NormalizedKernel,
        PolynomialKernel,
        RBFKernel,
        ScaledKernel,
    )
    from treedot.kernels.fragments.space import count_fragments, list_fragments
    from treedot.kernels.kernel import Kernel
    from treedot.kernels.tree_kernel import TreeKernel
    from treedot.kernels.word_vectors import WordVectors
    from treedot.models.dual_linear_svc import DualLinearSVC
    from treedot.models.explain.decision import Explanation, explain
    from treedot.models.explain.model import ModelExplanation, explain_model
    from treedot.models.explain.pair import PairExplanation, explain_pair
    from treedot.models.kernel_transformer import KernelTransformer
    from treedot.models.linear_model import LinearModel
    from treedot.models.training.streaming import train_files
    from treedot.models.tree_classifier import TreeClassifier
    from treedot.readers import iter_trees, read_trees
    from treedot.readers.code import iter_code, read_code
    from treedot.readers.documents.reader import read_html, read_json, read_xml
    from treedot.readers.kelp_svmlight import read_kelp, read_svmlight
    from treedot.readers.treebanks import read_conllu, read_dot_bracket, read_newick
    from treedot.search import (
        Clusters,
        Comparison,
        TreeIndex,
        align,
        cluster_trees,
        compare,
        nearest,
        tree_edit_distance,
    )
    from treedot.trees import Forest, Tree
    from treedot.vectors import Vectors, dot_products, load_vectors, save_vectors
    from treedot.vectors.distributed_tree_vectorizer import DistributedTreeVectorizer
    from treedot.vectors.fragment_vectorizer import FragmentVectorizer


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'treedot' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
