from typing import NamedTuple

import numpy as np
import pytest

from strategies import random_forest
from treedot import Forest
from treedot._runtime.threads import ONE_THREAD, open_threads
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.dense import label_table
from treedot.vectors.dense.label_table import LabelTable


class Vectors(NamedTuple):
    code: np.ndarray
    length: np.ndarray


class Maker:
    """Makes vectors of 16 bytes that tell their text, and notes what it was asked for."""

    def __init__(self):
        self.drawn = []

    def __call__(self, texts):
        self.drawn += texts
        return Vectors(np.array([int(text) for text in texts], np.int64), np.array([1.0] * len(texts)))


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(label_table, "TABLE_BYTES", 16 * 10)
    return LabelTable(Maker())


def texts(*numbers):
    return [str(number) for number in numbers]


def look_up(table, numbers, threads=ONE_THREAD):
    with table.rows(texts(*numbers), threads) as (rows, vectors):
        assert vectors.code[rows].tolist() == list(numbers)


def test_labels_are_drawn_once(table):
    assert table.capacity == 10
    look_up(table, range(10))
    look_up(table, range(9, -1, -1))
    assert table._make.drawn == texts(*range(10))


def test_the_least_recently_used_labels_make_room(table):
    look_up(table, range(10))
    look_up(table, range(5))
    look_up(table, [20, 21, 22])
    look_up(table, [0, 1, 2, 3, 4, 8, 9])
    assert table._make.drawn == texts(*range(10), 20, 21, 22)
    look_up(table, [5])
    assert table._make.drawn[-1] == "5"


def test_labels_in_use_stay_where_they_are(table):
    with table.rows(texts(*range(8)), ONE_THREAD) as (rows, vectors):
        look_up(table, [0, *range(20, 29)])
        look_up(table, range(30, 40))
        assert vectors.code[rows].tolist() == list(range(8))
        assert table.is_busy
    assert not table.is_busy
    look_up(table, range(50, 60))


def test_more_labels_than_fit_make_the_table_larger(table):
    look_up(table, range(3))
    look_up(table, range(25))
    look_up(table, range(25))
    assert table._make.drawn == texts(*range(25))


def test_labels_that_cannot_be_drawn_leave_the_table_as_it_was(table):
    look_up(table, range(8))
    with pytest.raises(ValueError, match="invalid literal"), table.rows(["8", "x"], ONE_THREAD):
        pass
    assert not table.is_busy
    look_up(table, range(10))
    look_up(table, range(10, 20))


@pytest.mark.parametrize("n_jobs", [2, 3, 7])
def test_threads_draw_the_same_labels(table, n_jobs):
    with open_threads(n_jobs) as threads:
        look_up(table, range(1000), threads)
    assert sorted(table._make.drawn) == sorted(texts(*range(1000)))


@pytest.mark.large
@pytest.mark.parametrize("composition", ["mixed", "product", "convolution"])
def test_labels_that_do_not_occur_are_not_drawn(composition, monkeypatch):
    forest = random_forest(1, 5)
    spare = Forest(forest.label, forest.arity, forest.offsets, [*forest.labels, *texts(*range(1000))])
    encoder = DenseEncoder(DenseSpec(256, composition=composition))
    make, drawn = encoder._labels._make, []

    def noted(wanted):
        drawn.extend(wanted)
        return make(wanted)

    monkeypatch.setattr(encoder._labels, "_make", noted)
    assert encoder.encode(spare).tobytes() == encoder.encode(forest).tobytes()
    assert sorted(drawn) == sorted(forest.labels)
