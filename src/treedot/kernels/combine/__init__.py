"""Kernels made of other kernels: sums, products, polynomials, columns of a table."""
