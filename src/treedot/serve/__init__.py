"""A local web server that compares trees, explains decisions and searches an index. Private."""
