"""Read trees from files and objects: ``read_trees`` for all at once, ``iter_trees`` in batches."""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
