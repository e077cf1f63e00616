"""Raise the error of a tree that cannot be read, or hand it to a callback and continue."""

from __future__ import annotations

from collections.abc import Callable

from treedot.errors import SourceError


class OnBad:
    """Call it with an error: raises it, or hands it to the user's callback and returns."""

    def __init__(self, callback: Callable[[SourceError], object] | None = None) -> None:
        self.callback = callback

    @property
    def skips(self) -> bool:
        """Tell whether reading goes on after an error."""
        return self.callback is not None

    def __call__(self, error: SourceError) -> None:
        """Deal with one error."""
        if self.callback is None:
            raise error
        self.callback(error)
