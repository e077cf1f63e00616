"""A progress bar on stderr with rate and time left, where stderr is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from treedot._runtime.timing import Stopwatch
from treedot.trees import Forest

if TYPE_CHECKING:
    from treedot.batch.streaming import Progress as TrainingProgress


def _on_terminal() -> bool:
    """Tell whether someone sees stderr; it is None where it was closed."""
    return sys.stderr is not None and sys.stderr.isatty()


class Count:
    """Counts trees whose number is not known before; an object to give as ``progress``."""

    def __init__(self) -> None:
        from tqdm import tqdm

        self._bar = tqdm(unit=" trees", file=sys.stderr, disable=not _on_terminal(), leave=False)

    def __call__(self, trees: int) -> None:
        """Note how many trees are done."""
        self._bar.update(trees - self._bar.n)

    def over(self, forests: Iterable[Forest]) -> Forest:
        """Return forests as one, counted as they come."""
        parts, total = [], 0
        for forest in forests:
            parts.append(forest)
            total += len(forest)
            self(total)
        return Forest.concat(parts)

    def __enter__(self) -> Count:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()


class Counted:
    """Counts things whose number is known once the first is done; an object to give as ``progress``."""

    def __init__(self, unit: str) -> None:
        from tqdm import tqdm

        self._bar = tqdm(unit=f" {unit}", file=sys.stderr, disable=not _on_terminal(), leave=False)

    def __call__(self, done: int, total: int) -> None:
        """Note how many are done, and of how many."""
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def add(self, total: int) -> None:
        """Note that one more is done; after the last one, the first of a second round."""
        if self._bar.n == self._bar.total:
            self._bar.reset()
        self(self._bar.n + 1, total)

    def __enter__(self) -> Counted:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()


class Passes:
    """Counts the trees of each pass of a training, and says how every pass ended; to give as ``progress``.

    Passes may have another name, and their gap another meaning.
    """

    def __init__(self, name: str = "pass", gap: str = "duality gap about") -> None:
        from tqdm import tqdm

        self._name, self._gap = name, gap
        self._bar = tqdm(unit=" trees", file=sys.stderr, disable=not _on_terminal(), leave=False)
        self._watch = Stopwatch()
        self._began = False

    def __call__(self, at: TrainingProgress) -> None:
        """Note how far the training is."""
        if at.trees:
            self._bar.set_description(
                "reading" if at.passes < 0 else f"{self._name} {at.passes + 1}", refresh=False
            )
            self._bar.total = at.of_trees or None
            self._bar.update(at.trees - self._bar.n)
            return
        self._bar.reset()
        seconds = self._watch.lap()
        if self._began:
            print(f"{self._name} {at.passes}: {self._gap} {at.gap:.2g}, {seconds:.1f} s", flush=True)
        elif at.passes:
            print(f"{at.of_trees:,} trees, going on after {self._name} {at.passes}", flush=True)
        else:
            print(f"{at.of_trees:,} trees read, {seconds:.1f} s", flush=True)
        self._began = True

    def __enter__(self) -> Passes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()


class Progress:
    """Counts trees; the time left follows from how much of the files has been read."""

    def __init__(self, sources: Sequence[str]) -> None:
        from tqdm import tqdm

        self._sizes = {source: os.path.getsize(source) for source in sources if os.path.isfile(source)}
        known = all(source in self._sizes for source in sources)
        self._done = 0
        self.trees = 0
        self._bar = tqdm(
            total=sum(self._sizes[source] for source in sources) if known else None,
            unit="B",
            unit_scale=True,
            file=sys.stderr,
            disable=not _on_terminal(),
            leave=False,
        )

    def read(self, position: int) -> None:
        """Note how many bytes of the current file have been read."""
        self._bar.update(self._done + position - self._bar.n)

    def finished(self, source: str) -> None:
        """Note that a file is done."""
        self._done += self._sizes.get(source, 0)
        self.read(0)

    def advance(self, trees: int) -> None:
        """Note that trees are done."""
        self.trees += trees
        rate = self.trees / max(self._bar.format_dict["elapsed"], 1e-9)
        self._bar.set_postfix_str(f"{self.trees} trees, {rate:.0f} trees/s")

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
