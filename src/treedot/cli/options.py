"""Options that several commands share. Every command imports this module, so it imports nothing heavy."""

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
PATHS_HELP = "source file, folder of source files, or file of trees; with --unit page, file or folder of HTML"
QUERY_HELP = (
    "a file; a function or class as file:line or file:name (of a method, file:Class.name, or only its name "
    "if no other has it); source code; a tree in brackets; or - for standard input"
)
MODEL_HELP = "a folder that treedot train wrote"


def add_command(commands: argparse._SubParsersAction[Any], name: str, run: Work) -> argparse.ArgumentParser:
    """Add a command that calls ``run``; return its parser.

    The docstring of ``run`` is the help text. Its first line is the summary, its last paragraph the example.
    """
    text, _, example = (run.__doc__ or "").partition("Example: ")  # python -OO removes docstrings
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
    """Raise ParameterError if the output of a command that writes one file is a folder."""
    if output is not None and (output.endswith(("/", os.sep)) or os.path.isdir(output)):
        raise ParameterError(
            f"cannot write {output}: it is a folder; use treedot batch {command} for a folder of parts"
        )


def add_jobs(command: argparse.ArgumentParser, what: str = "threads") -> None:
    """Add the option that sets the number of threads or processes."""
    command.add_argument(
        "-j", "--jobs", type=int, default=-1, metavar="N", help=f"number of {what} (default: -1, all cores)"
    )


def add_class(command: argparse.ArgumentParser, required: bool, default: str = "") -> None:
    """Add the option that names the column of classes."""
    command.add_argument(
        "--class",
        "--label",
        dest="class_column",
        required=required,
        metavar="COLUMN",
        help=f"the column that holds the classes, or numbers, to predict{default}",
    )


def add_reading(
    command: argparse.ArgumentParser, *, skip: bool = True, jobs: bool = False, cache: bool = True
) -> None:
    """Add the options that say how files become trees; with ``jobs``, also the number of threads."""
    group = command.add_argument_group("reading trees")
    group.add_argument(
        "--format",
        choices=FORMATS,
        metavar="NAME",
        help=f"format of the files: {', '.join(FORMATS)} (default: from the suffix, else brackets)",
    )
    group.add_argument(
        "--column",
        metavar="NAME",
        help="the column of a table with the trees (default: tree; with a model, the column that it was "
        "trained with)",
    )
    group.add_argument(
        "--unit",
        choices=(*DOCUMENT_UNITS, *CODE_UNITS, *DEPENDENCY_TREES),
        help="what becomes a tree. In XML and JSON: the document (default), or each record, that is each "
        "element below the root or each item of the top-level array. In source code: each function "
        "(default), class or file. In CoNLL-U: each sentence, with relations (grct, default), words (lct) or "
        "only words (loct) as inner nodes, or with relations and both of their words (cgrct, clct)",
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
        help="read compressed files even if they unpack to more than 200 times their size",
    )


def add_no_cache(command: argparse._ActionsContainer) -> None:
    """Add the option that turns off the cache."""
    command.add_argument(
        "--no-cache",
        action="store_true",
        help="do not use the cache of parsed files and near-duplicates (see treedot cache)",
    )


def add_choice_of_files(command: argparse._ActionsContainer) -> None:
    """Add the options that say which files of a folder are read."""
    command.add_argument(
        "--exclude",
        action="append",
        metavar="PATTERN",
        help="leave out files that match a pattern, as in .gitignore; may be given several times",
    )
    add_include_vendored(command)


def add_include_vendored(command: argparse._ActionsContainer) -> None:
    """Add the option that reads code that nobody wrote for the project."""
    command.add_argument(
        "--include-vendored",
        action="store_true",
        default=None,
        help="in folders, also read vendored code, installed packages, environments, the output of "
        "builds, and minified, compiled and generated files; and functions that are only stubs",
    )


def add_similarity(command: argparse.ArgumentParser) -> None:
    """Add the options that say which trees are near-duplicates."""
    command.add_argument("--min-nodes", type=int, metavar="N", help="leave out smaller trees (default: 40)")
    command.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="similarity of near-duplicates, above 0 and at most 1: the productions in both trees, as a "
        "share of those in either. Below T + 0.1, the shared ones must be rare enough; below T, the trees "
        "must also be nearest to each other or have the same names (default: 0.7)",
    )


def add_units(command: argparse.ArgumentParser, min_nodes: str = "1") -> None:
    """Add the options that say how source code and pages become units; ``min_nodes`` says a default."""
    group = command.add_argument_group("reading")
    group.add_argument(
        "--unit",
        choices=(*CODE_UNITS, "page"),
        help="what to compare: functions, classes or files of source code, or HTML pages (default: function)",
    )
    add_unpacking(group)
    add_no_cache(group)
    add_language(group, "read only files in this language", "all")
    add_choice_of_files(group)
    group.add_argument(
        "--min-nodes",
        type=int,
        metavar="N",
        help=f"leave out units with smaller trees (default: {min_nodes})",
    )
    add_jobs(command, "processes or threads")


def add_language(command: argparse._ActionsContainer, what: str, default: str) -> None:
    """Add the option that names a programming language."""
    help = f"{what}: {', '.join(LANGUAGES)} (default: {default})"
    command.add_argument("--language", choices=list(LANGUAGES), metavar="NAME", help=help)


def add_text_or_json(command: argparse.ArgumentParser) -> None:
    """Add the option that chooses the output format."""
    command.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default: text)"
    )
