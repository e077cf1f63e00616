"""Sparse rows: a column for every fragment within a budget, and what lies beyond it if wanted.

Read from top to bottom: ``encoder`` makes rows of forests; ``bounded`` finds the fragments of a tree within
the budget and ``rows`` makes a row of them; ``dictionary`` keeps what was learned from trees; ``rest``
adds what lies beyond the budget, by ``dense_rest`` or ``block_rest``. ``reference`` holds the definitions.
"""
