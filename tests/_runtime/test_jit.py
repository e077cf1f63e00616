"""Compiled code: where it is kept, what is said of it, and what happens where there can be none."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from treedot._runtime import jit
from treedot.cli import check, main
from treedot.parameters import COMPOSITIONS, RESTS

pytestmark = pytest.mark.slow

EVERYTHING = """
from treedot import SubsetTreeKernel, nearest, read_trees
from treedot.vectors import DenseEncoder, DenseSpec, SparseEncoder, SparseSpec
from treedot.vectors.spec import default_damping
from treedot.parameters import COMPOSITIONS, RESTS
forest = read_trees(["(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN bird)) (VP sings))"])
for composition in COMPOSITIONS:
    DenseEncoder(DenseSpec(256, composition=composition)).encode(forest)
for rest in (None, *RESTS):
    rows = SparseEncoder(SparseSpec(rest=rest, damping=default_damping(rest))).encode(forest)
nearest(rows, k=1)
print(SubsetTreeKernel(decay=0.5).gram(forest)[0, 1])
"""

ONE_FUNCTION = """
import sys
import numpy as np
sys.stderr.isatty = lambda: True
from treedot._runtime.hashing import mix64
for _ in range(2):
    print(mix64(np.uint64(1)))
"""
TESTS = str(Path(__file__).parent.parent)


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


@pytest.mark.parametrize("variable", [{"NUMBA_DISABLE_JIT": "1"}, {"TREEDOT_COMPILE": "never"}])
def test_everything_runs_where_nothing_is_compiled(variable):
    assert run(EVERYTHING, **variable) == ("4.25\n", "")


SMALL = """
import sys
import treedot as td
trees = ["(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN bird)) (VP sings))"]
td.SubsetTreeKernel().gram(trees), td.PartialTreeKernel()(*trees), td.SubtreeKernel()(*trees)
td.similarity(*trees), td.edit_distance(*trees), td.find_duplicates(trees)
td.FragmentVectorizer().fit_transform(trees)
td.DistributedTreeVectorizer(n_components=256).fit_transform(trees)
print("numba" in sys.modules)
"""

BYTES = """
import hashlib
import numpy as np
from strategies import random_forest
import treedot as td
from treedot._runtime import jit

def show(name, *arrays):
    digest = hashlib.sha256()
    for array in arrays:
        parts = (array.indices, array.data) if hasattr(array, "indices") else (np.ascontiguousarray(array),)
        for part in parts:
            digest.update(part.tobytes())
    print(name, digest.hexdigest())

forest, y = random_forest(3, 16, 24), ["a", "b"] * 8
words = {"a": [1.0, 0.5], "b": [0.5, 1.0]}
subset, bounded, route = td.SubsetTreeKernel, td.kernels.BoundedTreeKernel, td.kernels.RouteKernel
smoothed, partial = td.kernels.SmoothedPartialTreeKernel, td.PartialTreeKernel
for number, kernel in enumerate([
    subset(0.4), subset(0.4, normalize=True), subset(0.3, algorithm="TK"), bounded(0.4, budget=3), route(0.3),
    partial(0.4), partial(0.4, mu=0.3, gaps="span", normalize=True), smoothed(words), td.SubtreeKernel(0.4),
]):
    one = [kernel(forest[0], forest[i]) for i in range(16)]
    pairs = kernel.pairs(forest, np.arange(15), np.arange(1, 16))
    show(f"kernel{number}", kernel.gram(forest), np.array(one), pairs)
for number, settings in enumerate([
    {}, {"damping": "linear"}, {"idf": True}, {"n_features": None}, {"dtype": "float64"},
    {"rest": "dense", "rest_size": 256}, {"rest": "blocks", "rest_size": 256}, {"budget": 4, "decay": 0.7},
]):
    show(f"rows{number}", td.FragmentVectorizer(**settings).fit_transform(forest))
for number, settings in enumerate([
    {}, {"composition": "product"}, {"kernel": "partial"}, {"kernel": "partial", "gaps": "span"},
    {"kernel": "smoothed", "similarity": words}, {"dtype": "float64"}, {"normalize": False},
]):
    show(f"dense{number}", td.DistributedTreeVectorizer(n_components=256, **settings).fit_transform(forest))
