"""Raise the error of a tree that cannot be read, or pass it to a callback and continue."""

from __future__ import annotations

from collections.abc import Callable

from treedot.errors import SourceError


class OnBad:
    """Call it with an error: it raises the error, or passes it to the user's callback and returns."""

    def __init__(self, callback: Callable[[SourceError], object] | None = None) -> None:
        self.callback = callback

    @property
    def skips(self) -> bool:
        """Whether reading continues after an error."""
        return self.callback is not None

    def __call__(self, error: SourceError) -> None:
        """Handle one error."""
        if self.callback is None:
            raise error
        self.callback(error)
