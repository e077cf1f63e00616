"""Parsing in another process, or in this one if it may itself hang or crash."""

import pytest

from treedot.readers import parse_code
from treedot.readers.code import processes, treesitter

TEXT = "def f(a):\n    return a + 1\n"


def fails(*arguments):
    raise RuntimeError("no parser can read this")


def test_a_process_that_may_crash_parses_by_itself(monkeypatch):
    apart = parse_code(TEXT, "python")
    monkeypatch.setattr(processes, "_borrow", fails)
    monkeypatch.setattr(processes, "_is_expendable", False)
    with pytest.raises(RuntimeError):
        parse_code(TEXT, "python")
    processes.parse_here()
    here = parse_code(TEXT, "python")
    assert (here, here.columns) == (apart, apart.columns)
    monkeypatch.setattr(treesitter, "parse", fails)
    with pytest.raises(processes.CrashError, match=r"<source>: crashes the parser \(RuntimeError: no parser"):
        parse_code(TEXT, "python")