model = td.TreeClassifier(decay=0.4, C=1.0).fit(forest, y)
show("scores", model.decision_function(forest), td.explain(model, forest[0]).trees[0].node_values)
rows = td.FragmentVectorizer().fit_transform(forest)
show("products", td.dot_products(rows), *td.nearest(rows, k=5))
show("edits", np.array([td.edit_distance(forest[0], forest[i]) for i in range(16)]))
show("similarities", np.array([td.similarity(forest[0], forest[i]) for i in range(16)]))
groups = td.find_duplicates(forest, min_nodes=3, threshold=0.3)
show("duplicates", np.array([group.similarity for group in groups]))
print("compiled", jit.compiles(0))
"""


INSIDE = """
import sys
import numpy as np
sys.stderr.isatty = lambda: False
from treedot.vectors.dense import rescaling
row = np.full(32, 3.0)
rescaling.multiply(row, 2.0)
print(rescaling.rescale(row, 0), rescaling.power_of_two(-3), type(rescaling.power_of_two).__name__)
"""


def test_functions_for_compiled_code_can_be_called_from_python_too():
    """Those that have no way in from Python run as they are written."""
    called, _ = run(INSIDE, TREEDOT_COMPILE="always")
    assert called == "(6.0, 0) 0.125 Function\n"


SAVING = """
import contextlib
import numpy as np
from treedot._runtime import jit

@contextlib.contextmanager
def saving():
    print("locked")
    yield
    print("unlocked")

jit.compile_all(saving)
from treedot._runtime import hashing
hashing.mix64(np.uint64(1))
"""


def test_processes_that_compile_together_save_one_after_the_other(tmp_path):
    """Numba would mix up what they save at the same time."""
    done = run(SAVING, TREEDOT_COMPILE="", NUMBA_CACHE_DIR=str(tmp_path))
    assert done == ("locked\nunlocked\n", "")


def by_itself(code, **variables):
    """Run code in a process that decides by itself, unless the variables say what."""
    path = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
    said, errors = run(code, **{"TREEDOT_COMPILE": "", "PYTHONPATH": path, **variables})
    assert errors == ""
    return said.split()


def test_small_work_does_not_import_numba():
    assert by_itself(SMALL) == ["False"]


def test_large_work_does():
    large = "import sys, treedot as td; td.read_trees(['(S (A b) (C d))'] * 400_000)"
    assert by_itself(f"{large}; print('numba' in sys.modules)") == ["True"]


def test_the_choice_can_be_forced():
    smallest = (
        "import sys, treedot; treedot.SubtreeKernel()(*['(S (A a))'] * 2); print('numba' in sys.modules)"
    )
    assert by_itself(smallest) == ["False"]
    assert by_itself(smallest, TREEDOT_COMPILE="always") == ["True"]
    wrong = subprocess.run(
        [sys.executable, "-c", "import treedot; treedot.SubsetTreeKernel()"],
        env={**os.environ, "TREEDOT_COMPILE": "sometimes"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "TREEDOT_COMPILE must be 'always' or 'never', not 'sometimes'" in wrong.stderr


def test_bytes_are_the_same_plain_and_compiled():
    quiet = {"PYTHONWARNINGS": "ignore::RuntimeWarning"}
    plain, compiled = (by_itself(BYTES, TREEDOT_COMPILE=choice, **quiet) for choice in ("never", "always"))
    assert (plain[-1], compiled[-1]) == ("False", "True")
    assert plain[:-1] == compiled[:-1]


THREADS = """
import sys, threading
import numpy as np
import treedot as td
from strategies import random_forest
from treedot._runtime import jit
jit.LOADING = jit.COMPILING = 0.05  # so that the threads are in the midst of it
forest = random_forest(5, 30, 20)
found = []
def work():
    kernel = td.SubsetTreeKernel()
    found.append(np.array([kernel(forest[i], forest[j]) for i in range(30) for j in range(30)]))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("numba" in sys.modules, len({values.tobytes() for values in found}))
"""


def test_every_kind_of_call_runs_plain():
    code = """
from treedot.cli.compilation import kinds
for name, use in kinds().items():
    use()
    print(len(name) > 0)
"""
    assert len(by_itself(code, TREEDOT_COMPILE="never", PYTHONWARNINGS="ignore::RuntimeWarning")) > 10


def test_threads_may_be_at_work_when_compiled_code_takes_over():
    assert by_itself(THREADS) == ["True", "1"]


def test_a_function_can_be_pickled_before_and_after():
    code = """
