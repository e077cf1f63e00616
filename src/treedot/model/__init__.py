"""Trained models: what a prediction needs, and the folders that models are kept in."""

from treedot.model.linear_model import LinearModel

__all__ = ["LinearModel"]
