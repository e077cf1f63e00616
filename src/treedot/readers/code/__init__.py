"""Source code as trees: a tree for every function, class or file, with columns for its location."""
