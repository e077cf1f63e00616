"""Find: the nearest trees among many, by an index on disk too; near-duplicates; how similar two trees are."""

from treedot.search.duplicates import DuplicateGroup, find_duplicates
from treedot.search.edit_distance import align, edit_distance
from treedot.search.index import TreeIndex
from treedot.search.neighbours import nearest
from treedot.search.similarity import similarity

__all__ = [
    "DuplicateGroup",
    "TreeIndex",
    "align",
    "edit_distance",
    "find_duplicates",
    "nearest",
    "similarity",
]
