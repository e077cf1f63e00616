"""The dense vectors of the paper: each tree becomes one vector by a recursion over its nodes."""
