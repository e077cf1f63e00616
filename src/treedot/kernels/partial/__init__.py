"""Partial tree kernels, exact and smoothed: for one pair, for many pairs, and for Gram matrices."""
