"""The tables of code and pages, and the comparison of methods on them, on next to nothing."""

import itertools

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks import beyond, code_and_pages
from treedot import read_trees

pytestmark = pytest.mark.slow

NAMES = ("load", "save", "clear")
BODIES = {
    "load": "with open(path) as file:\n        found = [{i}, file.read(), {extra}]\n        return found[0]",
    "save": "while path[{i}] > {i}:\n        path.append({extra})\n    return path or None",
    "clear": "if not path:\n        raise ValueError({extra})\n    del path[{i}:]",
}
EXTRAS = [
    "f(1)",
    "g[0]",
    "a + b",
    "not a",
    "(a, b)",
    "[a]",
    "a.b.c",
    "lambda: a",
    "{1: 2}",
    "a if b else c",
    "-a",
]


def source(name, extra):
    body = BODIES[name].format(i=1, extra=extra)
    return f'def {name}(path, a=1, b=2, c=3):\n    """Do {name} it."""\n    # {name}\n    {body}\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of packages and sites, with copies, and the tables that are made of them."""
    root = tmp_path_factory.mktemp("sources")
    for package, (k, extra) in itertools.product(("dask", "sympy"), enumerate(EXTRAS)):
        for place in (f"m{k}.py", f"tests/test_{k}.py"):
            path = root / "code" / package / place
            path.parent.mkdir(parents=True, exist_ok=True)
            shift = "x = 1\n" * (package == "sympy") + f"assert {extra}\n" * place.startswith("tests")
            path.write_text(shift + "\n\n".join(source(name, extra) for name in NAMES))
    for site, k in itertools.product(("a", "b", "c"), range(6)):
        path = root / "pages" / site / f"{k}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"<{'ul' if site == 'a' else 'p'}>" + "<b>x</b>" * (k % 5) + f"<i>{site}</i>" * (site > "a")
        )
    return root


@pytest.fixture(scope="module")
def tables(folder):
    with pytest.MonkeyPatch.context() as patch:
        few = {name: sample._replace(n_classes=3) for name, sample in code_and_pages.SAMPLES.items()}
        patch.setattr(code_and_pages, "SAMPLES", few)
        patch.setattr(code_and_pages, "SIMILAR", 1.0)
        code_and_pages.main([str(folder)])
    return {name: read_trees(folder / f"{name}.parquet") for name in beyond.TASKS}


def test_own_names_are_hidden(tables):
    names = tables["names"]
    assert set(names.columns["class"]) == set(NAMES)
    for name, text, tree in zip(names.columns["class"], names.columns["text"], names, strict=True):
        assert name not in text
        assert f"(identifier {name})" not in str(tree)
        assert text.startswith("def _(path")


def test_no_two_functions_of_a_table_are_near_duplicates(tables):
    for name in ("packages", "tests", "names"):
        forest = tables[name]
        assert len(forest) > 2
        for a, b in itertools.combinations(forest.columns["text"], 2):
            assert a != b
    pages = [str(tree) for tree in tables["pages"]]
    assert len(set(pages)) == len(pages)


def test_tests_are_told_from_other_files(tables):
    assert set(tables["packages"].columns["class"]) <= {"dask", "sympy"}
    assert not any("tests" in file for file in tables["packages"].columns["file"])
    assert all(
        (kind == "test") == ("tests/" in file)
        for kind, file in zip(*(tables["tests"].columns[name] for name in ("class", "file")), strict=True)
    )


def test_rows_of_n_grams_are_those_of_scikit_learn(tables):
    table = beyond.Table(tables["names"])
    tokens = beyond.bracket_tokens(table.forest)
    train, test = np.arange(0, len(tokens), 2), np.arange(1, len(tokens), 2)
    wanted = TfidfVectorizer(analyzer=lambda x: x, sublinear_tf=True, dtype=np.float32)
    rows = wanted.fit_transform([list(beyond.grams(tokens[k])) for k in train])
    others = wanted.transform([list(beyond.grams(tokens[k])) for k in test])
    counts, _ = beyond.counted(beyond.bracket_tokens, table)
    found = beyond.weighted(counts, train, test)
    for mine, theirs in zip(found, (rows, others), strict=True):
        np.testing.assert_allclose((mine @ found[0].T).toarray(), (theirs @ rows.T).toarray(), atol=1e-5)


def test_a_file_is_never_on_both_sides_of_a_fold(tables):
    table = beyond.Table(tables["names"])
    tested = []
    for split in beyond.splits(table):
        assert not set(table.files[split.train]) & set(table.files[split.test])
        tested += split.test.tolist()
    assert sorted(tested) == list(range(len(table.forest)))


def test_every_method_is_measured_once_and_kept(tables, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(beyond, "OLD", {"decay": (0.2, 0.4), "C": 1.0})
    command = [str(folder), "--cache", str(tmp_path), "--only", "names", "--first", "2"]
    beyond.main(command)
    first = capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 2 * len(beyond.MEASURED)
    beyond.main(command)
    assert capsys.readouterr().out == first
    compared = sum(set(pair) <= set(beyond.MEASURED) for pair in beyond.PAIRS)
    assert sum(line.startswith("| names |") for line in first.splitlines()) == 1 + compared
