"""Reports: what was found, for people and for programs."""

from treedot.report.duplicates import duplicates_report

__all__ = ["duplicates_report"]
