"""Nothing is measured here: every benchmark runs once on next to nothing, so that none breaks unnoticed."""

import contextlib
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
from benchmarks.planting import KINDS
from benchmarks.rivals import RIVALS

import benchmarks
from benchmarks import __main__ as everything
from benchmarks import (
    beyond,
    blocks,
    clones,
    code,
    code_and_pages,
    decoding,
    defaults,
    dependency,
    dimensions,
    duplicates,
    ends,
    entailment,
    explain,
    fidelity,
    find,
    fit,
    gpu,
    grammar,
    growth,
    index,
    kernel_svm,
    libraries,
    metric,
    pairs,
    parsers,
    partial,
    partial_vectors,
    passes,
    precision,
    probabilities,
    regression,
    rows,
    scale,
    search,
    serve,
    smoothed_vectors,
    start,
    streaming,
    templates,
    threads,
    toolkits,
    trees,
)
from components import component
from strategies import random_forest
from treedot import FragmentVectorizer, TreeIndex
from treedot._runtime.timing import timed
from treedot.errors import DeviceError
from treedot.search.index.followed_index import FollowedIndex

pytestmark = pytest.mark.slow

MODULES = [
    importlib.import_module(f"benchmarks.{found.name}") for found in pkgutil.iter_modules(benchmarks.__path__)
]
STANDARD_LIBRARY = cache(trees.standard_library)
EMAIL = ("--folder", os.path.dirname(email.__file__))
HOST = ("--host", EMAIL[1])
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
    columns = ("id", "tree", "text_tree", "grct", "lct", "coarse", "clone_class", "family", "kingdom", "fold")
    lines = [f"{k}" + f"\t{text}" * 4 + f"\t{k % 2}" * 4 + f"\t{k % 10}" for k, text in enumerate(texts)]
    content = "\n".join(["\t".join(columns), *lines]).encode()
    for file, _ in trees.CORPORA.values():
        (tmp_path / file).write_bytes(gzip.compress(content))
    pairs = "a\tb\ttype\tsimilarity_token\n" + "".join(f"{k}\t{k + 2}\tT3\t0.5\n" for k in range(20))
    (tmp_path / "bcb_pairs.tsv.gz").write_bytes(gzip.compress(pairs.encode()))
    return str(tmp_path)