import pickle, sys
import numpy as np
from treedot._runtime import jit
from treedot.readers.brackets.scanner import next_bracket
before = pickle.dumps(next_bracket)
given = np.frombuffer(b"a (b)", np.uint8), 0, False
plain = pickle.loads(before)(*given)
assert jit.compiles(1e9)
from treedot.readers.brackets.scanner import next_bracket as compiled
assert compiled is not next_bracket
print(plain, pickle.loads(before)(*given), next_bracket(*given), compiled(*given))
"""
    assert by_itself(code) == ["2"] * 4


def test_compiling_is_said_once_and_only_where_there_is_something_to_compile(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path), "TREEDOT_COMPILE": "always"}
    first, said = run(ONE_FUNCTION, **cache)
    assert said.count("\n") == 1
    assert "compiles" in said
    assert run(ONE_FUNCTION, **cache) == (first, "")


def twice(x):
    return x + x


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Return a function that gives ``twice`` as a new process would get it, with an empty cache."""
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def fresh(terminal=True):
        monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
        monkeypatch.setattr(jit, "_announced", False)
        return jit._compiled(twice)

    return fresh


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.99])
def test_half_a_file_of_compiled_code_is_compiled_anew_and_replaced(
    compiled, tmp_path, capsys, suffix, share
):
    assert compiled()(2) == 4
    assert "compiles" in capsys.readouterr().err
    (file,) = tmp_path.rglob("*" + suffix)
    half = file.read_bytes()[: int(share * file.stat().st_size)]
    file.write_bytes(half)
    assert compiled()(2) == 4
    assert "compiles" in capsys.readouterr().err
    assert file.read_bytes() != half
    from_disk = compiled()
    assert from_disk(2) == 4
    assert capsys.readouterr().err == ""
    assert sum(from_disk.stats.cache_hits.values()) == 1
    assert not from_disk.stats.cache_misses


def test_a_damaged_file_that_cannot_be_replaced_does_not_matter_either(compiled, tmp_path, monkeypatch):
    compiled()(2)
    (file,) = tmp_path.rglob("*.nbi")
    file.write_bytes(file.read_bytes()[:40])
    monkeypatch.setattr("os.replace", fails)
    for _ in range(2):
        assert compiled()(2) == 4


def fails(*_):
    raise OSError("no space left on device")


def test_a_log_does_not_hear_of_compiling(compiled, capsys):
    assert compiled(terminal=False)(2) == 4
    assert capsys.readouterr().err == ""


def test_a_notebook_hears_of_compiling(compiled, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: "a shell"))
    assert compiled(terminal=False)(2) == 4
    assert capsys.readouterr().err.count("compiles") == 1


def test_where_there_is_no_folder_to_keep_it_in_the_remedy_is_said(compiled, monkeypatch, capsys):
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    assert compiled()(2) == 4
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err


def test_check_says_where_compiled_code_is_kept_and_how_to_change_that(
    compiled, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert main(["check"]) == 0
    assert f"kept in {tmp_path} (from NUMBA_CACHE_DIR)" in capsys.readouterr().out
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert main(["check"]) == 0
    assert "which is writable; set NUMBA_CACHE_DIR to use another" in capsys.readouterr().out


def test_check_says_what_to_do_where_nothing_can_be_written(compiled, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "not there"))
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    assert main(["check"]) == 0
    said = capsys.readouterr().out
    assert "not kept, so every process compiles it again" in said
    assert "not there is not writable; set NUMBA_CACHE_DIR to a writable folder" in said


@pytest.mark.parametrize("jobs", [[], ["-j", "1"]])
def test_compile_makes_every_kind_of_call_and_says_where_the_code_is(capsys, jobs):
    assert main(["compile", *jobs]) == 0
    said = capsys.readouterr().out
    assert said.index("reading") < said.index("exact kernels")
    for kind in (*COMPOSITIONS, *RESTS, "reading", "exact kernels", "nearest", "indexes"):
        assert kind in said
    assert "s  in all" in said
    assert "kept in" in said


