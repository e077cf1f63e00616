"""The inputs of a model: each turns columns of trees, numbers or texts into columns of one matrix."""
