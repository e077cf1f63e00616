"""Processes that call functions for this one: what they return, raise and print, and how they end."""

import os
import subprocess
import sys

import pytest

from treedot._runtime.processes import LENGTH, SERVE, LostProcessError, Process
from trouble import print_and_return, raise_unpicklable


@pytest.fixture(scope="module")
def process():
    made = Process(sys.path)
    yield made
    made.end()


def test_functions_return_and_raise_as_here(process):
    assert process.do(divmod, 7, 3) == (2, 1)
    assert process.do(sorted, [1, 3, 2], reverse=True) == [3, 2, 1]
    with pytest.raises(ZeroDivisionError):
        process.do(divmod, 7, 0)
    assert process.do(os.getpid) == process.pid != os.getpid()


@pytest.mark.slow
def test_an_error_that_cannot_be_pickled_is_named(process):
    with pytest.raises(RuntimeError, match="UnpicklableError: a, b"):
        process.do(raise_unpicklable)
    assert process.do(abs, -1) == 1


def test_what_a_function_prints_is_no_result(process):
    assert process.do(print_and_return, 5) == 5


def test_a_process_that_dies_is_lost_with_its_code():
    process = Process([])
    with pytest.raises(LostProcessError, match="exit code 3") as raised:
        process.do(os._exit, 3)
    assert raised.value.code == 3


@pytest.mark.slow
@pytest.mark.parametrize("begun", [b"", b"\x01", (100).to_bytes(LENGTH, "little") + b"half a task"])
def test_input_that_ends_anywhere_ends_a_process_in_silence(begun):
    done = subprocess.run([sys.executable, "-c", SERVE], input=begun, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
