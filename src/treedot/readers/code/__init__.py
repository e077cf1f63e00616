"""Source code as trees: every function, class or file is a tree, with its place as columns."""
