import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treedot._runtime.atomics import next_number, reaches
from treedot._runtime.jit import njit
from treedot._runtime.threads import NEXT, PARTS, Threads, open_threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, 7])
def test_every_span_is_worked_on_once(n_jobs):
    done = []
    with open_threads(n_jobs) as threads:
        threads.run(lambda first, last: done.append((first, last)), [(k, k + 1) for k in range(50)])
    assert sorted(done) == [(k, k + 1) for k in range(50)]


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 7])
def test_the_error_is_that_of_the_first_span_that_fails(n_jobs):
    begun = []

    def work(first, _):
        begun.append(first)
        if first >= 5:
            raise ValueError(first)

    with open_threads(n_jobs) as threads, pytest.raises(ValueError, match=r"^5$"):
        threads.run(work, [(k, k + 1) for k in range(100)])
    assert len(begun) <= 5 + n_jobs  # nothing is begun after an error


def test_nothing_is_begun_after_an_interruption():
    begun, threads = [], []

    def interrupted(thread, numbers):
        threads.append(thread)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Threads(2, interrupted).run(lambda first, _: begun.append(first), [(0, 1), (1, 2)])
    threads[0](0)  # looks for work, and finds none
    assert begun == []


@given(
    st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 5), st.integers(1, 500), st.integers(1, 500)
)
def test_spans_cover_a_range_in_order(work, count, at_least, more):
    before = np.concatenate([[0], np.cumsum(work, dtype=int)])
    spans = Threads(count, map).even_spans(before, at_least, at_least + more)
    assert [k for first, last in spans for k in range(first, last)] == list(range(len(work)))
    assert all(first < last for first, last in spans)
    largest = max(work, default=0)
    assert all(before[last] - before[first] <= at_least + more + largest for first, last in spans)


def test_one_thread_has_one_span_and_others_have_several():
    assert Threads(1, map).spans(1000) == [(0, 1000)]
    assert len(Threads(3, map).spans(1000)) == 3 * PARTS
    assert Threads(3, map).spans(0) == []
    first, *_, last = Threads(2, map).row_spans(1000, triangular=True)
    assert first[1] - first[0] > 5 * (last[1] - last[0])  # short rows


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_results_come_in_order_while_a_few_items_ahead_are_worked_on(n_jobs):
    taken, gap = 0, []

    def items():
        nonlocal taken
        while taken < 50:
            taken += 1
            yield taken

    with open_threads(n_jobs) as threads:
        for number, square in enumerate(threads.in_order(lambda k: k * k, items()), 1):
            assert square == number**2
            gap.append(taken - number)
    assert len(gap) == 50
    assert 0 < max(gap) <= 2 * n_jobs


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads_that_share_spans_take_each_once(n_jobs):
    taken_by = []

    def work(limits, taken):
        while (span := next_of(taken)) < limits.size - 1:
            taken_by.append((int(limits[span]), int(limits[span + 1])))

    spans = [(k, k + 3) for k in range(30, 330, 3)]
    with open_threads(n_jobs) as threads:
        threads.share(work, spans)
        threads.share(work, [])
    assert sorted(taken_by) == spans


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 7])
def test_a_step_begins_when_all_spans_before_it_are_done(n_jobs):
    sizes = [5, 1, 40, 1, 13]
    first_of_steps = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    events = []

    def work(steps, span):
        assert steps.before.tolist() == first_of_steps.tolist()
        span = next_of(steps.taken) if span == NEXT else span
        while span < steps.before.size:
            if not has_come(steps.done, steps.before[span]):
                return span  # and is called again with it
            events.append(("begin", span))
            events.append(("end", int(steps.limits[span]), int(steps.limits[span + 1])))
            next_of(steps.done)
            span = next_of(steps.taken)
        return span

    ends = np.cumsum([7, *([2] * sum(sizes))]).tolist()
    spans = list(itertools.pairwise(ends))
    steps = [spans[end - size : end] for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
    with open_threads(n_jobs) as threads:
        threads.share_steps(work, steps)
        assert sorted(event[1:] for event in events if event[0] == "end") == spans
        for span, before in enumerate(first_of_steps):
            ended = [event[1:] for event in events[: events.index(("begin", span))] if event[0] == "end"]
            assert set(spans[:before]) <= set(ended)
        threads.share_steps(work, [])


@njit
def next_of(counter):
    return next_number(counter)


@njit
def has_come(counter, number):
    return reaches(counter, number)
