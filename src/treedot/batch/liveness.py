"""Check that a cluster is alive: its scheduler answers, and it has workers."""

from __future__ import annotations

import time
from collections.abc import Callable

from treedot.errors import IncompleteError

SCHEDULER_SECONDS = 30.0  # without an answer, before the scheduler is given up
WORKERS_SECONDS = 120.0  # without a worker, after there were some, before the cluster is given up
LOOK_SECONDS = 1.0  # without a result, before the scheduler is asked


class Liveness:
    """Raises an ``IncompleteError`` if the scheduler, or all workers, have been gone for too long.

    Parameters
    ----------
    name : str
        The name of the scheduler, for messages.
    n_workers : callable
        Asks the scheduler for the number of workers; raises if it does not answer.
    """

    def __init__(self, name: str, n_workers: Callable[[], int]) -> None:
        self._name, self._n_workers = name, n_workers
        self._had_workers = False
        self._heard = self._worked = time.monotonic()

    def note(self) -> None:
        """Record a result, which proves that the scheduler and a worker are alive."""
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
        if workers or not self._had_workers:  # the first workers may take long to start
            self._had_workers, self._worked = self._had_workers or workers > 0, self._heard
        elif self._heard - self._worked >= WORKERS_SECONDS:
            raise self._gone(f"has had no worker for {WORKERS_SECONDS:g} s", "start workers")
        return True

    def _gone(self, what: str, remedy: str) -> IncompleteError:
        return IncompleteError(
            f"{self._name} {what}. Finished parts are kept: {remedy}, and repeat the call to resume"
        )
