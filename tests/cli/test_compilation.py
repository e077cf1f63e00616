"""What ``treedot compile`` compiles is all that commands and classes call."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# Lists each compiled function when Python calls it for the first time with some types, wherever it came from:
# first those that are compiled ahead, then whatever else the rest of the program needs.
COMPILED = """
import json, sys
from treedot._runtime import jit
called, load = [], jit._Cache.load_overload

def listed(self, signature, context):
    called.append(f"{self._py_func.__module__}.{self._py_func.__qualname__}{signature}")
    return load(self, signature, context)

jit._Cache.load_overload = listed
from treedot.cli.compilation import kinds
for use in kinds().values():
    use()
compiled = len(called)
"""

USED = r"""
import contextlib, io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
import treedot as td
import treedot.batch
from treedot.cli import main

trees = [f"(S (NP (D the) (N tree{k % 7})) (VP (V grows) (A (B b{k % 3}))))" for k in range(40)]
Path("t.mrg").write_text("\n".join(trees))
Path("t.tsv").write_text("label\ttree\n" + "".join(f"{k % 2}\t{tree}\n" for k, tree in enumerate(trees)))
rows = [f"{k % 2}\t{tree}\t{trees[k // 2]}\t{k}\tnote {k}\n" for k, tree in enumerate(trees)]
Path("pairs.tsv").write_text("label\ttree\tother\tsize\tnote\n" + "".join(rows))
Path("g.tsv").write_text("group\ttree\n" + "".join(f"{k % 8}\t{tree}\n" for k, tree in enumerate(trees)))
Path("t.py").write_text("def f(x):\n    return x + 1\n")
Path("t.json").write_text('[{"a": 1}, 2]')
Path("code").mkdir()
block = "".join(f"    total = sum(x * {k} for x in items[{k}:] if x > {k})\n" for k in range(4))
for name, other in (("a", "    while x: x = f(x, [x])\n"), ("b", "    del y[0:2], x.z\n")):
    extra = "".join(f"    {name} = ({name}, x[{'-' * k}{k}])\n" for k in range(9))
    Path("code", f"{name}.py").write_text(
        f"def f(x):\n{other}{block}{extra}\ndef g(x):\n{other}{block}    return {{}}\n"
    )
commands = ["info t.mrg", "info t.tsv", "info t.py", "info t.json", "gram t.mrg --against t.tsv -o K.npy"]
for kind in ("", "--rest dense", "--rest blocks", "--damping log1p", "--no-normalize", "--dtype float64"):
    commands += [f"encode t.tsv -o r.npz {kind}", "info r.npz"]
    commands += [f"gram t.mrg -o K.npy --vectors sparse {kind}"]
for kind in ("", "--composition product", "--composition convolution", "--no-normalize", "--dtype float64"):
    commands += [f"encode t.mrg -o v.npy --vectors dense -d 1024 {kind}", "info v.npy"]
    commands += [f"gram t.mrg -o K.npy --vectors dense -d 1024 {kind}"]
for kind in ("subset", "subtree", "bounded"):
    commands += [f"gram t.mrg -o K.npy --kernel {kind}", f"gram t.mrg -o K.npy --kernel {kind} --normalize"]
    commands += [f"kernel t.mrg t.tsv --kernel {kind}", f"kernel t.mrg t.tsv --kernel {kind} --normalize"]
commands += ["index t.py t.mrg -o c.index", "index t.py -o c.index --update", "search c.index t.py"]
commands += ["similar t.py t.py", "cluster t.py t.mrg -o c.csv"]
commands += ["dups code", "dups code --unit file --blocks"]
commands += ["tune g.tsv --group group -o metric --n-columns 64 2048"]
commands += ["index t.mrg -o m.index --metric metric", "search m.index t.mrg --expand 2"]
commands += ["encode t.mrg -o d.npy --vectors dense -d 1024"]
commands += ["decode d.npy --productions t.mrg -o decoded.mrg"]
for kind in ("", *(f"{rows} 512" for rows in ("--vectors dense -d", "--rest dense --rest-size")),
             *(f"--kernel {name}" for name in ("subset", "bounded"))):
    commands += [f"train t.tsv --class label -o m --overwrite --C 1 10 {kind}", "predict m t.mrg"]
columns = "--tree-column tree --tree-column other --number-column size --text-column note"
commands += [f"train pairs.tsv --class label -o m --overwrite {columns}", "explain m pairs.tsv --number 2"]
for command in commands:
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(command.split()) == 0, command

for name in ("r.npz", "v.npy"):
    vectors = td.load_vectors(name)
    td.nearest(vectors, k=2)
    td.dot_products(vectors)
forest, labels = td.read_trees("t.tsv"), ["0", "0", "1", "1"] * 10
index = td.TreeIndex.build("t.tsv", "t.index")
index.search(index.forest([3, 1]), k=3, rerank=td.SubsetTreeKernel(normalize=True))
for vectorizer in (
    td.FragmentVectorizer(n_features=None),
    td.FragmentVectorizer(n_features=None, idf=True),
    td.FragmentVectorizer(rest="dense", normalize=False),
):
    rows = vectorizer.fit_transform(forest[::2], labels[::2])
    td.models.DualLinearSVC().fit(rows, labels[::2]).predict(vectorizer.transform(forest[[1, 3]]))
index.add(forest[:3])
index.remove([0])
td.cluster_trees(forest)
td.cluster_trees(forest, vectorizer=td.FragmentVectorizer(n_features=None).fit(forest))
td.compare(forest[0], forest[1])
td.find_duplicates(forest)
td.KernelTransformer().fit(forest).transform(forest[:3])
smoothed = td.kernels.SmoothedPartialTreeKernel(lambda a, b: 0.1)
for kernel in (td.PartialTreeKernel(), smoothed, td.kernels.RouteKernel()):
    (kernel + 2 * td.SubtreeKernel()).gram(forest)
    kernel.pairs(forest, [0, 1], [1, 2])
    kernel(forest[0], "(S (NP a))")
td.kernels.list_fragments(forest[0]), td.kernels.count_fragments(forest[0])
with ThreadPoolExecutor(1) as pool:
    for name, vectorizer in (("s", td.FragmentVectorizer()), ("d", td.DistributedTreeVectorizer())):
        td.batch.encode(["t.mrg", "t.tsv"], f"{name}-rows", vectorizer, pool, shard_size=999)
    td.batch.find_duplicates(["t.mrg", "t.tsv"], "duplicates", pool, min_nodes=5)
"""

TOLD = """
json.dump([called[:compiled], called[compiled:]], open(sys.argv[1], "w"))
"""


def test_nothing_is_called_that_is_not_compiled_ahead(tmp_path):
    pytest.importorskip("numba")
    file = tmp_path / "called.json"
    program, environment = COMPILED + USED + TOLD, os.environ | {"TREEDOT_COMPILE": "always"}
    subprocess.run([sys.executable, "-c", program, file], cwd=tmp_path, env=environment, check=True)
    compiled, others = json.loads(file.read_text())
    assert len(compiled) > 50
    assert not others
