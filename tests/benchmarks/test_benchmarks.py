"""Nothing is measured here: every benchmark runs once on next to nothing, so that none breaks unnoticed."""

import email
import gzip
import importlib
import json
import multiprocessing.dummy
import os
import pkgutil
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import SimpleNamespace

import pytest

import benchmarks
from benchmarks import __main__ as everything
from benchmarks import (
    clones,
    code,
    dependency,
    duplicates,
    ends,
    explain,
    fidelity,
    find,
    fit,
    gpu,
    grammar,
    growth,
    index,
    kernel_svm,
    learn,
    libraries,
    pairs,
    partial,
    partial_vectors,
    passes,
    regression,
    rows,
    scale,
    smoothed_vectors,
    start,
    streaming,
    templates,
    threads,
    trees,
    words,
)
from strategies import random_forest
from treedot import FragmentVectorizer
from treedot._runtime.timing import timed
from treedot.errors import DeviceError

pytestmark = pytest.mark.slow

MODULES = [
    importlib.import_module(f"benchmarks.{found.name}") for found in pkgutil.iter_modules(benchmarks.__path__)
]
STANDARD_LIBRARY = cache(trees.standard_library)
EMAIL = ("--folder", os.path.dirname(email.__file__))
PROGRAMS = [module for module in MODULES if hasattr(module, "main")]


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    """Measure once instead of many times, and less of everything."""
    for module in MODULES:
        if hasattr(module, "seconds"):
            monkeypatch.setattr(module, "seconds", lambda work, at_least=0: timed(work)[1] or 1e-9)
    monkeypatch.setattr(trees, "standard_library", STANDARD_LIBRARY)
    monkeypatch.setattr(pairs, "ROUNDS", 1)
    monkeypatch.setattr(partial, "ROUNDS", 1)
    monkeypatch.setattr(partial_vectors, "ROUNDS", 1)
    monkeypatch.setattr(partial_vectors, "GRID", (0.4,))
    monkeypatch.setattr(code, "ROUNDS", 1)
    for name, few in (("ROUNDS", 1), ("JUDGED", 2), ("PACKAGES", 1), ("LETTERS", 10)):
        monkeypatch.setattr(libraries, name, few)
    monkeypatch.setattr(templates, "ROUNDS", 1)
    monkeypatch.setattr(index, "QUERIES", 2)
    monkeypatch.setattr(find, "QUERIES", 2)
    monkeypatch.setattr(threads, "ROUNDS", 1)
    monkeypatch.setattr(threads, "MANY", 20)
    monkeypatch.setattr(threads, "QUESTIONS", 20)
    monkeypatch.setattr(threads, "LOOPS", 100)
    # Threads stand in for processes, which take seconds to start.
    monkeypatch.setattr(
        threads, "multiprocessing", SimpleNamespace(get_context=lambda _: multiprocessing.dummy)
    )
    monkeypatch.setattr(scale, "LocalProcesses", ThreadPoolExecutor)
    monkeypatch.setattr("treedot.batch.engines.LocalProcesses", ThreadPoolExecutor)
    monkeypatch.setattr(scale, "ROUNDS", 1)
    monkeypatch.setattr(scale, "SMALL", 2)
    monkeypatch.setattr(scale, "LOOP", 10)
    few_words = {name: kind._replace(words=200) for name, kind in grammar.KINDS.items()}
    monkeypatch.setattr(grammar, "KINDS", few_words)
    for module in (grammar, streaming):
        monkeypatch.setattr(module, "BATCH", 64)
    monkeypatch.setattr(streaming, "TESTED", 64)
    monkeypatch.setattr(fit, "LocalProcesses", ThreadPoolExecutor)
    monkeypatch.setattr(fit, "ROWS", FragmentVectorizer(n_features=2**12))
    monkeypatch.setattr(fit, "COSTS", {"questions": (1.0,), "generated": (1.0,)})
    monkeypatch.setattr(fit, "TURNS", 1)
    monkeypatch.setattr(fit, "PARTITIONS", 2)
    monkeypatch.setattr(fit, "ROUNDS", 1)
    monkeypatch.setattr(fit, "LOOP", 10)
    monkeypatch.setattr("treedot.models.training.training_settings.N_FEATURES", 2**12)
    monkeypatch.setattr(
        "treedot.models.training.tree_blocks.BLOCK_TREES", 64
    )  # partitions have blocks of their own
    monkeypatch.setattr(growth, "NODES", (10, 20))
    monkeypatch.setattr(growth, "SIZES", (256, 512))
    monkeypatch.setattr(growth, "COUNTS", (2, 4))
    monkeypatch.setattr(everything, "CROSSING", ("questions",))
    monkeypatch.setattr(everything, "SEARCHED", 64)
    monkeypatch.setattr(everything, "starting", list)


