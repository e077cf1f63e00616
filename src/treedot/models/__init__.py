"""Learn from trees: estimators, trained models and their folders, evaluation."""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
