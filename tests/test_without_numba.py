"""Where Numba is not installed, encoders and kernels run all the same, slowly."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

CODE = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
from treedot import Forest, SubsetTreeKernel, read_trees
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.dense.compositions import ALGEBRAS
from treedot.vectors.dense import reference
forest = read_trees(["(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN bird)) (VP sings))"])
for name, algebra in ALGEBRAS.items():
    found = DenseEncoder(DenseSpec(256, composition=name, normalize=False)).encode(forest)
    expected = np.array([reference.distributed_tree(tree, algebra(256), 0.4) for tree in forest])
    assert np.allclose(found, expected, atol=1e-5), name
from treedot.vectors import SparseEncoder, SparseSpec
from treedot.kernels import list_fragments
for rest in (None, "dense", "blocks"):
    spec = SparseSpec(4096, 0.5, 2, "linear", rest, 256, normalize=False, dtype="float64")
    encoder = SparseEncoder(spec)
    parts = list_fragments(forest[0], 0.5).items()
    rows = [weight * encoder.encode_fragment(part).toarray()[0] for part, weight in parts]
    assert np.allclose(encoder.encode(forest[[0]]).toarray()[0], sum(rows), atol=1e-9), rest
print(SubsetTreeKernel(decay=0.5).gram(forest)[0, 1], forest.production.max())
"""

SCALED = """
import sys
sys.modules["numba"] = None  # compiled code would keep the old limits
import numpy as np
from strategies import random_forest
from treedot.vectors import SparseEncoder, SparseSpec
from treedot.vectors.dense import rescaling
from treedot.vectors.sparse import block_rest, dense_rest
forest = random_forest(3, 12, 24)
for rest in ("dense", "blocks"):
    spec = SparseSpec(2**30, 1.0, 3, "linear", rest, 256, normalize=False, dtype="float64")
    encoder = SparseEncoder(spec)
    before = encoder.encode(forest)
    limits = rescaling.LARGE, block_rest.STEP, block_rest.SMALL, block_rest.LARGE
    rescaling.LARGE, block_rest.STEP, block_rest.SMALL, block_rest.LARGE = 2.0, 3, 2.0**-3, 2.0**1
    dense_rest.SLACK = 1
    seen = []
    power, rescale = block_rest._power, dense_rest._rescale

    def watched(slot, opened, pool):
        rescale(slot, opened, pool)
        seen.append(opened.exponent[slot])

    dense_rest._rescale = watched
    block_rest._power = lambda exponent: seen.append(exponent) or power(exponent)
    after = encoder.encode(forest)
    dense_rest._rescale, block_rest._power = rescale, power
    assert (before.indices == after.indices).all()
    assert np.allclose(before.data, after.data, rtol=1e-9, atol=1e-9), abs(before.data - after.data).max()
    assert max(seen) >= 6, max(seen)
    rescaling.LARGE, block_rest.STEP, block_rest.SMALL, block_rest.LARGE = limits
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
def test_encoders_and_kernels_run_without_numba():
    assert run(CODE) == ["4.25", "6"]


@pytest.mark.slow
def test_rests_do_not_depend_on_when_products_are_scaled_down():
    assert run(SCALED) == []
