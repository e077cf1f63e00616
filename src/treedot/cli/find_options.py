"""The options of the commands that find; imported with every command, so nothing heavy is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from treedot.languages import LANGUAGES
from treedot.parameters import CODE_UNITS, REPORT_FORMATS

PATHS_HELP = "file or folder of source code or, with --unit page, of HTML; or a file of trees"
QUERY_HELP = (
    "a file, one of its units as file:line or file:name, source code, a tree in brackets, "
    "or - for standard input"
)

AddCommand = Callable[[str, str, str], argparse.ArgumentParser]


def add_find_commands(command: AddCommand) -> None:
    """Add the commands but dups; ``command`` makes one of its name, what it does in a line, and in full."""
    index = command(
        "index",
        "make an index of source code or trees, to search in",
        "Write one file that treedot search finds similar units in. Names and literals do not count: a "
        "renamed copy is found as well as an equal one. The index appears, or takes the place of the old "
        "one, when it is complete.",
    )
    index.add_argument("paths", nargs="+", metavar="PATH", help=PATHS_HELP)
    index.add_argument("-o", "--output", required=True, metavar="INDEX", help="the file to write")
    index.add_argument(
        "--update",
        action="store_true",
        help="bring an index up to date where there is one: what is at the PATHs is read again if it has "
        "changed, and removed if it is gone; what is elsewhere stays",
    )
    index.add_argument("--overwrite", action="store_true", help="replace the file if there is one")
    _add_units(index)

    search = command(
        "search",
        "find what is most like a query in an index",
        "Print the units of an index that are most like each unit of the query, with two numbers: the cosine "
        "of their rows of fragments, by which they are ordered, and the share of the productions of either "
        "that occur in both.",
    )
    search.add_argument("index", metavar="INDEX", help="a file that treedot index wrote")
    search.add_argument("query", metavar="QUERY", help=QUERY_HELP)
    search.add_argument("-k", type=int, default=10, metavar="K", help="how many to find (default: 10)")
    add_unpacking(search)
    _add_language(search, "of a query that is not a file (default: that of most units of the index)")
    _add_format(search)
    _add_jobs(search)

    similar = command(
        "similar",
        "say how similar two pieces of code or trees are",
        "Print how similar two files, units, pieces of code or trees are: the share of the productions of "
        "either that occur in both, the cosine of their rows, how far names and literals agree, and the "
        "edit distance where the trees are small.",
    )
    for name in ("a", "b"):
        similar.add_argument(name, metavar=name.upper(), help=QUERY_HELP)
    similar.add_argument(
        "--explain", action="store_true", help="also list the productions of both, and of one alone"
    )
    add_unpacking(similar)
    _add_language(similar, "of what is not a file (default: that of the other one, or python)")
    _add_format(similar)

    cluster = command(
        "cluster",
        "find groups of units that are made alike",
        "Write a table with a line for every unit: its cluster (-1 for none), the cluster's size, the id of "
        "its most typical unit and its spread, the mean of 1 - cosine to that unit. Clusters are found by "
        "HDBSCAN on rows of fragments.",
    )
    cluster.add_argument("paths", nargs="+", metavar="PATH", help=PATHS_HELP)
    cluster.add_argument("-o", "--output", required=True, metavar="FILE", help="the table, .csv")
    cluster.add_argument("--html", metavar="FILE", help="also write a page that shows the clusters")
    cluster.add_argument(
        "--min-size", type=int, default=5, metavar="N", help="units that make a cluster (default: 5)"
    )
    cluster.add_argument(
        "--threshold",
        type=float,
        metavar="C",
        help="the lowest cosine of units that are at all alike (default: 0.8 for source code, where "
        "lower ones join most functions to one cluster; else 0.5)",
    )
    _add_units(cluster)


def add_dups_command(command: AddCommand) -> argparse.ArgumentParser:
    """Add the command that finds near-duplicates; return it."""
    dups = command(
        "dups",
        "find near-duplicates in source code",
        "List groups of functions (or classes, or files) that are copies of each other, also renamed and "
        "edited ones, those that share most first. Names, literals, comments and layout do not matter. "
        "Settings may stand in [dups] of treedot.toml, or [tool.treedot.dups] of pyproject.toml; a comment "
        "'treedot: ignore' in or above a function leaves it out. Exit codes: 0 done, 1 with --fail-on-new "
        "where there are groups, 2 the command line or the input is bad.",
    )
    dups.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="source files, or folders of them (default: the folder that you are in); with -o FOLDER/, files "
        "of trees",
    )
    dups.add_argument("--unit", choices=CODE_UNITS, help="what is compared (default: function)")
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
    dups.add_argument(
        "--format", choices=REPORT_FORMATS, help="of the report (default: as FILE ends, else text)"
    )
    dups.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the report there: .html, .json, .sarif, .md or text (default: print it); a folder, such "
        "as out/, gets duplicates.arrow",
    )
    new = dups.add_argument_group("only what is new")
    new.add_argument(
        "--changed-since",
        metavar="REF",
        help="only near-duplicates of functions that are new or changed since a git commit",
    )
    new.add_argument("--baseline", metavar="FILE", help="only near-duplicates that this file does not know")
    new.add_argument("--write-baseline", metavar="FILE", help="write all near-duplicates to such a file")
    new.add_argument("--fail-on-new", action="store_true", help="exit with 1 where any group is shown")
    _add_jobs(dups)
    return dups


def _add_units(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("reading")
    group.add_argument(
        "--unit",
        choices=(*CODE_UNITS, "page"),
        help="what is a unit: of source code, or a page of HTML (default: function)",
    )
    add_unpacking(group)
    _add_language(group, "read only files of this language (default: all)")
    group.add_argument(
        "--min-nodes", type=int, metavar="N", help="leave out units whose trees are smaller (default: 1)"
    )
    _add_jobs(command)


def add_unpacking(command: argparse._ActionsContainer) -> None:
    """Add the option that lifts the limit for compressed files."""
    command.add_argument(
        "--unpack-large",
        action="store_true",
        help="read compressed files even where they unpack to more than 200 times their size",
    )


def _add_language(command: argparse._ActionsContainer, what: str) -> None:
    command.add_argument("--language", choices=list(LANGUAGES), metavar="NAME", help=what)


def _add_format(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")


def _add_jobs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=-1,
        metavar="N",
        help="processes or threads (default: -1, all cores)",
    )
