"""The subset tree kernel and the bounded tree kernel: one pair, many pairs, a whole Gram matrix."""
