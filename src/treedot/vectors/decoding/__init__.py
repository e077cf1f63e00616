"""Vectors back to trees: counts of fragments, the tree that a vector encodes, and its certificate."""
