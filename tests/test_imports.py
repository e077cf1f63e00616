"""Commands and functions load no library that their work does not need.

Small work runs without compiled code, so without Numba; and what uses stored models and indexes runs without
libraries that only training needs.
"""

import json
import os
import subprocess
import sys

import pytest

from treedot import TreeClassifier, TreeIndex, batch
from treedot.models import TreeMetric

pytestmark = pytest.mark.slow

TREES = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
HEAVY = ("sklearn", "scipy.stats", "pandas")
COMPILER = "numba"
BLOCK = "    for x in b:\n        total = total + x * a[x]\n    return total / len(b)\n"

COMMANDS = {
    "search": ["search", "trees.index", "(S (A a) (B b))", "-k", "2"],
    "similar": ["similar", "(S (A a) (B b))", "(S (A a) (B c))"],
    "dups": ["dups", "code", "--min-nodes", "2"],
    "predict": ["predict", "model", "trees.txt"],
    "encode sparse": ["encode", "trees.txt", "-o", "rows.npz"],
    "encode sparse with a rest": ["encode", "trees.txt", "-o", "rest.npz", "--rest", "dense"],
    "encode dense": ["encode", "trees.txt", "-o", "vectors.npy"],
    "decode": ["decode", "dense.npy", "--productions", "trees.txt", "-o", "decoded.mrg"],
    "search by a metric": ["search", "learned.index", "(S (A a) (B b))", "-k", "2", "--expand", "1"],
    "index with a metric": ["index", "trees.txt", "-o", "new.index", "--overwrite", "--metric", "metric"],
    "info of a metric": ["info", "metric"],
    "info of an index": ["info", "trees.index"],
    "info of a vectorizer": ["info", "vectorizer.bin"],
    "batch encode": ["batch", "encode", "trees.txt", "-o", "rows/", "--workers", "1"],
    "kernel of vectors": ["kernel", "--vectors", "sparse", "trees.txt", "trees.txt"],
}
NOT_COMPILED = {  # commands on a few trees, which load no Numba
    "index": ["index", "code", "-o", "code.index", "--overwrite", "--min-nodes", "2"],
    "search": ["search", "trees.index", "(S (A a) (B b))"],
    "similar": ["similar", "code/one.py:add", "code/two.py:add"],
    "encode sparse": ["encode", "trees.txt", "-o", "rows.npz"],
}
NO_ROWS = {  # and no SciPy either
    "version": ["--version"],
    "help": ["--help"],
    "help of dups": ["dups", "--help"],
    "kernel": ["kernel", "trees.txt", "trees.txt"],
    "partial kernel": ["kernel", "--kernel", "partial", "trees.txt", "trees.txt"],
    "gram": ["gram", "trees.txt", "-o", "K.npy"],
    "info": ["info", "trees.txt"],
    "info of code": ["info", "code"],
    "encode dense": ["encode", "trees.txt", "-o", "vectors.npy"],
    "convert": ["convert", "trees.txt", "-o", "trees.nwk"],
    "convert code": ["convert", "code", "-o", "code.mrg"],
    "dups": ["dups", "code", "--min-nodes", "2"],
    "cache": ["cache"],
}
PAGES = ("compare", "estimates", "decode")  # of a server
STATEMENTS = {
    "TreeIndex.open": "from treedot import TreeIndex; TreeIndex.open('trees.index').search(['(S (A a))'])",
    "TreeIndex.build": "from treedot import TreeIndex; TreeIndex.build(['(A b)'], 'new').add(['(A c)'])",
    "nearest": "import numpy, treedot; treedot.nearest(numpy.eye(3), k=1)",
    "LinearModel": "from treedot import LinearModel; LinearModel.load('model').predict(['(T (A a) (C b))'])",
    "explain_pair": "from treedot import explain_pair; explain_pair('(A b)', '(A b)')",
    "compare": "from treedot import compare; compare('(A b)', '(A c)')",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with trees, code, an index, a vectorizer and a model."""
    from treedot import DistributedTreeVectorizer, FragmentVectorizer, save_vectors

    made = tmp_path_factory.mktemp("imports")
    (made / "trees.txt").write_text("\n".join(TREES))
    (made / "code").mkdir()
    for name, body in (("one.py", "    total = 0\n"), ("two.py", "    print(a)\n    del a\n")):
        (made / "code" / name).write_text(f"def add(a, b):\n{body}{BLOCK}")
    TreeIndex.build(TREES, made / "trees.index")
    batch.plan_encode(made / "trees.txt", made / "parts", FragmentVectorizer(n_features=None).fit(TREES))
    dense = DistributedTreeVectorizer(n_components=256)
    save_vectors(made / "dense.npy", dense.transform(TREES), dense)
    FragmentVectorizer(n_features=None).fit(TREES).save(made / "vectorizer.bin")
    TreeClassifier(decay=0.4, C=10).fit(TREES, ["S", "S", "T", "T"]).save(made / "model")
    learned = TreeMetric(n_columns=64, shrinkage=1.0).fit(TREES, ["S", "S", "T", "T"])
    learned.save(made / "metric")
    TreeIndex.build(TREES, made / "learned.index", metric=learned.metric_)
    return made


def run(program, folder, **environment):
    """Run a program in its own process; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"TREEDOT_CACHE_DIR": str(folder / "cache"), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(statement, folder, names, **environment):
    """Return which of some libraries a statement loads in its own process."""
    loaded = f"print('loaded:', *(name for name in {names} if name in sys.modules))"
    return run(f"{statement}\n{loaded}", folder, **environment).rsplit("loaded:", 1)[1].split()


def command(arguments):
    """Return a statement that runs a command and checks that it succeeds."""
    return f"""from treedot.cli import main
try:
    code = main({arguments})
except SystemExit as end:  # of --help
    code = end.code
assert code == 0"""


def commands(arguments):
    return {name: command(each) for name, each in arguments.items()}


def loaded_by_each(statements, folder, names):
    """Return which of some libraries each statement is the first to load; one process runs all of them."""
    program = [f"import json\nfrom treedot._runtime import jit\nloaded, watched = {{}}, set({names})"]
    for name, statement in statements.items():
        program.append("jit._switch._spent = 0.0  # each decides by its own work whether compiled code pays")
        program.append(statement)
        program.append(f"loaded[{name!r}] = sorted(watched & set(sys.modules))")
        program.append(f"watched -= set(loaded[{name!r}])")
    program.append("print(json.dumps(loaded))")
    done = run("\n".join(program), folder)
    return json.loads(done.splitlines()[-1])


@pytest.fixture(scope="module")
def loaded(folder):
    """Return the libraries that each command and statement has loaded, by the name of its group."""
    return {
        "heavy": loaded_by_each(commands(COMMANDS) | STATEMENTS, folder, HEAVY),
        "compiler": loaded_by_each(commands(NOT_COMPILED), folder, (COMPILER, *HEAVY)),
        "scipy": loaded_by_each(commands(NO_ROWS), folder, (COMPILER, "scipy", *HEAVY)),
    }


@pytest.mark.parametrize("name", [*COMMANDS, *STATEMENTS])
def test_commands_and_functions_that_train_nothing_load_no_scikit_learn(name, loaded):
    assert loaded["heavy"][name] == []


@pytest.mark.parametrize("name", NOT_COMPILED)
def test_commands_on_a_few_trees_load_no_compiler(name, loaded):
    assert loaded["compiler"][name] == []


@pytest.mark.parametrize("name", NO_ROWS)
def test_commands_on_a_few_trees_without_rows_load_no_scipy_either(name, loaded):
    assert loaded["scipy"][name] == []


def test_a_second_run_of_dups_loads_neither_although_the_first_did(folder):
    """The first run compiles, as it does for many files; the second finds everything in the cache."""
    pytest.importorskip(COMPILER)
    own = {"TREEDOT_CACHE_DIR": str(folder / "second")}
    dups = command(["dups", "code", "--min-nodes", "3"])
    assert loaded_by(dups, folder, [COMPILER], TREEDOT_COMPILE="always", **own) == [COMPILER]
    assert loaded_by(dups, folder, [COMPILER, "scipy", *HEAVY], **own) == []


def test_a_worker_that_encodes_loads_no_scikit_learn(folder):
    statement = "from treedot import batch; assert not batch.do_shard('parts', 0).error"
    assert loaded_by(statement, folder, ("sklearn", "scipy.stats")) == []  # PyArrow loads pandas


@pytest.mark.parametrize("page", PAGES)
def test_a_worker_of_a_server_loads_no_scikit_learn(page, folder):
    statement = (
        "from treedot.serve.answers import Given; from treedot.serve.work import answered; "
        f"assert answered({page!r}, True, {{'a': '(A b)', 'b': '(A c)'}}, Given()).status == 200"
    )
    assert loaded_by(statement, folder, HEAVY) == []


def test_a_process_that_parses_loads_neither(folder):
    """The answer comes from the process that parsed the files, which is reused."""
    statement = (
        "from treedot import read_code; from treedot.readers.code.processes import _idle, do_apart; "
        "read_code('code'); (process,) = _idle; "
        "names = do_apart(eval, 'list(__import__(\"sys\").modules)', file='', max_seconds=9); "
        "assert _idle == [process]; assert 'tree_sitter' in names; "
        f"assert not {{{COMPILER!r}, 'scipy', *{HEAVY}}} & set(names), names"
    )
    assert loaded_by(statement, folder, [COMPILER, "scipy", *HEAVY]) == []