def test_every_program_is_tried_here():
    tried = {
        everything,
        beyond,
        blocks,
        clones,
        code,
        code_and_pages,
        decoding,
        defaults,
        dependency,
        dimensions,
        duplicates,
        entailment,
        explain,
        fidelity,
        find,
        fit,
        gpu,
        growth,
        index,
        kernel_svm,
        libraries,
        metric,
        pairs,
        parsers,
        partial,
        partial_vectors,
        passes,
        precision,
        probabilities,
        regression,
        rows,
        scale,
        search,
        serve,
        smoothed_vectors,
        start,
        streaming,
        templates,
        threads,
        toolkits,
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
        (dimensions, [os.path.dirname(benchmarks.__file__), "--units", "60", "--queries", "5"]),
        (duplicates, [*HOST, "--variants", "1", "2", "3", "4"]),
        (explain, []),
        (fidelity, ["algebras", "--trees", "4", "--seeds", "1", "--dim", "256"]),
        (find, [os.path.dirname(benchmarks.__file__), "--units", "20"]),
        (fit, ["--trees", "400", "--splits", "1"]),
        (index, ["--trees", "20"]),
        (kernel_svm, ["--turns", "1", "--landmarks", "10", "--seeds", "1"]),
        (libraries, []),
        (metric, ["--trees", "3000", "--columns", "64"]),
        (pairs, []),
        (parsers, ["--sentences", "4", "--modules", "1"]),
        (partial, ["--trees", "10"]),
        (partial_vectors, ["--trees", "4", "--seeds", "1", "--dim", "256"]),
        (passes, []),
        (precision, ["--trees", "4", "--dim", "256"]),
        (probabilities, ["--fixed", "QC coarse", "QC coarse"]),
        (rows, ["--trees", "4", "--seeds", "1", "--neighbours", "20"]),
        (scale, ["--trees", "200", "--in-memory"]),
        (streaming, ["--trees", "200", "--passes", "1", "--kills", "0"]),
        (templates, ["--seeds", "1", "--pages", "1"]),
        (threads, ["--threads", "1"]),
        (defaults, ["QC coarse"]),
        (defaults, ["--text", "QC coarse"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_program_prints_what_it_measured(module, options, data, capsys, monkeypatch):
    monkeypatch.setenv("TREEDOT_DATA", data)
    module.main(options)
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_only_the_kernel_of_equal_subtrees_is_positive_semidefinite(tmp_path, capsys):
    made = ["(A (B b) (C c))", "(A (B b) (C d))", "(A (B d) (C c))", "(A (B d) (C d))", "(B b)", "(C c)"]
    (tmp_path / "qc_test.tsv.gz").write_bytes(gzip.compress("\n".join(["tree", *made]).encode()))
    toolkits.main(["--data", str(tmp_path), "--pairs", "15"])
    first, equal, kelp = capsys.readouterr().out.splitlines()
    assert first == "6 of 15 pairs of questions differ"
    assert float(equal.split()[4]) > 0 > float(kelp.split()[3])


def test_planted_blocks_are_found_where_they_are_planted(capsys):
    blocks.main([*EMAIL, "--seeds", "1", "--blocks", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"seed 1, {kind}" for kind in blocks.KINDS]
    assert all("treedot: 2 blocks, first 500 pairs 1.00" in line for line in lines[:2])


@pytest.fixture
def without_rivals(monkeypatch):
    monkeypatch.setattr("benchmarks.rivals.shutil.which", lambda program: None)


@pytest.mark.usefixtures("without_rivals")
def test_planted_functions_are_found_where_they_are_planted(capsys):
    duplicates.main([*HOST, "--seeds", "3", "--per-kind", "2"])
    missing, _, head, ours = capsys.readouterr().out.splitlines()
    assert [kind for kind in KINDS if kind in head] == list(KINDS)
    assert ours.split()[:7] == ["seed", "3,", "treedot", "1.00", "(1.00)", "1.00", "(1.00)"]
    assert missing == f"not installed: {', '.join(name for name in RIVALS if name != 'fallow')}"


@pytest.mark.usefixtures("without_rivals")
def test_functions_are_planted_in_javascript_too(tmp_path, capsys):
    body = "".join(f"  const x{k} = a.get({k}, b);\n  if (x{k} > b) {{ c.push(x{k}); }}\n" for k in range(6))
    for k in range(9):
        calls = "".join(f"  f{k}(c[{j}]);\n" for j in range(k))
        (tmp_path / f"{k}.js").write_text(f"function f{k}(a, b, c) {{\n{body}{calls}}}\n")
    duplicates.main(["--host", str(tmp_path), "--language", "javascript", "--seeds", "1", "--per-kind", "1"])
    ours = capsys.readouterr().out.splitlines()[3].split()
    assert ours[3:7] == ["1.00", "(1.00)", "1.00", "(1.00)"]


def test_the_similarity_is_compared_with_edit_distances(capsys):
    duplicates.main([*HOST, "--distances", "--per-kind", "2", "--seeds", "1"])
    correlation = capsys.readouterr().out.split("Spearman ")[1].split(",")[0]
    assert float(correlation) > 0.8


def test_the_time_on_a_library_is_measured(capsys):
    duplicates.main([*HOST, "--speed", "--n-jobs", "1"])
    assert "similarity of random pairs: median 0." in capsys.readouterr().out


def test_the_rule_for_near_duplicates_is_applied_to_clones(data, capsys):
    clones.main(["--data", data, "--others", "50", "--rule"])
    assert capsys.readouterr().out.startswith("rule of treedot dups: T3 ")


def test_planted_functions_are_searched_for(capsys):
    search.main([EMAIL[1], "--units", "400", "--per-kind", "1"])
    head, before, now, ratio = capsys.readouterr().out.splitlines()
    assert head.startswith("400 functions, 7 copies")
    assert before.startswith("before: exact 1.000")
    assert now.startswith("now: exact 1.000")
    assert ratio.endswith("times as long as before")


def test_functions_from_elsewhere_and_copies_are_searched_for(capsys, monkeypatch):
    monkeypatch.setattr(search, "FOREIGN", 5)
    monkeypatch.setattr(search.sysconfig, "get_path", lambda name: EMAIL[1])
    search.main(["--elsewhere", "--units", "200", "--per-kind", "1"])
    foreign, copies = capsys.readouterr().out.splitlines()
    assert foreign == "1.000 of 5 functions from elsewhere find something among 200 functions"
    share, rest = copies.split(" ", 1)
    assert float(share) > 0.8
    assert rest.startswith("of 7 copies")


def test_the_nearest_function_of_a_clone_is_another_one_of_its_class(tmp_path, capsys):
    lines = ["clone_class\ttree", *(f"c{k}\t(F (SimpleName x) (K{k} (L{k} a)))" for k in (0, 0, 1, 1, 2))]
    (tmp_path / "bcb_functions.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    search.main(["--clones", str(tmp_path)])
    assert capsys.readouterr().out == "before: 1.000 of 4 functions\nnow: 1.000 of 4 functions\n"


def test_servers_are_measured(tmp_path, capsys, monkeypatch):
    component("mcp")
    monkeypatch.setattr(serve, "QUERIES", 2)
    monkeypatch.setattr(serve, "COMPARED", 4)
    kept = contextlib.nullcontext("")  # instead of an empty folder, for which all functions would be compiled
    monkeypatch.setattr(serve, "tempfile", SimpleNamespace(TemporaryDirectory=lambda: kept))
    few = ["--functions", "60", "--requests", "6", "--clients", "2", "--searches", "3"]
    path = tmp_path / "code.index"
    serve.main([os.path.dirname(benchmarks.__file__), "--index", str(path), *few])
    out = capsys.readouterr().out
    assert "60 functions; load of the machine" in out
    assert "mcp: find_similar, one client, p95" in out
    assert "serve: 2 clients, 6 requests, errors" in out
    assert "300 nodes, the page with its estimates, p50" in out
    assert "first explained question, compiled before, processor time" in out


def test_too_few_functions_are_edited_and_copied(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.py").write_text("def f(alpha, beta):\n    return alpha + f'{beta}'\n")
    serve.build(tmp_path / "code.index", 3, [str(source)])
    trees = TreeIndex.open(tmp_path / "code.index").forest([0, 1, 2])
    assert len({str(tree) for tree in trees}) == 3
    assert all(os.path.exists(file) for file in trees.columns["file"])
    assert len(FollowedIndex(tmp_path / "code.index")) == 3


def test_regressions_are_compared_with_ridge_on_the_same_rows(capsys, monkeypatch):
    monkeypatch.delenv("TREEDOT_DATA", raising=False)
    regression.main(["--turns", "1"])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert len(lines) == 4
    assert all(abs(float(line.split(" | ")[5])) < 0.005 for line in lines)


def test_regressions_with_words_are_compared_with_those_without(capsys, monkeypatch):
    monkeypatch.delenv("TREEDOT_DATA", raising=False)
    target = next(regression.targets(None))
    fragments, words, paired = regression.beside(
        target._replace(train=target.train[:60], y_train=target.y_train[:60])
    )
    assert fragments.startswith("| words | fragments | 0.")
    assert words.startswith("| words | beside | 0.")
    assert paired.startswith("squared errors lower by ")


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
