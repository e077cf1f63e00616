"""The tour that ``treedot demo`` writes: one page with a section for each part of treedot."""
