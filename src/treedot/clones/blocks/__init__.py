"""Find similar blocks, runs of consecutive statements, inside larger functions, classes and files."""

from treedot.clones.blocks.duplicate_blocks import DuplicateBlocks, find_duplicate_blocks

__all__ = ["DuplicateBlocks", "find_duplicate_blocks"]
