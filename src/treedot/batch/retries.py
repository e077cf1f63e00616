"""The outcomes of tasks: an engine runs each one, and once more if its worker dies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from treedot.batch.engines import Engine, Task
from treedot.batch.shard import Outcome


def outcomes(engine: Engine, function: Callable[..., Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Yield the outcome of every task; the last argument of a task is its number.

    Tasks whose worker died are repeated when the others are done, one at a time. So it is certain which task
    kills its worker, and no other task is lost with it.
    """
    lost = []
    for task, result in engine(function, tasks):
        if isinstance(result, Outcome):
            yield result
        else:
            lost.append(task)
    for task in lost:
        ((_, result),) = engine(function, [task])
        if not isinstance(result, Outcome):
            error = f"its worker died twice ({type(result).__name__}: {' '.join(str(result).split())})"
            result = Outcome(task[-1], error=error)
        yield result


def first_failure(failures: Sequence[Outcome], name: Callable[[int], str]) -> str:
    """Return the failed task with the lowest number, and its error, in one line."""
    first = min(failures)
    return f"the first, {name(first.shard)}: {first.error.splitlines()[-1]}"
