"""Errors of the library in the words of the command line: options instead of parameters."""

from __future__ import annotations

import argparse
import re

VECTORIZERS = {"FragmentVectorizer": "--vectors sparse", "DistributedTreeVectorizer": "--vectors dense"}
OTHER_NAMES = {"n_jobs": "jobs", "random_state": "seed"}  # parameters that options call otherwise
VALUE = r"'[^']*'|…|[\w.+*-]*\w"
NO_PATH = r"(?<![\w./\\=-])"  # before a name


def in_options(text: str, parser: argparse.ArgumentParser, command: str) -> str:
    """Return an error message with the options of a command for the parameters of Python that it names.

    ``name=value`` becomes ``--name value``, and ``rest_size`` becomes ``--rest-size``, where the command has
    the option. Names of one word without a value are left, since they may be words of the sentence; so are
    names that are part of a path.

    Parameters
    ----------
    text : str
        The message.
    parser : argparse.ArgumentParser
        The parser of all commands.
    command : str
        The name of the command.

    Returns
    -------
    str
        The message for users of the command line.
    """
    options = _long_options(parser, command)
    names = "|".join(sorted(options, key=len, reverse=True))

    def with_value(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"].strip("'")
        if value == "True":
            return options[name][0]
        if value in ("None", "False"):
            return next((x for x in options[name] if x.startswith("--no-")), f"no {options[name][0]}")
        return f"{options[name][0]} {value}"

    def without_value(match: re.Match[str]) -> str:
        return options[match[0]][0] if "_" in match[0] else match[0]

    text = re.sub(rf"{NO_PATH}(?P<name>{names})=(?P<value>{VALUE})(?![\w/\\])", with_value, text)

    text = re.sub(rf"{NO_PATH}(?:{names})(?![\w/\\=-])", without_value, text)
    if "vectors" in options:
        text = re.sub("|".join(VECTORIZERS), lambda match: VECTORIZERS[match[0]], text)
    return text


def _long_options(parser: argparse.ArgumentParser, command: str) -> dict[str, list[str]]:
    """Return the long options of a command by the names of their parameters."""
    commands = next(found for found in parser._actions if isinstance(found, argparse._SubParsersAction))
    found = {
        action.dest: [option for option in action.option_strings if option.startswith("--")]
        for action in commands.choices[command]._actions
    }
    found |= {name: found[option] for name, option in OTHER_NAMES.items() if option in found}
    return {name: options for name, options in found.items() if options}
