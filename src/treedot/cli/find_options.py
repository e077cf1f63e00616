"""The arguments of the commands that find trees: this module loads nothing heavy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treedot.languages import LANGUAGES
from treedot.parameters import REPORT_FORMATS, UNITS


def add_dups(command: Callable[..., Any], commands: Any) -> None:
    """Add the arguments of ``treedot dups``."""
    dups = command(
        commands,
        "dups",
        "find near-duplicates in source code",
        "List groups of functions (or classes, or files) that are copies of each other, also renamed and "
        "edited ones, those that share most first. Names, literals, comments and layout do not matter. "
        "Settings may stand in [dups] of treedot.toml, or [tool.treedot.dups] of pyproject.toml; a comment "
        "'treedot: ignore' in or above a function leaves it out. Exit codes: 0 done, 1 with --fail-on-new "
        "where there are groups, 2 the command line or the input is bad.",
    )
    dups.add_argument("paths", nargs="+", metavar="PATH", help="source files, or folders of them")
    dups.add_argument("--unit", choices=UNITS, help="what is compared (default: function)")
    dups.add_argument("--language", choices=sorted(LANGUAGES), help="only this language (default: all)")
    dups.add_argument(
        "--min-nodes",
        type=int,
        metavar="N",
        help="leave out smaller syntax trees (default: 40)",
    )
    dups.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="above 0, up to 1: of all constructs in either of two functions, the share that is in both. "
        "Below T + 0.1, what they share must also be rare enough (default: 0.7)",
    )
    dups.add_argument(
        "--exclude", action="append", metavar="PATTERN", help="leave out files, as in .gitignore"
    )
    dups.add_argument("--top", type=int, metavar="N", help="show the first N groups (default: all)")
    dups.add_argument("--format", choices=REPORT_FORMATS, help="of the report (default: text)")
    dups.add_argument("-o", "--output", metavar="FILE", help="write the report there (default: print it)")
    new = dups.add_argument_group("only what is new")
    new.add_argument(
        "--changed-since", metavar="REF", help="only groups with lines that changed since a git commit"
    )
    new.add_argument("--baseline", metavar="FILE", help="only groups that this file does not know")
    new.add_argument("--write-baseline", metavar="FILE", help="write all groups to such a file")
    new.add_argument("--fail-on-new", action="store_true", help="exit with 1 where any group is shown")
    dups.add_argument("-j", "--jobs", type=int, default=-1, metavar="N", help="processes (default: all)")
