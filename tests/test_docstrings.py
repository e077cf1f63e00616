"""The check of docstrings, ``.ci/check_docstrings.py``, finds what is missing."""

import importlib
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "check_docstrings.py"

COMPLETE = '''
from typing import NamedTuple

class Fruit:
    """A fruit.

    Parameters
    ----------
    size : int, default=3
        The size.

    Attributes
    ----------
    taste_ : str
        The taste.
    """

    def __init__(self, size=3):
        self.size = size

    def fit(self, tree):
        """Taste it.

        Parameters
        ----------
        tree : str
            The tree.

        Returns
        -------
        Fruit
            The fruit itself.
        """
        self.taste_ = tree
        return self

class Tool:
    """A tool."""

    def use(self, tree):
        """Use it.

        Parameters
        ----------
        tree : str
            The tree.
        """

class Ladder(Tool):
    """A tool to climb."""

    def use(self, tree):
        print(tree)

class Basket(NamedTuple):
    """Some fruit.

    Attributes
    ----------
    fruit : list of Fruit
        The fruit.
    """

    fruit: list
'''

FAULTS = {
    "an undocumented parameter": ("def fit(self, tree)", "def fit(self, tree, season)", "Fruit.fit PR01"),
    "a parameter that is not there": ("def fit(self, tree)", "def fit(self)", "Fruit.fit PR02"),
    "a method without a docstring": ('"""Taste it.', '_ = """Taste it.', "Fruit.fit GL08"),
    "a result that is not described": ("            The fruit itself.\n", "", "Fruit.fit RT03"),
    "a missing default": (", default=3", "", "Fruit TD01"),
    "a wrong default": ("default=3", "default=4", "Fruit TD01"),
    "an undocumented fitted attribute": ("    taste_ : str\n        The taste.\n", "", "Fruit TD02"),
    "an undocumented field": ("    fruit: list\n", "    fruit: list\n    price: int\n", "Basket TD02"),
    "an attribute without a description": ("        The fruit.\n", "", "Basket TD03"),
    "an override with other parameters": (
        "tree):\n        print",
        "tree, axe):\n        print",
        "Ladder.use GL08",
    ),
}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("check_docstrings", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def faults(script, tmp_path, monkeypatch):
    """Return a function that returns the faults of a module as ``name code``."""

    def find(source):
        name = f"{tmp_path.name}_orchard"
        tmp_path.joinpath(f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(script, "MODULES", [name])
        monkeypatch.setattr(script, "PACKAGE", name)
        public = script.public().items()
        return {
            f"{full.partition('.')[2]} {code}"
            for full, kind in public
            for code, _ in script.check(full, kind)
        }

    return find


def test_complete_docstrings_have_no_fault(faults):
    assert faults(COMPLETE) == set()


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(faults, fault):
    old, new, expected = FAULTS[fault]
    assert COMPLETE.count(old) == 1
    assert faults(COMPLETE.replace(old, new)) == {expected}
