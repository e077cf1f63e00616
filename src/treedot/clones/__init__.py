"""Near-duplicates: how alike two trees are by their productions, groups, baselines, reports."""

from treedot.clones.duplicates import find_duplicates
from treedot.clones.groups import DuplicateGroup
from treedot.clones.similarity import similarity

__all__ = ["DuplicateGroup", "find_duplicates", "similarity"]
