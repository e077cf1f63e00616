"""The program ``treedot``. Each command is a module of the same name; heavy imports wait until it runs."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from importlib import import_module

from treedot._runtime.ending import interruption, take_signals
from treedot._storage.compression import unpacking_large
from treedot._storage.files import reason
from treedot._version import __version__
from treedot.cli.argument_parser import Parser
from treedot.cli.options import add_command
from treedot.cli.pipes import ignore_closed_output, note, standard_streams, warnings_as_notes
from treedot.cli.wording import in_options
from treedot.errors import TreedotError

COMMANDS = (
    "dups", "index", "search", "similar", "cluster", "tune", "encode", "decode", "kernel", "gram", "train",
    "predict", "evaluate", "explain", "batch", "convert", "info", "check", "compile", "cache", "demo",
    "serve", "mcp",
)  # fmt: skip


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser for all commands, or, if ``only`` names one, for that command."""
    top = Parser(
        prog="treedot",
        description="Compare trees and source code: find near-duplicates, search, encode and classify.",
        epilog="Exit codes: 0 success, 1 bad input or settings (dups: 2), 2 wrong command line, "
        "130 interrupted, 143 terminated.",
    )
    top.add_argument("--version", action="version", version=f"treedot {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in (only,) if only in COMMANDS else COMMANDS:
        module = import_module(f"treedot.cli.{name}")
        module.add_options(add_command(commands, name, module.run))
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default the one of this process; return the exit code."""
    if arguments is None:
        take_signals()
        arguments = sys.argv[1:]
    options = None
    try:
        with standard_streams(), warnings_as_notes():
            if not arguments:
                parser().print_help()
                return 0
            options = parser(arguments[0]).parse_args(arguments)
            if _writes_a_file(options):
                ignore_closed_output()
            with unpacking_large(getattr(options, "unpack_large", False)), _parsed_files(options):
                return options.run(options) or 0
    except TreedotError as error:
        note(str(error) if options is None else in_options(str(error), options.parser))
    except OSError as error:
        note(f"{error.filename}: {reason(error)}" if error.filename else reason(error))
    except KeyboardInterrupt:
        note(interruption())
        return 130
    except MemoryError as error:
        note(f"not enough memory ({error})")
    return 1 if options is None else options.failed


def _parsed_files(options: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Return a context that uses the cache of parsed source code, if the command has one."""
    if getattr(options, "no_cache", True):
        return contextlib.nullcontext()
    from treedot.readers.code.parse_cache import ParseCache, keeping_parsed

    return keeping_parsed(ParseCache())


def _writes_a_file(options: argparse.Namespace) -> bool:
    """Return whether a command writes its result to a file, and prints only remarks."""
    return options.command == "compile" or getattr(options, "output", None) not in (None, "-")
