"""Trees in brackets: found in text, scanned by compiled code, on all cores."""
