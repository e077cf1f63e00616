"""Find similar trees: nearest neighbours, an index on disk, clusters, edit distance, comparisons."""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