@pytest.fixture
def data(tmp_path):
    """Return a folder with a small file for every corpus."""
    texts = [str(tree) for tree in random_forest(0, 50)]
    columns = ("id", "tree", "text_tree", "grct", "lct", "coarse", "clone_class", "family", "kingdom")
    lines = [f"{k}" + f"\t{text}" * 4 + f"\t{k % 2}" * 4 for k, text in enumerate(texts)]
    content = "\n".join(["\t".join(columns), *lines]).encode()
    for file, _ in trees.CORPORA.values():
        (tmp_path / file).write_bytes(gzip.compress(content))
    pairs = "a\tb\ttype\tsimilarity_token\n" + "".join(f"{k}\t{k + 2}\tT3\t0.5\n" for k in range(20))
    (tmp_path / "bcb_pairs.tsv.gz").write_bytes(gzip.compress(pairs.encode()))
    return str(tmp_path)


def test_every_program_is_tried_here():
    tried = {
        everything,
        clones,
        code,
        dependency,
        duplicates,
        explain,
        fidelity,
        find,
        fit,
        gpu,
        growth,
        index,
        kernel_svm,
        learn,
        libraries,
        pairs,
        partial,
        partial_vectors,
        passes,
        regression,
        rows,
        scale,
        smoothed_vectors,
        start,
        streaming,
        templates,
        threads,
        words,
    }
    assert {module.__name__ for module in PROGRAMS} == {module.__name__ for module in tried}


@pytest.mark.parametrize("module", PROGRAMS, ids=lambda module: module.__name__)
def test_every_program_says_what_it_does(module, capsys):
    with pytest.raises(SystemExit) as ended:
        module.main(["--help"])
    assert ended.value.code == 0
    name = module.__name__.removesuffix(".__main__")
    assert capsys.readouterr().out.startswith(f"usage: python -m {name} ")


def test_the_benchmark_of_a_gpu_wants_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DeviceError, match="device='cuda'"):
        gpu.main([])


def test_trees_to_measure_on_are_there_without_any_corpus(data, tmp_path):
    assert trees.benchmark_forest(data, "RNA")[1] == "RNA"
    forest, name = trees.benchmark_forest(str(tmp_path / "nowhere"), "questions")
    assert (len(forest), name) == (1000, trees.PYTHON)
    assert len(trees.benchmark_forest(None, trees.JSON)[0]) == 1000


