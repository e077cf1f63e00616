"""Partial tree kernels, exact and smoothed: one pair, many pairs, a whole Gram matrix."""
