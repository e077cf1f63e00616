"""Explain scores and kernels by the nodes and fragments that they come from."""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