def test_compiled_code_is_loaded_without_linear_algebra_which_others_can_still_use():
    statement = """
import sys
import numpy as np
import treedot as td
td.SubsetTreeKernel()("(S (a b))", "(S (a b))")
print("numba" in sys.modules, "scipy.linalg" in sys.modules)
import numba
print(numba.njit(lambda a: np.dot(a, a))(np.ones(2)), "scipy.linalg" in sys.modules)
"""
    environment = dict(os.environ, TREEDOT_COMPILE="always")
    done = subprocess.run(
        [sys.executable, "-c", statement], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False", "2.0", "True"]


def test_older_objects_are_frozen_only_while_numba_compiles():
    statement = """
import contextlib
import gc
import numba
from numba.core import event
from treedot._runtime import jit

class Counting(event.Listener):
    def on_start(self, event):
        counts.append(gc.get_freeze_count())

    def on_end(self, event):
        pass

counts = []
jit.compiles(1)
event.register("numba:compile", Counting())
numba.njit(lambda x: x + 1)(1)
print(counts[0] > 0, gc.get_freeze_count() == 0)
with contextlib.suppress(numba.TypingError):
    numba.njit(lambda x: x.missing)(1)
print(counts[1] > 0, gc.get_freeze_count() == 0)
gc.freeze()
numba.njit(lambda x: x + 2)(1)
print(gc.get_freeze_count() > 0)
"""
    environment = dict(os.environ, TREEDOT_COMPILE="always")
    done = subprocess.run(
        [sys.executable, "-c", statement], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True"] * 5


def test_a_function_for_compiled_code_is_kept_without_machine_code(tmp_path):
    """It is loaded for another caller, in a process that compiles only the caller."""
    statement = """
import numpy as np
from treedot._runtime import jit
jit.compiles(1)
from treedot._runtime import hashing
from treedot.vectors.sparse import bounded
found = bounded.SortedKeys.make(4)

@jit.njit_borrowing
def sums(table, {name}):
    shift, _ = bounded.clear_keys(table, 3)
    for k in range(3):
        bounded.insert_key(bounded.key_of(np.uint64(k)), k, shift, table)
    return table.key.sum()

hits = lambda: (sum(bounded.key_of.made.stats.cache_hits.values()), len(bounded.key_of.made.overloads))
print(sums.py_func(found, 1) == sums(found, 1), *hits())
"""
    variables = {"TREEDOT_COMPILE": "always", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    for name, hits in (("first", "0"), ("second", "1")):
        path = tmp_path / f"{name}.py"
        path.write_text(statement.format(name=name), encoding="utf-8")
        said, errors = run(f"import runpy; runpy.run_path({str(path)!r})", **variables)
        assert (said.split(), errors) == (["True", hits, "1"], "")


OTHER_NUMBA = """
import collections
import numpy as np
import numba
from numba.core import codegen, typed_passes
{change}
from treedot._runtime import hashing, jit
from treedot.cli.check import _other_compiler
{call}
print(jit.compiles(0), _other_compiler())
"""
ONE_CALL = "hashing.mix64(np.uint64(1))"
BACKWARDS = """
from treedot._runtime import simd
jit.compiles(0)
from treedot._runtime.simd import backwards, load, store

@jit.njit_borrowing
def turn(row):
    store(row, 0, backwards(load(row, 0)))

row = np.arange(16.0)
turn(row)
print((row == np.arange(16.0)[::-1]).all())
"""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("del typed_passes.NopythonRewrites", "no attribute 'NopythonRewrites'"),
        ("del codegen.JITCodeLibrary", "cannot import name 'JITCodeLibrary'"),
        ("codegen.JITCodeLibrary = type('Other', (), {})", "lacks JITCodeLibrary._optimize_functions"),
        ("del numba.version_info", "no attribute 'version_info'"),
    ],
)
def test_a_numba_that_lacks_something_compiles_with_its_own_compiler(change, reason, tmp_path):
    said, errors = run(
        OTHER_NUMBA.format(change=change, call=ONE_CALL),
        TREEDOT_COMPILE="always",
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    assert errors == ""
    assert said.startswith("True made by Numba's own compiler, which takes longer (")
    assert reason in said


def test_a_newer_numba_compiles_vector_instructions_with_its_own_compiler(tmp_path):
    change = "numba.version_info = collections.namedtuple('Version', 'short')((0, 99))"
    said, errors = run(
        OTHER_NUMBA.format(change=change, call=BACKWARDS),
        TREEDOT_COMPILE="always",
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    assert errors == ""
    assert said.startswith("True\nTrue made by Numba's own compiler, which takes longer (")
    assert "is tested with Numba 0.60 to 0.68, not" in said


def test_the_installed_numba_compiles_with_our_pipeline():
    pytest.importorskip("numba")
    assert jit.why_not_ours() == ""
    assert check._other_compiler() == ""
