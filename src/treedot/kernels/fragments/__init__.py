"""The fragments of trees, written out."""

from treedot.kernels.fragments.space import count_fragments, list_fragments

__all__ = ["count_fragments", "list_fragments"]
