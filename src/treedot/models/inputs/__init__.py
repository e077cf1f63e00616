"""What a model reads: trees, texts, numbers and the columns of a table, each as columns of one matrix."""
