"""Sparse rows: a column for every fragment within a budget, and what lies beyond it if wanted."""
