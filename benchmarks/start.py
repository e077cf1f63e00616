"""Measure the time to the first answer: cold, with an empty cache of compiled code, and warm.

Each row is one or more new processes. The figures are processor seconds of the whole process tree, and
elapsed seconds. ``--before REVISION`` runs the same rows on another commit, alternately, and prints ratios.
The questions are those of TREEDOT_DATA if it is set, otherwise generated.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.trees import corpus, json_lists

ROOT = Path(__file__).parent.parent
TWO = '"(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN bird)) (VP sings))"'
TREES = "import treedot as td; trees = td.read_trees('questions.mrg')"
CLASSES = f"{TREES}; y = open('classes.txt').read().split()"
# What every revision can choose from, so that the same settings are compared.
ONLY_DECAY_AND_C = (
    "from inspect import signature; known = signature(td.TreeClassifier).parameters; "
    "fixed = {'idf': None, 'words': False, 'labels': False, 'scoring': 'accuracy', 'calibrate': False, "
    "'class_weight': None}; "
    "td.TreeClassifier(decay=(0.1, 0.2, 0.4), C=(1.0, 10.0, 100.0), "
    "**{name: value for name, value in fixed.items() if name in known}).fit(trees, y)"
)
OVERRIDES = ("TREEDOT", "NUMBA", "PYTHONDONTWRITEBYTECODE")  # variables that few users set
FILES = 65  # source files
INDEXED = 100_000  # functions
PACKAGES = ("email", "json", "logging", "unittest", "asyncio", "xml", "http", "urllib", "importlib", "ctypes")


class Row(NamedTuple):
    """A line of the table: a command that runs once to prepare and once to measure."""

    name: str
    command: tuple[str, ...]  # after ``python``
    cold: bool  # with an empty cache of compiled code
    forced: bool = False  # compiled code, whatever the work
    less: str = ""  # a statement whose own time is subtracted
    twice: bool = False  # measure the second run
    bar: str = ""


def python(statement: str) -> tuple[str, ...]:
    """Return the arguments that run a statement."""
    return "-c", statement


def treedot(*arguments: str) -> tuple[str, ...]:
    """Return the arguments that run a command of treedot."""
    return "-m", "treedot", *arguments


def rows(sources: str | None = None) -> Iterator[Row]:
    """Yield the lines of the table; with ``sources``, also those of the source files in that folder."""
    sklearn = "import sklearn.base, sklearn.utils.validation"
    pair = f"import treedot as td; td.SubsetTreeKernel()({TWO})"
    rows_of_two = f"import treedot as td; td.FragmentVectorizer().fit_transform([{TWO}])"
    yield Row("import treedot", python("import treedot"), False, bar=".1")
    yield Row("one pair of short trees", python(pair), True, bar=".6")
    yield Row("treedot kernel of two", treedot("kernel", "two.mrg", "two.mrg"), True, bar=".6")
    yield Row("rows of two, less scikit-learn", python(rows_of_two), True, less=sklearn, bar=".6")
    for name, statement, bar in (
        ("pair", f"{TREES}; td.SubsetTreeKernel()(trees[0], trees[1])", "1/3"),
        ("Gram", f"{TREES}; td.SubsetTreeKernel().gram(trees)", "1/3"),
        ("rows", f"{TREES}; td.FragmentVectorizer().fit_transform(trees)", "1/3"),
        ("find_duplicates", f"{TREES}; td.find_duplicates(trees, min_nodes=5)", "1/3"),
        ("TreeClassifier", f"{CLASSES}; td.TreeClassifier().fit(trees, y)", "1/2"),
        ("TreeClassifier, decay and C", f"{CLASSES}; {ONLY_DECAY_AND_C}", "1/2"),
        ("dense", f"{TREES}; td.DistributedTreeVectorizer().fit_transform(trees)", "1/2"),
        ("partial Gram", f"{TREES}; td.PartialTreeKernel().gram(trees)", "1/2"),
        ("dense rest", f"{TREES}; td.FragmentVectorizer(rest='dense').fit_transform(trees)", "1/3"),
        (
            "partial vectors",
            f"{TREES}; td.DistributedTreeVectorizer(kernel='partial').fit_transform(trees)",
            "1/3",
        ),
        (
            "smoothed vectors",
            f"{TREES}; td.DistributedTreeVectorizer(kernel='smoothed', similarity={{'a': [1.0]}})"
            ".fit_transform(trees)",
            "1/3",
        ),
    ):
        yield Row(f"compiled, 1,000 questions: {name}", python(statement), True, True, bar=bar)
    yield Row("treedot compile", treedot("compile"), True, bar="75 s of 190")
    yield Row("warm: treedot kernel of two", treedot("kernel", "two.mrg", "two.mrg"), False, bar=".35")
    yield Row("warm: treedot --version", treedot("--version"), False, bar=".12")
    yield Row("warm: treedot --help", treedot("--help"), False, bar=".12")
    yield Row("warm: treedot info", treedot("info", "two.mrg"), False, bar=".6")
    yield Row("warm: treedot similar", treedot("similar", "a.py:f", "b.py:f"), False, bar=".6")
    yield Row("warm: treedot predict", treedot("predict", "model", "one.mrg"), False, bar=".6")
    yield Row("warm: treedot search", treedot("search", "functions.index", "a.py:f"), False, bar=".8")
    yield Row("warm: rows of two, less scikit-learn", python(rows_of_two), False, less=sklearn, bar=".4")
    dups = treedot("dups", "source", "-o", "-")
    yield Row(f"dups of {FILES} files, cold", dups, True, bar="3")
    yield Row(f"dups of {FILES} files, warm", dups, False, bar="1.3")
    yield Row(f"dups of {FILES} files, warm, second run", dups, False, twice=True, bar=".8")
    if sources is not None:
        dups = treedot("dups", str(Path(sources).absolute()), "-o", "-")
        yield Row("dups of the folder, warm", dups, False)
        yield Row("dups of the folder, warm, second run", dups, False, twice=True, bar="1/5 of the first")


def make_inputs(folder: Path) -> None:
    """Write the inputs of the rows to a folder."""
    found = corpus(os.environ.get("TREEDOT_DATA"), "questions")
    forest = json_lists(1000) if found is None else found[:1000]
    forest.write_brackets(folder / "questions.mrg")
    classes = [str(k % 6) for k in range(len(forest))] if found is None else found.columns["coarse"][:1000]
    (folder / "classes.txt").write_text("\n".join(classes))
    two = TWO.replace('", "', "\n").strip('"')
    (folder / "two.mrg").write_text(two)
    (folder / "one.mrg").write_text(two.split("\n")[0])
    body = "def f(values):\n    total = 0\n    for x in values:\n        total += x * {}\n    return total\n"
    for name, factor in (("a.py", 2), ("b.py", 3)):
        (folder / name).write_text(body.format(factor))
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [path for package in PACKAGES for path in sorted((library / package).glob("*.py"))][:FILES]
    for k, path in enumerate(files):
        target = folder / "source" / f"{path.parent.name}_{k}.py"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)


def prepare(chosen: Sequence[Row], folder: Path, environment: dict[str, str]) -> None:
    """Make the model and the index that rows read, and run the warm rows once.

    That is with compiled code, since small work alone would never compile any.
    """
    statements = {
        "model": f"{CLASSES}; td.TreeClassifier(decay=0.4, C=1).fit(trees, y).save('model')",
        "functions.index": "import treedot as td; from treedot.cli import main;"
        "main(['index', 'source', '-o', 'functions.index']); index = td.TreeIndex.open('functions.index');"
        f"functions = index.forest([k % len(index) for k in range({INDEXED} - len(index))]);"
        "index.add(functions)",
    }
    for name, statement in statements.items():
        if any(name in row.command for row in chosen):
            own = dict(environment, TREEDOT_CACHE_DIR=str(folder / "parsed"))
            subprocess.run([sys.executable, "-c", statement], cwd=folder, env=own, check=True)
    for row in chosen:
        if not row.cold:
            run(row._replace(forced=True), folder, environment)


def run(row: Row, folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Return the processor time and the elapsed time of a row."""
    with tempfile.TemporaryDirectory() as empty:
        own = dict(environment, TREEDOT_CACHE_DIR=str(Path(empty, "parsed")))
        if row.cold:
            own["NUMBA_CACHE_DIR"] = str(Path(empty, "compiled"))
        if row.forced:
            own["TREEDOT_COMPILE"] = "always"
        if row.twice:
            measured([sys.executable, *row.command], folder, own)
        found = np.array(measured([sys.executable, *row.command], folder, own))
        if row.less:
            found -= measured([sys.executable, "-c", row.less], folder, own)
    return float(found[0]), float(found[1])


