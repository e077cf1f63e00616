"""GPU machines often allow no installs: everything but the scikit-learn face runs on NumPy alone."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

CODE = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
from treedot import Encoder, Forest, Spec, SubsetTreeKernel, read_trees
from treedot.algebra import ALGEBRAS
from treedot.encode import reference
forest = read_trees(["(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN bird)) (VP sings))"])
for name, algebra in ALGEBRAS.items():
    found = Encoder(Spec(256, composition=name)).encode(forest)
    expected = np.array([reference.distributed_tree(tree, algebra(256), 0.4) for tree in forest])
    assert np.allclose(found, expected, atol=1e-5), name
from treedot.encode import StratifiedEncoder, StratifiedSpec
rows = StratifiedEncoder(StratifiedSpec(4096, decay=0.5)).encode(forest).toarray()
assert np.allclose(rows @ rows.T, SubsetTreeKernel(decay=0.5).gram(forest), atol=1e-5)
from treedot.kernels import fragments
machine = StratifiedEncoder(StratifiedSpec(4096, decay=0.5, budget=2))
parts = [weight * machine.fragment(part).toarray()[0] for part, weight in fragments(forest[0], 0.5).items()]
assert np.allclose(machine.encode(forest[[0]]).toarray()[0], sum(parts), atol=1e-5)
print(SubsetTreeKernel(decay=0.5).gram(forest)[0, 1], forest.production.max())
"""

SCALED = """
import sys
sys.modules["numba"] = None  # compiled code would keep the old limits
from strategies import random_forest
from treedot.encode import StratifiedEncoder, StratifiedSpec, slots, stratified
forest = random_forest(3, 12, 20)
machine = StratifiedEncoder(StratifiedSpec(2**30, decay=1.0, budget=3, dtype="float64"))
before = machine.encode(forest, n_jobs=1)
for module in (slots, stratified):
    module.STEP, module.SMALL, module.LARGE = 3, 2.0**-3, 2.0**1
exponents = []
stratified.power = lambda exponent: exponents.append(exponent) or slots.power(exponent)
after = machine.encode(forest, n_jobs=1)
assert (before.indices == after.indices).all() and (before.data == after.data).all()
assert max(exponents) >= 6
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


def test_everything_but_scikit_learn_runs_on_numpy_alone():
    assert run(CODE) == ["4.25", "6"]


def test_stratified_rows_do_not_depend_on_when_products_are_scaled_down():
    assert run(SCALED) == []
