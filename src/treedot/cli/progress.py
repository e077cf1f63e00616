"""A progress bar on stderr with rate and time left; it appears only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import treedot as td
from treedot._runtime.timing import Stopwatch

if TYPE_CHECKING:
    from treedot.batch.streaming import Progress as TrainingProgress


def _on_terminal() -> bool:
    """Return whether stderr is a terminal; it is None if it is closed."""
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """A bar that counts trees, bytes or other things; pass it as ``progress``.

    Parameters
    ----------
    unit : str, default="trees"
        What is counted; ``"B"`` for bytes.
    total : int, optional
        The number at which the bar is full, if it is known at the start.
    """

    def __init__(self, unit: str = "trees", total: int | None = None) -> None:
        from tqdm import tqdm

        self._bar = tqdm(
            total=total,
            unit="B" if unit == "B" else f" {unit}",
            unit_scale=unit == "B",
            file=sys.stderr,
            disable=not _on_terminal(),
            leave=False,
        )

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show that ``done`` are done, and set the total if it is given."""
        if total is not None:
            self._bar.total = total
        self._bar.update(done - self._bar.n)

    def add(self, total: int) -> None:
        """Show that one more is done; if the bar was full, start a new round at 1."""
        if self._bar.n == self._bar.total:
            self.restart()
        self(self._bar.n + 1, total)

    def over(self, forests: Iterable[td.Forest]) -> Iterator[td.Forest]:
        """Yield the forests, and count their trees."""
        done = 0
        for forest in forests:
            yield forest
            done += len(forest)
            self(done)

    def restart(self) -> None:
        """Begin again at 0."""
        self._bar.reset()

    def describe(self, before: str = "", after: str = "", *, now: bool = False) -> None:
        """Set the texts before and after the bar; they appear at the next update, or now."""
        self._bar.set_description(before, refresh=False)
        self._bar.set_postfix_str(after, refresh=now)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


def report_passes(
    progress: Progress, name: str = "pass", gap: str = "duality gap about"
) -> Callable[[TrainingProgress], None]:
    """Return a callback for a training that moves the bar during a pass, and prints a line after it.

    ``name`` is the word for a pass, and ``gap`` comes before the duality gap in each line.
    """
    watch, began = Stopwatch(), False

    def report(at: TrainingProgress) -> None:
        nonlocal began
        if at.trees:
            progress.describe("reading" if at.passes < 0 else f"{name} {at.passes + 1}")
            progress(at.trees, at.of_trees or None)
            return
        progress.restart()
        seconds = watch.lap()
        if began:
            print(f"{name} {at.passes}: {gap} {at.gap:.2g}, {seconds:.1f} s", flush=True)
        elif at.passes:
            print(f"{at.of_trees:,} trees, resuming after {name} {at.passes}", flush=True)
        else:
            print(f"{at.of_trees:,} trees read, {seconds:.1f} s", flush=True)
        began = True

    return report
