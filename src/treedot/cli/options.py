"""Options that several commands share; imported with every command, so nothing heavy is imported here."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from treedot.errors import ParameterError
from treedot.languages import LANGUAGES
from treedot.parameters import CODE_UNITS, DEPENDENCY_TREES, DOCUMENT_UNITS, FORMATS

Work = Callable[[argparse.Namespace], int | None]

SOURCE_HELP = (
    "file of trees (Penn brackets, .tsv, .csv, .jsonl, .parquet, .arrow, .html, .xml, .json, .conllu, .nwk, "
    ".dbn, .klp, .svmlight; also .gz, .xz, .zst), source code (.py, .js, .java, …) or a folder of it, or - "
    "for standard input"
)
TREE_HELP = f"a tree in brackets, or a {SOURCE_HELP}"
PATHS_HELP = "file or folder of source code or, with --unit page, of HTML; or a file of trees"
QUERY_HELP = (
    "a file, one of its units as file:line or file:name, source code, a tree in brackets, "
    "or - for standard input"
)
MODEL_HELP = "a folder that treedot train wrote"


def add_command(commands: argparse._SubParsersAction[Any], name: str, run: Work) -> argparse.ArgumentParser:
    """Add a command that ``run`` carries out; return its parser.

    The docstring of ``run`` is the help: its first line the summary, its last paragraph the example.
    """
    text, _, example = (run.__doc__ or "").partition("Example: ")  # None where Python drops docstrings
    brief, _, described = text.partition("\n")
    made = commands.add_parser(
        name,
        help=brief[:1].lower() + brief[1:].removesuffix("."),
        description=described.strip() or brief,
        epilog=f"Example: {example}" if example else None,
    )
    made.set_defaults(run=run, parser=made, failed=1)
    return made


def add_output(command: argparse.ArgumentParser, metavar: str, what: str, required: bool = True) -> None:
    """Add the option that names the file or folder to write."""
    command.add_argument("-o", "--output", required=required, metavar=metavar, help=what)


def refuse_folder(output: str | None, command: str) -> None:
    """Raise where the output of a command that writes one file is a folder."""
    if output is not None and (output.endswith(("/", os.sep)) or os.path.isdir(output)):
        raise ParameterError(
            f"cannot write {output}: it is a folder; use treedot batch {command} for a folder of parts"
        )


def add_jobs(command: argparse.ArgumentParser, what: str = "threads") -> None:
    """Add the option that sets how many threads or processes work."""
    command.add_argument(
        "-j", "--jobs", type=int, default=-1, metavar="N", help=f"{what} (default: -1, all cores)"
    )


def add_class(command: argparse.ArgumentParser, required: bool, default: str = "") -> None:
    """Add the option that names the column of classes."""
    command.add_argument(
        "--class",
        "--label",
        dest="class_column",
        required=required,
        metavar="COLUMN",
        help=f"the column that holds the classes{default}",
    )


def add_reading(
    command: argparse.ArgumentParser, *, skip: bool = True, jobs: bool = False, cache: bool = True
) -> None:
    """Add the options that say how files become trees, and with ``jobs`` how many threads work on them."""
    group = command.add_argument_group("reading trees")
    group.add_argument(
        "--format", choices=FORMATS, help="format of the files (default: by suffix; else brackets)"
    )
    group.add_argument(
        "--column", metavar="NAME", help="the table column that holds the trees (default: tree)"
    )
    group.add_argument(
        "--unit",
        choices=(*DOCUMENT_UNITS, *CODE_UNITS, *DEPENDENCY_TREES),
        help="what a tree is. Of XML and JSON: a document (default), or a record: an element below the root "
        "or an item of an array at the top; of source code: a function (default), a class or a file; of "
        "CoNLL-U: a dependency tree with relations (grct, default), words (lct) or only words (loct) as "
        "inner nodes",
    )
    add_unpacking(group)
    if cache:
        add_no_cache(group)
    if skip:
        group.add_argument(
            "--skip-bad", action="store_true", help="leave out trees that cannot be read, and report them"
        )
    if jobs:
        add_jobs(command)


def add_unpacking(command: argparse._ActionsContainer) -> None:
    """Add the option that lifts the limit for compressed files."""
    command.add_argument(
        "--unpack-large",
        action="store_true",
        help="read compressed files even where they unpack to more than 200 times their size",
    )


def add_no_cache(command: argparse._ActionsContainer) -> None:
    """Add the option that parses all source code anew."""
    command.add_argument(
        "--no-cache",
        action="store_true",
        help="parse all source code anew, and keep nothing of it (see treedot cache)",
    )


def add_units(command: argparse.ArgumentParser) -> None:
    """Add the options that say how source code and pages become units."""
    group = command.add_argument_group("reading")
    group.add_argument(
        "--unit",
        choices=(*CODE_UNITS, "page"),
        help="what is a unit: of source code, or a page of HTML (default: function)",
    )
    add_unpacking(group)
    add_no_cache(group)
    add_language(group, "read only files of this language (default: all)")
    group.add_argument(
        "--min-nodes", type=int, metavar="N", help="leave out units whose trees are smaller (default: 1)"
    )
    add_jobs(command, "processes or threads")


def add_language(command: argparse._ActionsContainer, what: str) -> None:
    """Add the option that names a programming language."""
    command.add_argument("--language", choices=list(LANGUAGES), metavar="NAME", help=what)


def add_text_or_json(command: argparse.ArgumentParser) -> None:
    """Add the option that chooses how results are printed."""
    command.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")
