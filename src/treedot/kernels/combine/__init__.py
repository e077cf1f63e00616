"""Kernels made of kernels: sums, products, polynomials, columns of a table."""
