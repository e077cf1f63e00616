"""Tests of optional components are skipped only where the component is missing and nobody expects it."""

import sys

import pytest

import components
from components import component


@pytest.mark.parametrize(
    ("module", "expected", "outcome"),
    [
        ("absent_module", set(), pytest.skip.Exception),
        ("absent_module", {"ray"}, ImportError),
        ("broken_module", set(), ImportError),
        ("absent_module", {"rey"}, pytest.fail.Exception),
    ],
)
def test_a_component_is_skipped_only_where_it_is_missing(monkeypatch, tmp_path, module, expected, outcome):
    (tmp_path / "broken_module.py").write_text("raise ImportError('damaged')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(components.MODULES, "ray", module)
    monkeypatch.setattr(components, "EXPECTED", expected)
    with pytest.raises(outcome):
        component("ray")


def test_an_expected_browser_that_is_missing_is_a_failure(monkeypatch):
    monkeypatch.setattr(components, "CHROMIUM", None)
    monkeypatch.setattr(components, "EXPECTED", {"chromium"})
    with pytest.raises(AssertionError, match="chromium is expected"):
        component("chromium")


def test_a_component_that_is_there_is_imported(monkeypatch):
    monkeypatch.setitem(components.MODULES, "ray", "json")
    assert component("ray") is sys.modules["json"]


def test_a_component_of_two_modules_needs_both(monkeypatch):
    monkeypatch.setitem(components.MODULES, "databases", "json")
    monkeypatch.setattr(components, "BESIDE", {"databases": "absent_module"})
    monkeypatch.setattr(components, "EXPECTED", set())
    with pytest.raises(pytest.skip.Exception):
        component("databases")
