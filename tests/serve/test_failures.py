"""Work that fails, hangs, dies or takes too much is answered by a message, and the next request is done."""

import os
import signal
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

from strategies import random_forest
from treedot._runtime import processes
from treedot.errors import LimitError
from treedot.serve import app
from treedot.serve.answers import Given
from treedot.serve.topics import compare
from treedot.serve.work import answered
from treedot.serve.workers import Limits, Workers

TREES = {"a": "(A (B c) d)", "b": "(A (B c) e)"}

SLOW = dict(zip("ab", map(str, random_forest(0, 2, nodes=1300)), strict=True))


def fail(error):
    def failing(*arguments):
        raise error

    return failing


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ZeroDivisionError("secret detail"), 500, "an unexpected error; the log of the server"),
        (RecursionError("secret detail"), 413, "nested too deeply"),
        (MemoryError("secret detail"), 413, "too much memory"),
        (LimitError("at most 3 nodes"), 413, "at most 3 nodes"),
    ],
)
def test_an_error_of_the_work_is_a_message_without_a_traceback(monkeypatch, capsys, error, status, message):
    monkeypatch.setattr(compare, "values", fail(error))
    monkeypatch.setattr(compare, "page", fail(error))
    found = answered("compare", False, TREES, Given())
    page = answered("compare", True, TREES, Given())
    assert (found.status, page.status) == (status, 500 if status == 500 else 200)
    for body in (found.body, page.body):
        assert message in body
        assert "Traceback" not in body
        assert "secret detail" not in body
    assert ("secret detail" in capsys.readouterr().err) == (status == 500)  # in the log


def test_an_error_of_the_server_is_a_message_without_a_traceback(start, monkeypatch, capsys):
    with start() as client:
        for path in ("/compare", "/api/compare"):
            with monkeypatch.context() as broken:
                broken.setattr(app._Server, "_answer", fail(ZeroDivisionError("secret detail")))
                found = client.get(path, params=TREES)
            assert found.status_code == 500
            assert found.json() == {"error": "an unexpected error; the log of the server describes it"}
            assert found.headers["Content-Security-Policy"]
            assert client.get(path, params=TREES).status_code == 200
    assert "secret detail" in capsys.readouterr().err


def test_work_that_takes_too_long_is_refused_and_the_next_is_done(start, monkeypatch):
    limits = SimpleNamespace(**Limits(seconds=0.05)._asdict())
    monkeypatch.setattr(app, "Workers", partial(Workers, limits=limits))
    with start() as client:
        found = client.post("/api/compare", json=SLOW)
        assert found.status_code == 413
        assert "takes too long" in found.json()["error"]
        limits.seconds = Limits().seconds  # for a new process, which loads modules first
        assert client.post("/api/compare", json=TREES).status_code == 200


def test_work_whose_process_dies_is_refused_and_the_next_is_done(start):
    before = set(processes._alive)
    with start() as client:
        found = []
        asking = threading.Thread(target=lambda: found.append(client.post("/api/compare", json=SLOW)))
        asking.start()
        while asking.is_alive():
            for process in set(processes._alive) - before:
                os.kill(process.pid, signal.SIGSEGV)
            time.sleep(0.05)
        asking.join()
        assert found[0].status_code == 413
        assert "ended the process" in found[0].json()["error"]
        assert client.post("/api/compare", json=TREES).status_code == 200
