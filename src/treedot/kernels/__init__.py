"""The exact kernels, and what can be made of them: sums, products, kernels of several columns."""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
