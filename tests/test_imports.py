"""Commands and functions that use what is stored load no library that only training needs."""

import subprocess
import sys

import pytest

from treedot import TreeClassifier, TreeIndex

pytestmark = pytest.mark.slow

TREES = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
HEAVY = ("sklearn", "scipy.stats", "pandas")

COMMANDS = {
    "search": ["search", "trees.index", "(S (A a) (B b))", "-k", "2"],
    "similar": ["similar", "(S (A a) (B b))", "(S (A a) (B c))"],
    "dups": ["dups", "code", "--min-nodes", "1"],
    "predict": ["predict", "model", "trees.txt"],
    "encode sparse": ["encode", "trees.txt", "-o", "rows.npz"],
    "encode sparse with a rest": ["encode", "trees.txt", "-o", "rest.npz", "--rest", "dense"],
    "encode dense": ["encode", "trees.txt", "-o", "vectors.npy"],
    "info of an index": ["info", "trees.index"],
    "info of a vectorizer": ["info", "vectorizer.bin"],
    "kernel of vectors": ["kernel", "--vectors", "sparse", "trees.txt", "trees.txt"],
}
STATEMENTS = {
    "TreeIndex.open": "from treedot import TreeIndex; TreeIndex.open('trees.index').search(['(S (A a))'])",
    "TreeIndex.build": "from treedot import TreeIndex; TreeIndex.build(['(A b)'], 'new').add(['(A c)'])",
    "nearest": "import numpy, treedot; treedot.nearest(numpy.eye(3), k=1)",
    "LinearModel": "from treedot import LinearModel; LinearModel.load('model').predict(['(T (A a) (C b))'])",
    "compare": "from treedot import compare; compare('(A b)', '(A c)')",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with trees, code, an index, a vectorizer and a model."""
    from treedot import FragmentVectorizer

    made = tmp_path_factory.mktemp("imports")
    (made / "trees.txt").write_text("\n".join(TREES))
    (made / "code").mkdir()
    for name in ("one.py", "two.py"):
        (made / "code" / name).write_text("def add(a, b):\n    total = a + b\n    return total\n")
    TreeIndex.build(TREES, made / "trees.index")
    FragmentVectorizer(n_features=None).fit(TREES).save(made / "vectorizer.bin")
    TreeClassifier(decay=0.4, C=10).fit(TREES, ["S", "S", "T", "T"]).save(made / "model")
    return made


def loaded_by(statement, folder):
    """Return which of the heavy libraries a statement loads in a process of its own."""
    code = f"import sys; {statement}; print('loaded:', *(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.rsplit("loaded:", 1)[1].split()


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_train_nothing_load_no_scikit_learn(command, folder):
    assert loaded_by(f"from treedot.cli import main; main({COMMANDS[command]})", folder) == []


@pytest.mark.parametrize("name", STATEMENTS)
def test_functions_that_train_nothing_load_no_scikit_learn(name, folder):
    assert loaded_by(STATEMENTS[name], folder) == []
