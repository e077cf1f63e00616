"""What ``import treedot`` offers."""

import inspect
import subprocess
import sys

import pytest

import treedot
from treedot import errors, kernels, models


def test_every_name_is_there_and_documented():
    assert len(treedot.__all__) == len(set(treedot.__all__)) <= 35
    for name in treedot.__all__:
        assert inspect.getdoc(getattr(treedot, name)), name
        assert name in dir(treedot)


def test_all_errors_are_a_treedot_error():
    family = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    assert len(family) > 5
    assert all(issubclass(kind, treedot.TreedotError) for kind in family)


@pytest.mark.slow
def test_the_packages_need_no_import_of_their_own():
    code = "import treedot as td; td.kernels.RouteKernel; td.models.explain.Explanation; td.errors.LimitError"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rivals_of_the_paper_are_not_offered():
    rivals = {"LabelSelectionKernel", "LabelSelectionTransformer", "MinedFragmentVectorizer"}
    for module in (treedot, kernels, models):
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


@pytest.mark.slow
def test_imports_stay_light():
    assert loaded_by("import treedot") == []
    assert loaded_by("from treedot.cli import parser; parser()") == []
    assert loaded_by("from treedot import Tree, Forest, read_trees") == ["numpy"]
    assert "sklearn" not in loaded_by(
        "from treedot.vectors import DenseEncoder; from treedot import SubsetTreeKernel"
    )
    commands = "dups, index, search, similar, cluster, encode, train, predict, evaluate, explain, batch"
    assert loaded_by(f"from treedot.cli import {commands}") == []
    run = "from treedot.cli import main; main(['kernel', '(A b)', '(A b)']); main(['dups', 'docs/conf.py'])"
    assert "sklearn" not in loaded_by(run)


def test_a_command_loads_no_other_one():
    code = (
        "import sys; from treedot.cli import parser; parser('info'); print('treedot.cli.dups' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