def measured(command: Sequence[str], folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Return the processor time of a process and its children, and the elapsed time."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after, stop = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, stop - start


def copy_of(revision: str | None, folder: Path) -> Path:
    """Return a copy of the sources without compiled code: of a commit, or of the working tree."""
    folder.mkdir(parents=True)
    if revision is None:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    else:
        archive = subprocess.run(
            ["git", "archive", revision, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--before", metavar="REVISION", help="a commit to compare with")
    parser.add_argument("--only", metavar="TEXT", help="rows whose name contains this")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each row; the best one counts")
    parser.add_argument("--sources", metavar="FOLDER", help="find near-duplicates in this folder, too")
    options = parser.parse_args(arguments)
    chosen = [row for row in rows(options.sources) if (options.only or "") in row.name]
    with tempfile.TemporaryDirectory() as top:
        sides = []
        for name in [options.before, None] if options.before else [None]:
            folder = copy_of(name, Path(top, name or "now"))
            environment = {k: v for k, v in os.environ.items() if not k.startswith(OVERRIDES)}
            environment |= {"PYTHONPATH": str(folder / "src"), "OPENBLAS_NUM_THREADS": "1"}
            make_inputs(folder)
            prepare(chosen, folder, environment)
            sides.append((folder, environment))
        print(f"{'':54}" + f"{'cpu':>8}{'clock':>8}" * len(sides) + "   ratio" * (len(sides) - 1) + "  bar")
        for row in chosen:
            best = [min(run(row, *side) for _ in range(options.repeat)) for side in sides]
            shown = "".join(f"{cpu:8.2f}{clock:8.2f}" for cpu, clock in best)
            ratio = f"{best[-1][0] / best[0][0]:8.2f}" if len(best) > 1 else ""
            print(f"{row.name:54}{shown}{ratio}  {row.bar}", flush=True)


if __name__ == "__main__":
    main()
