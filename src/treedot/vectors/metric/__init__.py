"""A learned similarity of trees: the cosine of their rows after a linear map."""
