"""Errors of the library in the words of the command line: options instead of parameters."""

from __future__ import annotations

import argparse
import re

VECTORIZERS = {"FragmentVectorizer": "--vectors sparse", "DistributedTreeVectorizer": "--vectors dense"}
OTHER_NAMES = {"n_jobs": "jobs", "random_state": "seed", "similarity": "word_vectors"}  # of parameters
VALUE = r"'[^']*'|…|[\w.+*-]*\w"
NO_PATH = r"(?<![\w./\\=-])"  # before a name


def in_options(text: str, command: argparse.ArgumentParser) -> str:
    """Return an error message with the options of a command for the parameters of Python that it names.

    ``name=value`` becomes ``--name value``, and ``rest_size`` becomes ``--rest-size``, where the command has
    the option and it takes the value. Names of one word without a value are left, since they may be words of
    the sentence; so are names that are part of a path.

    Parameters
    ----------
    text : str
        The message.
    command : argparse.ArgumentParser
        The parser of the command.

    Returns
    -------
    str
        The message for users of the command line.
    """
    options = {action.dest: action for action in command._actions if _long_names(action)}
    options |= {name: options[option] for name, option in OTHER_NAMES.items() if option in options}
    names = "|".join(sorted(options, key=len, reverse=True))

    def with_value(match: re.Match[str]) -> str:
        action, value = options[match["name"]], match["value"].strip("'")
        first, *others = _long_names(action)
        if value == "True":
            return first
        if value in ("None", "False"):
            return next((name for name in (first, *others) if name.startswith("--no-")), f"no {first}")
        return f"{first} {value}" if action.choices is None or value in action.choices else match[0]

    def without_value(match: re.Match[str]) -> str:
        return _long_names(options[match[0]])[0] if "_" in match[0] else match[0]

    text = re.sub(rf"{NO_PATH}(?P<name>{names})=(?P<value>{VALUE})(?![\w/\\])", with_value, text)
    text = re.sub(rf"{NO_PATH}(?:{names})(?![\w/\\=-])", without_value, text)
    if "vectors" in options:
        text = re.sub("|".join(VECTORIZERS), lambda match: VECTORIZERS[match[0]], text)
    return text


def _long_names(action: argparse.Action) -> list[str]:
    return [name for name in action.option_strings if name.startswith("--")]
