"""``Report``: the content of a report of near-duplicates, which every format writes in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from treedot.clones.report.findings import Finding
from treedot.clones.report.overview import Overview


@dataclass(frozen=True)
class About:
    """The run that a report is about.

    Attributes
    ----------
    project : str
        The name of the project.
    root : str
        The absolute path, with "/", of the folder that relative names of files start from.
    date : str
        The day of the run.
    paths : tuple of str
        The files and folders that were searched.
    settings : mapping of str to str
        The settings of the search, by their names.
    left_out : mapping of str to int
        The number of files that were not read, by reason.
    lines : mapping of str to int
        The number of lines of every file that was read.
    units : str
        The number of units that were compared, in words: ``"120 functions"``.
    """

    project: str
    root: str
    date: str
    paths: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    units: str = ""


@dataclass(frozen=True)
class Report:
    """The content of a report.

    Attributes
    ----------
    title : str
        The title of a page or a comment.
    found : sequence of Finding
        The groups to show, in their order.
    overview : Overview
        The extent of all groups, shown or not.
    about : About or None
        The run, if it is known.
    is_coloured : bool
        Whether a text is for a terminal with colours.
    """

    title: str
    found: Sequence[Finding]
    overview: Overview
    about: About | None = None
    is_coloured: bool = False
