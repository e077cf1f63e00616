"""Distributed trees: compositions, the encoders of each, and their definition."""
