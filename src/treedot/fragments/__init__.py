"""The explicit space of fragments: counting, listing, growing, finding and mining them."""

from treedot.fragments.index import count_fragments, list_fragments

__all__ = ["count_fragments", "list_fragments"]
