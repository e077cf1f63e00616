"""Report groups of near-duplicates as text, JSON, SARIF, Markdown or HTML."""

from treedot.clones.report.formats import duplicates_report

__all__ = ["duplicates_report"]
