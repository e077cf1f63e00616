"""Encoders that are kept for the next call: within a limit of bytes, and by many threads."""

import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from strategies import random_forest
from treedot import DistributedTreeVectorizer, FragmentVectorizer
from treedot.kernels import WordVectors
from treedot.vectors import DenseSpec, clear_encoders, encoder_cache


@pytest.fixture(autouse=True)
def _nothing_kept():
    clear_encoders()
    yield
    clear_encoders()


@pytest.fixture
def counted(monkeypatch):
    """Count the bytes of small encoders, too."""
    monkeypatch.setattr(encoder_cache, "LEAST", 0)
    return monkeypatch


def dense(seed):
    return DistributedTreeVectorizer(n_components=256, composition="product", random_state=seed)


def kept_seeds():
    return [entry.spec.seed for entry in encoder_cache._kept]


def kept_bytes():
    return sum(entry.encoder.nbytes for entry in encoder_cache._kept)


def test_many_vectorizers_in_turn_keep_their_encoders():
    vectorizers = [FragmentVectorizer(random_state=seed) for seed in range(9)]
    first = [vectorizer._encoder() for vectorizer in vectorizers]
    assert all(
        vectorizer._encoder() is encoder for vectorizer, encoder in zip(vectorizers, first, strict=True)
    )


def test_all_encoders_together_stay_within_the_limit(counted):
    forest = random_forest(1, 200, 20)
    dense(0).transform(forest)
    size = kept_bytes()
    counted.setattr(encoder_cache, "LIMIT", 3 * size + size // 2)
    for seed in range(1, 6):
        dense(seed).transform(forest)
        assert kept_bytes() <= encoder_cache.LIMIT
    assert kept_seeds() == [5, 4, 3]


def test_those_not_used_for_longest_are_dropped_first(counted):
    forest = random_forest(1, 200, 20)
    for seed in (0, 1, 2):
        dense(seed).transform(forest)
    counted.setattr(encoder_cache, "LIMIT", kept_bytes())
    dense(0).transform(forest)
    dense(3).transform(forest)
    assert kept_seeds() == [3, 0, 2]


def test_the_limit_holds_after_a_call_in_which_an_encoder_grew(counted):
    few, many = random_forest(1, 3, 4), random_forest(2, 400, 30)
    dense(0).transform(few)
    dense(1).transform(few)
    counted.setattr(encoder_cache, "LIMIT", 2 * kept_bytes())
    dense(0).transform(many)
    assert kept_seeds() == [0]  # it alone exceeds the limit, and stays: it is in use


def test_memory_is_that_of_labels_and_words_and_of_what_was_learned():
    forest = random_forest(1, 50, 10)
    dense(0).transform(forest)
    assert kept_bytes() == len(set(forest.labels)) * 3 * 256 * 4
    words = WordVectors({"a": [1.0, 2.0], "b": [2.0, 1.0]})
    smoothed = DistributedTreeVectorizer(n_components=256, kernel="smoothed", similarity=words)
    smoothed.transform(forest)
    assert encoder_cache._kept[0].encoder.nbytes >= words.nbytes == 32
    learned = FragmentVectorizer(n_features=None).fit(forest)
    learned.transform(forest)
    assert encoder_cache._kept[0].encoder.nbytes > learned.dictionary_.key.nbytes


def test_threads_that_want_the_same_encoder_get_one():
    class Slow:
        nbytes = 1

    def make():
        time.sleep(0.01)
        return Slow()

    specs = [DenseSpec(256, seed=seed) for seed in range(4)] * 8
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda spec: encoder_cache.kept_encoder(spec, (), make), specs))
    assert len({id(encoder) for encoder in made}) == 4
    assert sorted(kept_seeds()) == [0, 1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_process_does_not_wait_for_a_thread_of_its_parent():
    forest = random_forest(1, 5, 5)
    with encoder_cache._lock:
        child = multiprocessing.get_context("fork").Process(
            target=FragmentVectorizer().transform, args=(forest,)
        )
        child.start()
    child.join(60)
    assert child.exitcode == 0
