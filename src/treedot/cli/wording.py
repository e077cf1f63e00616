"""Rewrite error messages of the library for the command line: options instead of parameters."""

from __future__ import annotations

import argparse
import re

VECTORIZERS = {"FragmentVectorizer": "--vectors sparse", "DistributedTreeVectorizer": "--vectors dense"}
OTHER_NAMES = {"n_jobs": "jobs", "random_state": "seed", "similarity": "word_vectors"}  # parameter: option
VALUE = r"'[^']*'|…|[\w.+*-]*\w"
NO_PATH = r"(?<![\w./\\=-])"  # not preceded by a part of a path


def in_options(text: str, command: argparse.ArgumentParser) -> str:
    """Replace the Python parameters in an error message by the options of a command.

    ``name=value`` becomes ``--name value``, and ``rest_size`` becomes ``--rest-size``, if the command has
    the option and it takes the value. A name of one word without a value may be a word of the sentence: it is
    replaced only in "name must …" at the beginning. Names that are part of a path stay.

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
        return f"{first} {value}" if action.choices is None or value in (*action.choices, "…") else match[0]

    def without_value(match: re.Match[str]) -> str:
        is_first = match.start() == 0 and re.match(r" (\(.\) )?must ", text[match.end() :])
        return _long_names(options[match[0]])[0] if "_" in match[0] or is_first else match[0]

    text = re.sub(rf"{NO_PATH}(?P<name>{names})=(?P<value>{VALUE})(?![\w/\\])", with_value, text)
    text = re.sub(rf"{NO_PATH}(?:{names})(?![\w/\\=-])", without_value, text)
    if "vectors" in options:
        text = re.sub("|".join(VECTORIZERS), lambda match: VECTORIZERS[match[0]], text)
    return text


def _long_names(action: argparse.Action) -> list[str]:
    return [name for name in action.option_strings if name.startswith("--")]
