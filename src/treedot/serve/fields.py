"""The fields of requests: one table for the pages, the JSON interface and its description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from treedot.errors import LimitError, ParameterError
from treedot.languages import LANGUAGES
from treedot.parameters import (
    COMPOSITIONS,
    DOCUMENTS,
    TREEBANKS,
    checked_choice,
    checked_integer,
    checked_share,
)

AUTO = "auto"
INPUT_FORMATS = (AUTO, "brackets", *DOCUMENTS, *TREEBANKS, *LANGUAGES)
COMPONENTS = tuple(2**power for power in range(8, 15))  # the dimensions that a request may choose
MAX_TEXT = 100_000  # characters of an input
MAX_RESULTS = 50

Value = str | int | float


class Field(NamedTuple):
    """One field of a request: its type, and what it may be.

    Parameters
    ----------
    name : str
        The name.
    about : str
        A description for readers of the interface.
    default : str, int or float
        The value if a request leaves the field out; it has the type of the field.
    choices : tuple
        All allowed values; empty if there are too many to list.
    low, high : int
        The limits of an integer.
    """

    name: str
    about: str
    default: Value
    choices: tuple[Value, ...] = ()
    low: int = 0
    high: int = 0

    def read(self, given: Any) -> Value:
        """Return the value of a field as a request gives it, text or JSON; raise ParameterError."""
        if isinstance(self.default, str):
            text = _checked_text(self.name, given)
            return str(checked_choice(self.name, text, self.choices)) if self.choices else text
        if isinstance(given, bool):
            raise ParameterError(f"{self.name} must be a number, not {given}")
        number = _number(given, type(self.default)) if isinstance(given, str) else given
        if isinstance(self.default, float):
            return checked_share(self.name, number)
        number = checked_integer(self.name, number, at_least=self.low)
        if self.choices and number not in self.choices:
            raise ParameterError(f"{self.name} must be one of {self.choices}, not {number}")
        if not self.choices and number > self.high:
            raise ParameterError(f"{self.name} must be at most {self.high}, not {number}")
        return number


def _number(text: str, kind: type) -> Any:
    """Return the number that a text holds; the text itself if it holds none, which the check reports."""
    try:
        return kind(text[:32])
    except ValueError:
        return text[:32]


def _checked_text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise ParameterError(f"{name} must be a text, not {type(given).__name__}")
    if len(given) > MAX_TEXT:
        raise LimitError(f"{name} has {len(given):,} characters (at most {MAX_TEXT:,}): give a part of it")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"{name} is not valid Unicode: it contains half of a surrogate pair") from None
    return given


def _input(name: str, what: str) -> tuple[Field, Field]:
    return (
        Field(name, f"{what}: a tree in brackets, source code, or a document", ""),
        Field(f"{name}_format", f"The format of {name}; {AUTO} guesses it", AUTO, INPUT_FORMATS),
    )


COMPARE = (
    *_input("a", "The first tree"),
    *_input("b", "The second tree"),
    Field("decay", "λ, the weight of larger fragments, from 0 to 1", 0.4),
    Field("mu", "μ, the decay by depth in the partial tree kernel, from 0 to 1", 0.4),
    Field("components", "d, the dimension of the vectors of distributed trees", 1024, COMPONENTS),
    Field("composition", "How vectors of children become that of their parent", "mixed", COMPOSITIONS),
    Field("fragments", "The number of shared fragments to list", 10, low=0, high=MAX_RESULTS),
)
EXPLAIN = (
    *_input("tree", "The tree"),
    Field("target", "The class whose score to explain; by default the predicted one", ""),
    Field("fragments", "The number of fragments to list for and against", 8, low=0, high=MAX_RESULTS),
)
SEARCH = (
    *_input("text", "What to search for"),
    Field("k", "The number of results", 10, low=1, high=MAX_RESULTS),
)


class Topic(NamedTuple):
    """A topic of requests; its JSON values are at ``/api/NAME``."""

    summary: str
    fields: tuple[Field, ...]
    page: str  # the path of its page


TOPICS = {
    "status": Topic("What the server has loaded", (), "/"),
    "compare": Topic("Compare two trees", COMPARE, "/compare"),
    "estimates": Topic(
        "Estimate the kernel of two trees by vectors, with several seeds", COMPARE, "/estimates"
    ),
    "decode": Topic("Read two trees back from their vectors", COMPARE, "/decode"),
    "explain": Topic("Explain the decision of the model about a tree", EXPLAIN, "/explain"),
    "search": Topic("Search the index for trees that are similar to a snippet", SEARCH, "/search"),
}


def read_fields(fields: tuple[Field, ...], given: Mapping[str, Any]) -> dict[str, Value]:
    """Return the values of all fields; raise ParameterError for a bad value or an unknown name."""
    unknown = given.keys() - {field.name for field in fields}
    if unknown:
        names = ", ".join(field.name for field in fields)
        raise ParameterError(f"there is no field {min(unknown)[:50]!r}: the fields are {names}")
    return {
        field.name: field.read(given[field.name]) if field.name in given else field.default
        for field in fields
    }
