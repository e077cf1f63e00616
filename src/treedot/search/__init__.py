"""Find: the nearest trees, by an index on disk too; near-duplicates; clusters; how two trees compare."""

from treedot.search.clusters import Clusters, cluster_trees
from treedot.search.comparison import Comparison, compare
from treedot.search.duplicate_groups import DuplicateGroup
from treedot.search.duplicates import find_duplicates
from treedot.search.edit_distance import align, edit_distance
from treedot.search.index import TreeIndex
from treedot.search.neighbours import nearest
from treedot.search.similarity import similarity

__all__ = [
    "Clusters",
    "Comparison",
    "DuplicateGroup",
    "TreeIndex",
    "align",
    "cluster_trees",
    "compare",
    "edit_distance",
    "find_duplicates",
    "nearest",
    "similarity",
]