@pytest.mark.parametrize(
    ("module", "options"),
    [
        (clones, ["--others", "50"]),
        (code, [benchmarks.__path__[0], "--files", "2"]),
        (duplicates, [*EMAIL, "--functions", "90", "--seeds", "1", "--per-kind", "1", "--n-jobs", "1"]),
        (duplicates, [*EMAIL, "--variants", "1", "2", "3", "4"]),
        (explain, []),
        (fidelity, ["algebras", "--trees", "4", "--seeds", "1", "--dim", "256"]),
        (find, [os.path.dirname(benchmarks.__file__), "--units", "20"]),
        (fit, ["--trees", "400", "--splits", "1"]),
        (index, ["--trees", "20"]),
        (kernel_svm, ["--turns", "1", "--landmarks", "10", "--seeds", "1"]),
        (libraries, []),
        (pairs, []),
        (partial, ["--trees", "10"]),
        (partial_vectors, ["--trees", "4", "--seeds", "1", "--dim", "256"]),
        (passes, []),
        (rows, ["--trees", "4", "--seeds", "1", "--neighbours", "20"]),
        (scale, ["--trees", "200", "--in-memory"]),
        (streaming, ["--trees", "200", "--passes", "1", "--kills", "0"]),
        (templates, ["--seeds", "1", "--pages", "1"]),
        (threads, ["--threads", "1"]),
        (words, ["QC coarse"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_program_prints_what_it_measured(module, options, data, capsys, monkeypatch):
    monkeypatch.setenv("TREEDOT_DATA", data)
    module.main(options)
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_regressions_are_compared_with_ridge_on_the_same_rows(capsys, monkeypatch):
    monkeypatch.delenv("TREEDOT_DATA", raising=False)
    regression.main(["--turns", "1"])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert len(lines) == 4
    assert all(abs(float(line.split(" | ")[5])) < 0.005 for line in lines)


def test_first_answers_are_measured_in_processes_of_their_own(capsys, monkeypatch):
    monkeypatch.delenv("TREEDOT_DATA", raising=False)
    start.main(["--only", "treedot --"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["cpu", "clock", "bar"]
    assert [line.split()[2] for line in lines] == ["--version", "--help"]
    assert all(float(line.split()[3]) > 0 for line in lines)


def test_threads_are_compared_with_a_loop_and_with_processes(capsys, monkeypatch):
    monkeypatch.delenv("TREEDOT_DATA", raising=False)
    threads.main(["--threads", "2", "--only", "bounded"])
    title, _, head, loop, rows = capsys.readouterr().out.splitlines()
    assert "generated, 20 trees" in title
    assert head.split()[:6] == ["threads", "trees/s", "at", "1", "1", "2"]
    assert "serial" in head.split()
    assert loop.startswith("independent loop")
    assert len(rows.split()) == 2 + 1 + 2 + 2 + 4 + 3  # name, rate, ratios, beside others, serial, CPU


def test_folders_of_pages_are_found_again(tmp_path, capsys):
    made, template = templates.pages(n_sites=2, n_templates=2, n_pages=6, n_noise=0)
    for number, (page, kind) in enumerate(zip(made, template, strict=True)):
        folder = tmp_path / f"site{kind // 2}" / f"kind{kind}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.html").write_text(page)
    templates.main(["--folder", str(tmp_path)])
    first, second, *inside, speed = capsys.readouterr().out.splitlines()
    assert first.startswith("all: 24 pages in 4 folders, ")
    assert second.startswith("one of each site: 12 pages in 2 folders, ")
    assert [line.split(":")[0] for line in inside] == ["within site0", "within site1"]
    assert speed.startswith("24 pages, ")


def test_growth_prints_exponents_and_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    growth.main(["--out", str(tmp_path / "out")])
    assert capsys.readouterr().out.count(": exponent ") == len(growth.SHAPES) + 3
    assert (tmp_path / "out" / "growth.png").exists()


def test_all_figures_are_printed_and_written(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(growth, "measure", lambda out: [("nodes", 1.0)])
    everything.main(["--data", data, "--out", str(tmp_path / "out")])
    figures = json.loads((tmp_path / "out" / "bench.json").read_text())["figures"]
    printed = capsys.readouterr().out
    assert len(figures) > 50
    assert all(figure["what"] in printed for figure in figures)


def test_documents_of_any_folder_are_compared_and_the_worst_are_named(data, tmp_path, capsys):
    for k in range(6):
        (tmp_path / f"{k}.json").write_text(
            json.dumps({"name": f"n{k}", "files": [{"a": 1, "b": [k] * k}] * 4})
        )
        (tmp_path / f"{k}.html").write_text(f"<h1>A</h1>{'<ul><li>x<li>y</ul>' * (k + 1)}")
    (tmp_path / "again.json").write_bytes((tmp_path / "1.json").read_bytes())
    folder = str(tmp_path)
    options = [
        "ends",
        "--data",
        data,
        "--json",
        folder,
        "--html",
        folder,
        "--dim",
        "512",
        "--rest-size",
        "256",
    ]
    fidelity.main([*options, "--trees", "4", "--seeds", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"JSON files of {folder}: 6 distinct ones of 7 read") for line in lines)
    assert any(line.startswith(f"HTML pages of {folder}: 6 distinct ones of 6 read") for line in lines)
    for name in ("JSON files", "HTML pages"):
        assert sum(f"| {name} |" in line for line in lines) == 2 * (len(fidelity.KINDS)) + 1
    worst = lines[lines.index("| vectors | λ | worst rms | of sentences | most false | most lost |") :]
    assert sum(line.startswith("| dense rest") for line in worst) == 2


def test_the_worst_corpus_is_named_whichever_end_is_worse():
    good, bad = (ends.Ends(0.01, 0.1, near, 0.3, 0, lost, 1.0) for near, lost in ((0.001, 0), (0.4, 7)))
    assert fidelity._worst({"a": good, "b": bad}, lambda e: max(e.random, e.near), ".2g") == "0.4 (b)"
    assert fidelity._worst({"a": good, "b": bad}, lambda e: e.lost, "d") == "7 (b)"
    assert fidelity._worst({"a": good}, lambda e: e.lost, "d") == "0"
