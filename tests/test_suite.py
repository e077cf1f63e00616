"""The tests themselves: every one can fail."""

import ast
from pathlib import Path

import pytest

MODULES = sorted(Path(__file__).parent.rglob("test_*.py"))
CHECKS = {"raises", "warns", "check"}  # calls that fail by themselves; the last one is scikit-learn's


def checks(function, checking):
    """Tell whether a function asserts something, itself or by one of the functions that do."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in checking or called.startswith("assert_"):
                return True
    return False


def without_checks(source):
    """Return the names of the tests in a module that assert nothing."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    helpers = {f.name for f in functions if not f.name.startswith("test_") and checks(f, CHECKS)}
    tests = [f for f in functions if f.name.startswith("test_")]
    return [test.name for test in tests if not checks(test, CHECKS | helpers)]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_test_asserts_something(module):
    assert without_checks(module.read_text(encoding="utf-8")) == []


def test_a_test_that_only_runs_is_found():
    source = """
def runs(): main()
def holds(): assert main() == 0
def test_idle(): runs()
def test_true(): assert main() == 0
def test_refused():
    with pytest.raises(ValueError): main()
def test_by_helper(): holds()
"""
    assert without_checks(source) == ["test_idle"]
