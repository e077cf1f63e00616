"""The work of one request in a worker: from its fields to the body of the answer."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from treedot.errors import LimitError, TreedotError
from treedot.serve.answers import Answer, Given
from treedot.serve.fields import TOPICS, Field, Value, read_fields
from treedot.serve.pages.layout import problem

BAD, TOO_LARGE, BROKEN = 400, 413, 500
TOO_DEEP = "the input is nested too deeply: give a part of it"
TOO_MUCH_MEMORY = "this takes too much memory: give smaller trees"
UNEXPECTED = "an unexpected error; the log of the server describes it"


def topic(name: str) -> Any:
    """Return the module of a topic."""
    return import_module(f"treedot.serve.topics.{name}")


def answered(name: str, as_page: bool, fields: Mapping[str, Any], given: Given) -> Answer:
    """Return the answer to a request; every error becomes an answer."""
    try:
        read = read_fields(TOPICS[name].fields, fields)
        if as_page:
            return Answer(200, topic(name).page(read, given))
        return Answer(200, _json(topic(name).values(read, given)))
    except Exception as error:  # also of a library, about a hostile input
        status, message = _problem(error)
    if not as_page:
        return Answer(status, _json({"error": message}))
    # Of a page that shows what is wrong in place of its result, browsers need not report an error.
    kept = {field.name: _kept(field, fields) for field in TOPICS[name].fields}
    return Answer(BROKEN if status == BROKEN else 200, topic(name).frame(kept, problem(message)))


def _json(values: object) -> str:
    return json.dumps(values, ensure_ascii=False, allow_nan=False)


def _kept(field: Field, given: Mapping[str, Any]) -> Value:
    """Return the value of a field, for the form beside an error, or its default if it is bad."""
    try:
        return field.read(given[field.name])
    except (KeyError, TreedotError):
        return field.default


def _problem(error: Exception) -> tuple[int, str]:
    """Return the status for an error, and the message for the client."""
    match error:
        case LimitError():
            return TOO_LARGE, str(error)
        case TreedotError():
            return BAD, str(error)
        case RecursionError():
            return TOO_LARGE, TOO_DEEP
        case MemoryError():
            return TOO_LARGE, TOO_MUCH_MEMORY
    traceback.print_exception(error, file=sys.stderr)
    return BROKEN, UNEXPECTED
