"""The subset tree kernel and its bounded form: one pair, many pairs, a whole Gram matrix."""
