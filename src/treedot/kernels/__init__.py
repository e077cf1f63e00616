"""The exact kernels, and their combinations: sums, products, kernels of several columns."""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
