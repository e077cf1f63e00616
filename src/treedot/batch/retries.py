"""What becomes of tasks: each is done by an engine, and once more where its worker died."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from treedot.batch.engines import Engine, Task
from treedot.batch.shard import Outcome


def outcomes(engine: Engine, function: Callable[..., Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Yield the outcome of every task, which its last argument is the number of.

    Those whose worker died are tried once more when the others are done, one at a time: so the one that
    kills its worker is known for certain, and takes no neighbour with it.
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
            error = f"its worker died, twice ({type(result).__name__}: {' '.join(str(result).split())})"
            result = Outcome(task[-1], error=error)
        yield result


def first_failure(failures: Sequence[Outcome], name: Callable[[int], str]) -> str:
    """Return which task failed first, by its number, and why, in one line."""
    first = min(failures)
    return f"the first, {name(first.shard)}: {first.error.splitlines()[-1]}"
