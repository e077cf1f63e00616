"""The parser of the command line, which suggests the nearest name for an unknown command or option."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from treedot._pages.printable import printable

VERY_WIDE = 10_000  # columns, so that a usage is one line
NUMBERS = {"int": "an integer", "float": "a number"}


class Parser(argparse.ArgumentParser):
    """Reports an error in two lines, the error and the usage, with control characters escaped.

    Unknown commands and options are reported before anything else, with the nearest name that exists.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments of this command, and report the first one that is not understood."""
        self._given: Sequence[str] = list(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(self._given, namespace)
        if rest and rest[0].startswith("-"):
            self._refuse(rest[0])
        if rest:
            self._exit_with(f"unexpected argument {rest[0]!r}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Print an error of argparse in plainer words, or an unknown name that caused it, and exit."""
        unknown = self._unknown()
        if unknown is not None:
            self._refuse(unknown)
        message = message.removeprefix("argument ").replace("the following arguments are required", "missing")
        self._exit_with(
            re.sub(r"invalid (int|float) value: ", lambda kind: f"expected {NUMBERS[kind[1]]}, not ", message)
        )

    def _refuse(self, unknown: str) -> NoReturn:
        """Report an unknown command or option with the nearest one."""
        commands = self._commands()
        if unknown.startswith("-"):
            unknown = unknown.partition("=")[0]
            kind, names = "option", list(self._option_string_actions)
        else:
            kind, names = "command", list(commands)
        nearest = next(iter(get_close_matches(unknown, names, 1)), "")
        meant = f" (did you mean {nearest}?)" if nearest else ""
        self._exit_with(f"unknown {kind} {unknown}{meant}", commands.get(nearest, self))

    def _exit_with(self, message: str, used: Parser | None = None) -> NoReturn:
        """Print an error and the usage of a command, by default of this one; exit with 2."""
        lines = (f"{self.prog}: {message}; see {self.prog} --help", (used or self).short_usage())
        self.exit(2, "".join(f"{printable(line)}\n" for line in lines))

    def format_help(self) -> str:
        """Return the help, which begins with the short usage."""
        self.usage = self.short_usage().removeprefix("usage: ")
        return super().format_help()

    def short_usage(self) -> str:
        """Return the usage in one line, with the required arguments only."""
        needed = [action for action in self._actions if action.required or not action.option_strings]
        formatter = argparse.HelpFormatter(f"{self.prog} [options]", width=VERY_WIDE)
        formatter.add_usage(None, needed, ())
        return formatter.format_help().strip()

    def _unknown(self) -> str | None:
        """Return the first command or option that does not exist."""
        commands = self._commands()
        for word in itertools.takewhile(lambda word: word != "--", self._given):
            if word.startswith("-"):
                if not self._may_be_known(word):
                    return word
            elif commands:
                return None if word in commands else word
        return None

    def _may_be_known(self, word: str) -> bool:
        """Return whether a word is an option, the start of a long one, or a value such as -1 or '-- a b'."""
        if " " in word or not word.strip("-+.e0123456789"):
            return True
        if not word.startswith("--"):
            return word[:2] in self._option_string_actions
        name = word.partition("=")[0]
        return any(known.startswith(name) for known in self._option_string_actions)

    def _commands(self) -> dict[str, Parser]:
        """Return the parsers of the commands below this one."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                commands: dict[str, Parser] = action.choices
                return commands
        return {}
