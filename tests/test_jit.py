"""Compiled code: where it is kept, what is said of it, and what happens where there can be none."""

import os
import subprocess
import sys

EVERYTHING = """
from treedot import FragmentVectorizer, SubsetTreeKernel, nearest, read_trees
from treedot.encode import DenseEncoder, DenseSpec
from treedot.parameters import COMPOSITIONS, RESTS
forest = read_trees(["(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN bird)) (VP sings))"])
for composition in COMPOSITIONS:
    DenseEncoder(DenseSpec(256, composition=composition)).encode(forest)
for rest in (None, *RESTS):
    rows = FragmentVectorizer(rest=rest).fit_transform(forest)
nearest(rows, k=1)
print(SubsetTreeKernel(decay=0.5).gram(forest)[0, 1])
"""


def run(code, *options, **variables):
    """Run Python code in a process of its own; return what it prints, on both streams."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_everything_runs_where_numba_is_told_not_to_compile():
    assert run(EVERYTHING, NUMBA_DISABLE_JIT="1") == ("4.25\n", "")
