"""The version of treedot."""

__version__ = "0.1.0"
