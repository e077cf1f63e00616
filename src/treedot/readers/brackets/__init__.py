"""Read trees in brackets, by compiled code and several threads."""
