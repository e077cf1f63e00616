"""What ``import treedot`` offers."""

import inspect
import subprocess
import sys

import pytest

import treedot
from treedot import errors, kernels, learn


def test_every_name_is_there_and_documented():
    assert sorted(treedot.__all__) == sorted(set(treedot.__all__))
    for name in treedot.__all__:
        assert inspect.getdoc(getattr(treedot, name)), name
        assert name in dir(treedot)


def test_all_errors_are_offered():
    family = {name for name, kind in vars(errors).items() if inspect.isclass(kind)}
    assert family <= set(treedot.__all__)
    assert all(issubclass(getattr(treedot, name), treedot.TreedotError) for name in family)


def test_rivals_of_the_paper_are_not_offered():
    rivals = {"LabelSelectionKernel", "LabelSelectionTransformer", "MinedFragmentVectorizer"}
    for module in (treedot, kernels, learn):
        assert not rivals & {*module.__all__, *dir(module)}


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = treedot.nothing


def loaded_by(statement):
    """Return which of the heavy libraries a statement loads in a process of its own."""
    heavy = "('numpy', 'numba', 'scipy', 'sklearn')"
    code = f"import sys; {statement}; print(*(m for m in {heavy} if m in sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_imports_stay_light():
    assert loaded_by("import treedot") == []
    assert loaded_by("from treedot.cli import parser; parser()") == []
    assert loaded_by("from treedot import Tree, Forest, read_trees") == ["numpy"]
    assert "sklearn" not in loaded_by(
        "from treedot.encode import DenseEncoder; from treedot import SubsetTreeKernel"
    )
    assert "sklearn" not in loaded_by("from treedot.cli import commands, dups, find, learn, scale")
