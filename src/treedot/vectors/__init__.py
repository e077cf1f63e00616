"""Trees as vectors: the vectorizers, their encoders on processor and GPU, dot products and files."""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
