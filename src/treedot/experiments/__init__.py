"""Measurements: how close the vectors come, and the demonstration."""
