"""What ``import treedot`` offers."""

import inspect
import subprocess
import sys

import treedot
from treedot import errors


def test_every_name_is_there_and_documented():
    assert sorted(treedot.__all__) == sorted(set(treedot.__all__))
    for name in treedot.__all__:
        assert inspect.getdoc(getattr(treedot, name)), name
        assert name in dir(treedot)


def test_all_errors_are_offered():
    family = {name for name, kind in vars(errors).items() if inspect.isclass(kind)}
    assert family <= set(treedot.__all__)
    assert all(issubclass(getattr(treedot, name), treedot.TreedotError) for name in family)


def test_importing_treedot_loads_nothing_heavy():
    code = (
        "import sys, treedot; print([m for m in ('numpy', 'numba', 'scipy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
