"""Sparse rows of fragments: explicit counts within a budget, and the rest of the kernel."""
