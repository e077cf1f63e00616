"""The parser of the command line, which suggests the command or option that a wrong one may mean."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from treedot._pages.printable import printable

VERY_WIDE = 10_000  # columns, so that a usage is one line


class Parser(argparse.ArgumentParser):
    """Reports an error in one or two lines that a terminal can show, whatever the arguments hold.

    Unknown commands and options are reported first, with the nearest one that exists and its usage.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments of this command; none may be left."""
        self._given: Sequence[str] = list(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(self._given, namespace)
        if rest and rest[0].startswith("-"):
            self._refuse(rest[0])
        if rest:
            self._exit_with(f"unexpected argument {rest[0]!r}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Print why arguments are not understood, and exit."""
        unknown = self._unknown()
        if unknown is not None:
            self._refuse(unknown)
        self._exit_with(message)

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
        self._exit_with(f"unknown {kind} {unknown}{meant}", commands.get(nearest, self).short_usage())

    def _exit_with(self, message: str, *others: str) -> NoReturn:
        lines = (f"{self.prog}: {message}; see {self.prog} --help", *others)
        self.exit(2, "".join(f"{printable(line)}\n" for line in lines))

    def short_usage(self) -> str:
        """Return the usage in one line, with the required arguments only."""
        needed = [action for action in self._actions if action.required or not action.option_strings]
        formatter = argparse.HelpFormatter(f"{self.prog} [options]", width=VERY_WIDE)
        formatter.add_usage(None, needed, ())
        return formatter.format_help().strip()

    def _unknown(self) -> str | None:
        """Return the first command or long option that does not exist."""
        commands = self._commands()
        for word in itertools.takewhile(lambda word: word != "--", self._given):
            if word.startswith("-"):
                if not self._may_be_known(word):
                    return word
            elif commands:
                return None if word in commands else word
        return None

    def _may_be_known(self, option: str) -> bool:
        """Return whether an argument is a short option, the start of a long one, or a value with a space."""
        name = option.partition("=")[0]
        long = option.startswith("--") and " " not in option
        return not long or any(known.startswith(name) for known in self._option_string_actions)

    def _commands(self) -> dict[str, Parser]:
        """Return the parsers of the commands below this one."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                commands: dict[str, Parser] = action.choices
                return commands
        return {}
