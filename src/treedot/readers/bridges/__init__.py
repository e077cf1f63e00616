"""Trees of the objects of parsers and libraries; no library is imported before its objects exist."""
