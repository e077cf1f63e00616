"""Optional components that some tests need.

A test is skipped only where its component is not installed. A component that is installed but cannot be
loaded is a failure, and so is a missing one that TREEDOT_EXPECT names (as in ``dask,ray``).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from types import ModuleType

import pytest

MODULES = {
    "bridges": "spacy",
    "chromium": "playwright.sync_api",
    "dask": "distributed",
    "databases": "lancedb",
    "mcp": "mcp.server",
    "ray": "ray",
    "torch": "torch",
}
BESIDE = {"bridges": "stanza", "databases": "usearch"}  # the second module of a component
EXPECTED = set(filter(None, os.environ.get("TREEDOT_EXPECT", "").split(",")))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def component(name: str) -> ModuleType:
    """Import the module of a component, or skip the test or the whole module of tests."""
    if unknown := EXPECTED - MODULES.keys():
        pytest.fail(
            f"TREEDOT_EXPECT names {', '.join(sorted(unknown))}: the components are {', '.join(MODULES)}"
        )
    if name not in EXPECTED and not is_installed(name):
        pytest.skip(f"{name} is not installed", allow_module_level=True)
    if name == "chromium":
        assert CHROMIUM is not None, "chromium is expected and was not found on the PATH"
    return importlib.import_module(MODULES[name])


def is_installed(name: str) -> bool:
    """Return whether the files of a component can be found."""
    packages = [MODULES[name].partition(".")[0], *filter(None, [BESIDE.get(name)])]
    is_there = all(map(importlib.util.find_spec, packages))
    return is_there and (name != "chromium" or CHROMIUM is not None)
