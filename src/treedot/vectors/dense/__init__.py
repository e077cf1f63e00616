"""Dense vectors of trees (distributed trees): the compositions, an encoder for each, and the definitions."""
