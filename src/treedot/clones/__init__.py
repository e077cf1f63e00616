"""Find near-duplicates: the similarity of two trees, groups, baselines and reports."""

from treedot.clones.blocks import DuplicateBlocks, find_duplicate_blocks
from treedot.clones.duplicates import find_duplicates
from treedot.clones.groups import DuplicateGroup
from treedot.clones.similarity import similarity

__all__ = ["DuplicateBlocks", "DuplicateGroup", "find_duplicate_blocks", "find_duplicates", "similarity"]
