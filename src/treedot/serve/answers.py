"""The tasks that the server gives its workers.

The server imports only this module, which imports what it needs when it runs in a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Given:
    """The paths of an index and of a model, as the command line named them; None where it named none.

    ``is_example`` says that the model is the one of the example questions.
    """

    index: str | None = None
    model: str | None = None
    is_example: bool = False


class Answer(NamedTuple):
    """The status and the body of a response."""

    status: int
    body: str


def answer(name: str, as_page: bool, fields: Mapping[str, Any], given: Given) -> Answer:
    """Return the answer to a request, as a page or as JSON."""
    from treedot.serve.work import answered

    return answered(name, as_page, fields, given)


def read_index(path: str) -> None:
    """Read an index; raise an error if that fails."""
    from treedot.serve.given import current_index

    current_index(path)


def read_model(path: str) -> None:
    """Read a model; raise an error if that fails."""
    from treedot.serve.given import current_model

    current_model(path)


def train_example(folder: str) -> None:
    """Train the model of the example questions, and save it to a folder."""
    from treedot.serve.example_questions import train

    train(folder)


def prepare(name: str) -> None:
    """Import what a topic needs, which takes a second or two and does not count as time of a request."""
    from treedot.serve.work import topic

    topic(name)
