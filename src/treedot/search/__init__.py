"""Find trees: nearest ones, by an index on disk too; clusters; edit distance; how two trees compare."""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
