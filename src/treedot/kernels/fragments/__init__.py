"""The fragments of trees, written out."""
