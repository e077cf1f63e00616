"""Lists of the fragments of trees."""
