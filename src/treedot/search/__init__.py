"""Find: the nearest trees among many, by an index on disk too; near-duplicates; how similar two trees are."""

from treedot.search.duplicates import DuplicateGroup, find_duplicates
from treedot.search.index import TreeIndex
from treedot.search.neighbours import nearest
from treedot.search.similarity import similarity

__all__ = ["DuplicateGroup", "TreeIndex", "find_duplicates", "nearest", "similarity"]
