"""Fuzz everything in treedot that reads or computes with hostile input: ``python -m fuzz``."""
