"""Whether a cluster still works: its scheduler answers, and it has workers."""

from __future__ import annotations

import time
from collections.abc import Callable

from treedot.errors import IncompleteError

SCHEDULER_SECONDS = 30.0  # without an answer: then the scheduler is given up
WORKERS_SECONDS = 120.0  # without a worker, where there were some: then the cluster is given up
LOOK_SECONDS = 1.0  # without a result: then the scheduler is asked


class Liveness:
    """Raises an ``IncompleteError`` where a scheduler, or all workers, are gone for a stated time.

    Parameters
    ----------
    name : str
        The scheduler, for messages.
    n_workers : callable
        Asks the scheduler for the number of workers, and raises where it does not answer.
    """

    def __init__(self, name: str, n_workers: Callable[[], int]) -> None:
        self._name, self._n_workers = name, n_workers
        self._had_workers = False
        self._heard = self._worked = time.monotonic()

    def note(self) -> None:
        """Take note of a result, by which scheduler and workers are known to be alive."""
        self._had_workers = True
        self._heard = self._worked = time.monotonic()

    def look(self) -> bool:
        """Ask the scheduler; return whether it answers."""
        try:
            workers = self._n_workers()
        except Exception as error:
            if time.monotonic() - self._heard >= SCHEDULER_SECONDS:
                raise self._gone(f"has not answered for {SCHEDULER_SECONDS:g} s", "start it") from error
            return False
        self._heard = time.monotonic()
        if workers or not self._had_workers:  # workers may take long to come
            self._had_workers, self._worked = self._had_workers or workers > 0, self._heard
        elif self._heard - self._worked >= WORKERS_SECONDS:
            raise self._gone(f"has had no worker for {WORKERS_SECONDS:g} s", "start workers")
        return True

    def _gone(self, what: str, remedy: str) -> IncompleteError:
        return IncompleteError(
            f"{self._name} {what}. Everything that is finished is kept: {remedy}, and run the same again to "
            "make the rest"
        )
