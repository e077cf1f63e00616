"""Hostile input for everything in treedot that reads or computes: ``python -m fuzz``."""
