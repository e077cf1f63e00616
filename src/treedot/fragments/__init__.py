"""Fragments themselves: to count and list them, find them in trees, and mine the ones that matter."""

from treedot.fragments.space import count_fragments, list_fragments

__all__ = ["count_fragments", "list_fragments"]
