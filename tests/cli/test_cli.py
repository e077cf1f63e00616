import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import load_npz

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    PartialTreeKernel,
    SubsetTreeKernel,
    SubtreeKernel,
    TreeIndex,
    dot_products,
)
from treedot._storage.safetensors import write_arrays
from treedot.cli import main
from treedot.kernels import BoundedTreeKernel, RouteKernel, SmoothedPartialTreeKernel, WordVectors
from treedot.readers.brackets import pieces
from treedot.readers.brackets.batch import Batch
from treedot.vectors import DenseEncoder, DenseSpec, load_vectors
from treedot.vectors.files import read_description

COMMAND = [sys.executable, "-m", "treedot"]
DENSE = ["--vectors", "dense", "-d", "256"]
SMOOTHED = ["--kernel", "smoothed", "--word-vectors", "nothing.txt"]


@pytest.fixture
def trees(tmp_path):
    forest = random_forest(0, 12)
    path = tmp_path / "trees.mrg"
    path.write_text("\n".join(map(str, forest)) + "\n")
    return forest, str(path)


def test_encode_writes_vectors_and_their_spec(trees, tmp_path):
    forest, path = trees
    target = tmp_path / "v.npy"
    options = ["--vectors", "dense", "-d", "256", "--decay", "0.3", "--seed", "5", "--no-normalize"]
    assert main(["encode", path, path, "-o", str(target), *options]) == 0
    spec = DenseSpec(256, 0.3, seed=5, normalize=False)
    vectors = np.load(target)
    assert (vectors == DenseEncoder(spec).encode(forest + forest)).all()
    assert load_vectors(target).spec == spec
    assert sorted(os.listdir(tmp_path)) == ["trees.mrg", "v.npy"]


@pytest.mark.parametrize("name", ["v.npy", "V.NPY", "v.parquet"])
def test_the_suffix_of_a_file_of_dense_vectors_needs_no_other_option(trees, tmp_path, name):
    forest, path = trees
    assert main(["encode", path, "-o", str(tmp_path / name), "-d", "256"]) == 0
    found = load_vectors(tmp_path / name)
    assert found.spec == DenseSpec(256)
    assert (found.matrix == DenseEncoder(DenseSpec(256)).encode(forest)).all()


@pytest.mark.parametrize("vectors", [[], ["--vectors", "dense"]])
def test_encode_makes_vectors_of_partial_trees(trees, tmp_path, capsys, monkeypatch, vectors):
    monkeypatch.setattr("treedot.batch.engines.LocalProcesses", ThreadPoolExecutor)
    forest, path = trees
    target = tmp_path / "v.npy"
    partial = ["--kernel", "partial", "--mu", "0.3", "--gaps", "span", "--max-length", "3"]
    assert main(["encode", path, "-o", str(target), "-d", "256", *vectors, *partial]) == 0
    spec = DenseSpec(256, kernel="partial", mu=0.3, gaps="span", max_length=3)
    assert (np.load(target) == DenseEncoder(spec).encode(forest)).all()
    assert load_vectors(target).spec == spec
    parts = ["-o", str(tmp_path / "parts"), "-d", "256", *vectors, *partial]
    assert main(["batch", "encode", path, *parts]) == 0
    assert load_vectors(tmp_path / "parts").spec == spec
    for file, what in ((target, "dense vectors"), (tmp_path / "parts", "a folder of parts")):
        capsys.readouterr()
        assert main(["info", str(file)]) == 0
        printed = capsys.readouterr().out
        assert what in printed
        assert spec.fingerprint in printed


def test_encode_keeps_columns_in_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")

    (tmp_path / "t.tsv").write_text("tree\tclass\n" + "\n".join(f"(a (b c{k}))\t{k}" for k in range(1300)))
    target = tmp_path / "v.parquet"
    assert main(["encode", str(tmp_path / "t.tsv"), "-o", str(target), *DENSE]) == 0
    table = pa.parquet.read_table(target)
    assert table.column("class").to_pylist() == [str(k) for k in range(1300)]
    assert len(table.column("vector")[7]) == 256
    assert load_vectors(target).spec == DenseSpec(256, normalize=True)


def test_encode_writes_sparse_rows(trees, tmp_path, capsysbinary):
    forest, path = trees
    target = tmp_path / "rows.npz"
    options = ["--budget", "5", "--decay", "0.3", "--damping", "log1p"]
    assert main(["encode", path, path, "-o", str(target), *options]) == 0
    vectorizer = FragmentVectorizer(decay=0.3, budget=5, damping="log1p")
    spec, wanted = vectorizer.spec, vectorizer.transform(forest + forest)
    found = load_npz(target)
    assert found.shape == wanted.shape
    for name in ("data", "indices", "indptr"):
        assert (getattr(found, name) == getattr(wanted, name)).all()
    assert load_vectors(target).spec == spec
    assert main(["info", str(target)]) == 0
    printed = capsysbinary.readouterr().out.decode()
    assert spec.fingerprint in printed
    assert f"mean {wanted.nnz / 24:.1f}" in printed
    assert main(["encode", path, "-o", "-", *options]) == 0
    target.write_bytes(capsysbinary.readouterr().out)
    assert (load_npz(target).data == wanted[:12].data).all()
    assert load_vectors(target).spec == spec
    assert main(["gram", path, "-o", "-"]) == 0
    (tmp_path / "K.npy").write_bytes(capsysbinary.readouterr().out)
    assert read_description(tmp_path / "K.npy")["kernel"] == "exact SubsetTreeKernel"
    target.write_bytes(b"junk")
    assert main(["info", str(target)]) == 1
    assert b"cannot read" in capsysbinary.readouterr().err


@pytest.mark.parametrize("rest", [None, "dense", "blocks"])
def test_kernels_of_sparse_rows_come_from_wide_rows(trees, tmp_path, capsys, rest):
    forest, path = trees
    options = ["--vectors", "sparse", *(["--rest", rest] if rest else ["--damping", "sqrt", "--normalize"])]
    rows = FragmentVectorizer(n_features=2**30, rest=rest, normalize=rest is None).transform(forest)
    wanted = dot_products(rows)
    target = str(tmp_path / "K.npy")
    assert main(["gram", path, "-o", target, *options]) == 0
    assert np.load(target) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert main(["gram", path, "--against", str(forest[3]), "-o", target, *options]) == 0
    assert np.load(target) == pytest.approx(wanted[:, 3:4], rel=1e-5, abs=1e-5)
    assert main(["kernel", path, str(forest[3]), *options]) == 0
    printed = [float(line) for line in capsys.readouterr().out.split()]
    assert printed == pytest.approx(wanted[:, 3], rel=1e-5, abs=1e-5)


def test_functions_of_python_source_are_trees(tmp_path, capsys):
    (tmp_path / "m.py").write_text("def f(x):\n    return x + 1\n\n\ndef g(y):\n    return y + 1\n")
    (tmp_path / "empty").write_text("X = 1\n")
    target = str(tmp_path / "rows.npz")
    sources = [str(tmp_path / "m.py"), str(tmp_path / "empty")]
    assert main(["encode", *sources, "--format", "python", "-o", target]) == 0
    assert load_npz(target).shape[0] == 2
    assert main(["info", sources[0]]) == 0
    assert "file, start, end, name, language" in capsys.readouterr().out
    for arguments in (["encode", sources[1], "-o", target], ["info", sources[1]]):
        assert main([*arguments, "--format", "python"]) == 1
        assert "no trees found" in capsys.readouterr().err


@pytest.mark.slow
def test_pipelines(trees):
    forest, path = trees
    text = Path(path).read_bytes()
    done = subprocess.run(
        [*COMMAND, "encode", "-", "-o", "-", *DENSE], input=text, capture_output=True, check=True
    )
    wanted = DenseEncoder(DenseSpec(256, normalize=True)).encode(forest)
    assert (np.load(io.BytesIO(done.stdout)) == wanted).all()
    (Path(path).parent / "v.npy").write_bytes(done.stdout)
    assert load_vectors(Path(path).parent / "v.npy").spec == DenseSpec(256, normalize=True)
    assert done.stderr == b""


def printed_values(capsys):
    return [float(line) for line in capsys.readouterr().out.split()]


def test_kernel_prints_a_value_per_pair(trees, capsys):
    forest, path = trees
    assert main(["kernel", "(NP (DT a) (NN tree))", "(NP (DT the) (NN tree))", "--decay", "0.5"]) == 0
    assert capsys.readouterr().out == "2.5\n"
    assert main(["kernel", path, path]) == 0
    assert printed_values(capsys) == pytest.approx(SubsetTreeKernel().diagonal(forest), rel=1e-9)
    assert main(["kernel", path, path, "--normalize"]) == 0
    assert printed_values(capsys) == [1] * len(forest)
    assert main(["kernel", path, str(forest[0]), "--vectors", "dense", "-d", "8192"]) == 0
    assert printed_values(capsys)[0] == pytest.approx(SubsetTreeKernel()(forest[0], forest[0]), rel=0.2)
    assert main(["kernel", path, path, *DENSE, "--normalize"]) == 0
    assert printed_values(capsys) == pytest.approx([1] * len(forest), rel=1e-5)


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ([], SubsetTreeKernel()),
        (["--kernel", "subset", "--normalize"], SubsetTreeKernel(normalize=True)),
        (["--kernel", "subtree", "--decay", "0.3"], SubtreeKernel(decay=0.3)),
        (
            ["--convention", "collins-duffy", "--leaves"],
            SubsetTreeKernel(0.4, convention="collins-duffy", leaves=True),
        ),
        *(
            (
                ["--kernel", "subtree", "--convention", name, "--leaves"],
                SubtreeKernel(convention=name, leaves=True),
            )
            for name in ("paper", "collins-duffy", "kelp", "svm-light-tk")
        ),
        (
            ["--kernel", "subtree", "--convention", "kelp", "--normalize"],
            SubtreeKernel(convention="kelp", normalize=True),
        ),
        (["--kernel", "bounded", "--budget", "2"], BoundedTreeKernel(budget=2)),
        (["--kernel", "bounded"], BoundedTreeKernel()),
        (["--kernel", "partial"], PartialTreeKernel()),
        (
            ["--kernel", "partial", "--mu", "0.3", "--gaps", "span", "--max-length", "2", "--normalize"],
            PartialTreeKernel(mu=0.3, gaps="span", max_length=2, normalize=True),
        ),
        (["--kernel", "partial", "--terminal-factor", "5"], PartialTreeKernel(terminal_factor=5)),
        (["--kernel", "route"], RouteKernel()),
        (["--kernel", "route", "--start", "root", "--decay", "0.3"], RouteKernel(0.3, start="root")),
    ],
)
def test_kernels_are_exact_unless_vectors_are_asked_for(trees, tmp_path, capsys, options, kernel):
    forest, path = trees
    target = str(tmp_path / "K.npy")
    assert main(["gram", path, "-o", target, *options]) == 0
    assert (np.load(target) == kernel.gram(forest)).all()
    assert main(["kernel", path, str(forest[3]), *options]) == 0
    assert printed_values(capsys) == pytest.approx([kernel(tree, forest[3]) for tree in forest], rel=1e-9)
    assert main(["info", target]) == 0
    assert f"exact {type(kernel).__name__}" in capsys.readouterr().out


def test_smoothed_kernels_read_the_vectors_of_words(tmp_path, capsys):
    vectors, trees, target = tmp_path / "vectors.txt", tmp_path / "trees.mrg", tmp_path / "K.npy"
    vectors.write_text("2 2\ndog 3 4\ncat 4 3\n")
    trees.write_text("(S dog::n)\n(S cat::n)\n")
    options = ["--kernel", "smoothed", "--word-vectors", str(vectors), "--threshold", "0.5", "--mu", "0.3"]
    kernel = SmoothedPartialTreeKernel({"dog": [3, 4], "cat": [4, 3]}, mu=0.3, threshold=0.5)
    assert main(["gram", str(trees), "-o", str(target), *options]) == 0
    assert (np.load(target) == kernel.gram(["(S dog::n)", "(S cat::n)"])).all()
    assert main(["info", str(target)]) == 0
    assert "WordVectors(2 words, 2 dimensions)" in capsys.readouterr().out


def test_the_vectors_of_words_are_read_once(tmp_path, monkeypatch):
    (tmp_path / "vectors.txt").write_text("dog 3 4\n")
    read, calls = WordVectors.read, []
    monkeypatch.setattr(WordVectors, "read", lambda *path: calls.append(path) or read(*path))
    options = ["--kernel", "smoothed", "--word-vectors", str(tmp_path / "vectors.txt")]
    assert main(["kernel", "(S dog::n)", "(S dog::n)", *options]) == 0
    assert len(calls) == 1


@pytest.mark.slow
def test_word_vectors_make_vectors_of_similar_words(tmp_path):
    words, trees, target = tmp_path / "vectors.txt", tmp_path / "trees.mrg", tmp_path / "v.npy"
    words.write_text("dog 3 4\ncat 4 3\n")
    trees.write_text("(S dog::n)\n(S cat::n)\n")
    options = ["--kernel", "smoothed", "--word-vectors", str(words), "--mu", "0.3", "-d", "256"]
    vectorizer = DistributedTreeVectorizer(n_components=256, kernel="smoothed", mu=0.3, similarity=words)
    expected = vectorizer.transform(trees)
    assert main(["encode", str(trees), "-o", str(target), *options]) == 0
    assert (load_vectors(target).matrix == expected).all()
    assert load_vectors(target).spec == vectorizer.spec
    assert main(["batch", "encode", str(trees), "-o", str(tmp_path / "parts"), *options]) == 0
    assert (load_vectors(tmp_path / "parts").matrix == expected).all()
    gram = ["gram", str(trees), "-o", str(tmp_path / "K.npy"), "--vectors", "dense", "--normalize", *options]
    assert main(gram) == 0
    assert np.allclose(np.load(tmp_path / "K.npy"), expected @ expected.T, atol=1e-6)


@pytest.mark.parametrize("normalize", [[], ["--normalize"]])
def test_vectors_estimate_the_kernel_that_is_exact_without_them(trees, tmp_path, normalize):
    _, path = trees
    exact, estimate = str(tmp_path / "exact.npy"), str(tmp_path / "estimate.npy")
    for options, vectors in (
        (["--kernel", "bounded"], ["--vectors", "sparse"]),
        (["--kernel", "partial"], ["--vectors", "dense", "--kernel", "partial", "--dtype", "float64"]),
        (["--kernel", "subset"], ["--vectors", "sparse", "--rest", "dense", "--rest-size", "2^13"]),
    ):
        assert main(["gram", path, "-o", exact, *options, *normalize]) == 0
        assert main(["gram", path, "-o", estimate, *vectors, *normalize]) == 0
        wanted = np.load(exact)
        assert np.load(estimate) == pytest.approx(wanted, rel=1e-4, abs=0.05 * wanted.diagonal().max())
    spec = read_description(estimate)["vectors"]
    assert (spec["rest_size"], spec["normalize"], spec["damping"]) == (8192, bool(normalize), "linear")


@pytest.mark.parametrize("text", ["2^24", "2**24", "16777216"])
def test_numbers_of_columns_may_be_written_as_powers(trees, tmp_path, text):
    _, path = trees
    assert main(["encode", path, "-o", str(tmp_path / "v.npz"), "--n-features", text]) == 0
    assert load_npz(tmp_path / "v.npz").shape == (12, 2**24)


@pytest.mark.parametrize("options", [[], ["--kernel", "subtree"], ["--vectors", "sparse"]])
def test_kernels_are_the_same_whatever_the_threads(trees, tmp_path, capsys, options):
    _, path = trees
    written, printed = set(), set()
    for jobs in "1", "3":
        assert main(["gram", path, "-o", str(tmp_path / "K.npy"), "-j", jobs, *options]) == 0
        written.add((tmp_path / "K.npy").read_bytes())
        assert main(["kernel", path, path, "--jobs", jobs, *options]) == 0
        printed.add(capsys.readouterr().out)
    assert len(written) == len(printed) == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_large_file_is_read_by_as_many_threads_as_jobs(tmp_path, monkeypatch, jobs):
    (tmp_path / "trees.mrg").write_text("\n".join(f"(S (A w{k}) (B b{k % 7}))" for k in range(500)))
    pieces_read = []
    scan_alone = Batch.scan_alone
    monkeypatch.setattr(Batch, "scan_alone", lambda *a: pieces_read.append(a) or scan_alone(*a))
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1000)
    monkeypatch.setattr(pieces, "BATCH_BYTES", 1000)
    out = tmp_path / "rows.npz"
    assert main(["encode", str(tmp_path / "trees.mrg"), "-o", str(out), "-j", jobs]) == 0
    assert load_vectors(out).matrix.shape[0] == 500
    assert (len(pieces_read) > 5) == (jobs == "2")


def test_gram_writes_a_matrix(trees, tmp_path, capsys):
    forest, path = trees
    target = str(tmp_path / "K.npy")
    assert main(["gram", path, "--against", str(forest[3]), "-o", target, *DENSE, "--normalize"]) == 0
    vectors = DenseEncoder(DenseSpec(256, normalize=True)).encode(forest)
    assert np.allclose(np.load(target), vectors @ vectors[3:4].T, rtol=1e-5)
    assert main(["gram", path, "-o", str(tmp_path / "K.txt")]) == 1
    assert "use .npy" in capsys.readouterr().err


def test_info_describes_trees_and_vectors(trees, tmp_path, capsys):
    forest, path = trees
    assert main(["info", path, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["file"] == "trees"
    assert facts["trees"] == 12
    assert facts["nodes"] == forest.n_nodes
    assert facts["productions"] == forest.n_productions
    vectors = str(tmp_path / "v.npy")
    main(["encode", path, "-o", vectors, *DENSE])
    assert main(["info", vectors]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("file          dense vectors\n")
    assert DenseSpec(256, normalize=True).fingerprint in printed
    main(["gram", path, "-o", vectors])  # over the other: the description follows
    assert main(["info", vectors]) == 0
    assert "exact SubsetTreeKernel" in capsys.readouterr().out
    for content in (b"junk", b""):
        (tmp_path / "v.npy").write_bytes(content)
        assert main(["info", vectors]) == 1


def test_info_describes_indexes_vectorizers_and_other_arrays(trees, tmp_path, capsys):
    forest, _ = trees
    index = TreeIndex.build(forest, tmp_path / "trees.index")
    assert main(["info", str(tmp_path / "trees.index"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["file"].startswith("an index of trees")
    assert (facts["trees"], facts["fingerprint"], facts["idf"]) == (12, index.fingerprint, False)
    TreeIndex.build(forest, tmp_path / "rare.index", idf=True)
    assert main(["info", str(tmp_path / "rare.index"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["idf"] is True

    vectorizer = FragmentVectorizer(n_features=None, decay=0.3).fit(forest)
    vectorizer.save(tmp_path / "fragments")
    assert main(["info", str(tmp_path / "fragments"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["file"].startswith("a vectorizer")
    assert facts["decay"] == 0.3
    assert facts["columns learned"] == len(vectorizer.get_feature_names_out())
    assert facts["fingerprint"] == vectorizer.fingerprint

    write_arrays(tmp_path / "other", {}, {"x": np.zeros((2, 3))})
    assert main(["info", str(tmp_path / "other")]) == 0
    assert "x [2, 3]" in capsys.readouterr().out
    (tmp_path / "fragments").write_bytes((tmp_path / "fragments").read_bytes()[:-9])
    assert main(["info", str(tmp_path / "fragments")]) == 1
    assert "truncated" in capsys.readouterr().err


def test_values_that_overflow_are_refused(tmp_path, capsys):
    giant = "(A" + " (B x)" * 130 + ")"
    options = ["--decay", "1", *DENSE]
    assert main(["kernel", giant, giant, *options]) == 0
    assert np.isfinite(float(capsys.readouterr().out))
    (tmp_path / "t.mrg").write_text(giant)
    assert main(["gram", str(tmp_path / "t.mrg"), "-o", str(tmp_path / "K.npy"), *options]) == 1
    assert "--normalize" in capsys.readouterr().err
    assert not (tmp_path / "K.npy").exists()


def test_parquet_columns_keep_their_types_or_say_what_is_wrong(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    rows = [{"tree": "(a b)", "n": None if k < 2100 else "late"} for k in range(2200)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ["encode", str(tmp_path / "t.jsonl"), "-o", str(tmp_path / "v.parquet"), *DENSE]
    assert main(arguments) == 0
    for late in ({"n": 1, "new": 2}, {"n": [1]}, {"vector": 1}):
        rows[-1] = {"tree": "(a b)", **late}
        (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
        assert main(arguments) == 1
        assert "column" in capsys.readouterr().err


def test_check_tells_what_is_required_from_what_is_optional(capsys, monkeypatch):
    assert main(["check"]) == 0
    required, optional = capsys.readouterr().out.split("optional:")
    for name in ("numpy", "scipy", "numba", "scikit-learn", "tree-sitter", "tree-sitter-python"):
        assert f" {name}" in required
        assert name not in optional
    for name in ("pyarrow", "zstandard", "matplotlib", "starlette", "uvicorn", "mcp"):
        assert f" {name}" in optional
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    main(["check"])
    assert (
        "missing  pyarrow: Parquet and Arrow files; run: pip install pyarrow, or install treedot again with "
        "the extra 'parquet'" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["encode", "missing.mrg", "-o", "v.npz"], 1, "cannot open missing.mrg"),
        (["encode", "bad.mrg", "-o", "v.npz"], 1, "bad.mrg:2:1 (tree 2)"),
        (["encode", "bad.mrg", "-o", "v.npy", *DENSE], 1, "bad.mrg:2:1 (tree 2)"),
        (["encode", "good.mrg", "-o", "v.npy", "--vectors", "dense", "-d", "63"], 1, "multiple of 256"),
        (["encode", "good.mrg", "-o", "v.npz", "--decay", "2"], 1, "from 0 to 1"),
        (
            ["encode", "good.mrg", "-o", "v.npy", "--vectors", "sparse"],
            1,
            "sparse, or write sparse rows to a .npz",
        ),
        (["encode", "good.mrg", "-o", "v.parquet", "--vectors", "sparse"], 1, "remove --vectors sparse"),
        (
            ["encode", "good.mrg", "-o", "v.npy", "--budget", "3"],
            1,
            "v.npy holds dense vectors: --budget has no",
        ),
        (["encode", "good.mrg", "-o", "v.txt"], 1, "use .npz"),
        (["encode", "good.mrg", "-o", "v.txt", *DENSE], 1, "use .npy or .parquet"),
        (["encode", "good.mrg", "-o", "v.npz", *DENSE], 1, "use .npy or .parquet"),
        (
            ["encode", "good.mrg", "-o", "v.npz", "--n-features", "1000"],
            1,
            "--n-features must be a power of two",
        ),
        (["encode", "good.mrg", "-o", "v.npz", "--n-features", "2^"], 2, "such as 1024 or 2^10, not '2^'"),
        (["encode", "good.mrg", "-o", "v.npz", "--budget", "-1"], 1, "--budget must be at least 0"),
        (["encode", "good.mrg", "-o", "v.npz", "--rest-size", "512"], 1, "without --rest dense"),
        (["encode", "good.mrg", "-o", "v.npz", "--rest", "blocks", "--rest-size", "512"], 1, "without"),
        (["encode", "table.txt", "-o", "v.npz"], 1, "--format tsv"),
        (["encode", "good.mrg", "-o", "v.npz", "-d", "256"], 1, "or choose --vectors dense"),
        (["encode", "good.mrg", "-o", "v.npz", "--composition", "mixed"], 1, "--composition has no effect"),
        (["encode", "good.mrg", "-o", "v.npy", *DENSE, "--budget", "4"], 1, "choose --vectors sparse\n"),
        (["encode", "good.mrg", "-o", "v.npy", *DENSE, "--rest", "dense"], 1, "choose --vectors sparse"),
        (["encode", "good.mrg", "-o", "v.npz", "--kernel", "subset"], 2, "--kernel"),
        (["gram", "good.mrg", "-o", "K.npy", "--kernel", "subset", *DENSE], 1, "remove one of the two"),
        (["encode", "good.mrg", "-o", "v.npz", "--kernel", "partial"], 1, ".npy"),
        (
            ["encode", "good.mrg", "-o", "v.npz", "--kernel", "partial", "--vectors", "sparse"],
            1,
            "partial trees only have dense vectors: use --vectors dense",
        ),
        (["encode", "good.mrg", "-o", "v.npy", *DENSE, "--mu", "0.3"], 1, "partial or --kernel smoothed\n"),
        (
            ["gram", "good.mrg", "-o", "K.npy", *DENSE, "--kernel", "partial", "--terminal-factor", "5"],
            1,
            "may not be positive definite",
        ),
        (
            ["gram", "good.mrg", "-o", "K.npy", *DENSE, "--kernel", "partial", "--composition", "product"],
            1,
            "needs --composition mixed, not 'product'",
        ),
        (["gram", "good.mrg", "-o", "K.npy", "--budget", "4"], 1, "--vectors sparse or --kernel bounded"),
        (["gram", "good.mrg", "-o", "K.npy", "--mu", "0.3"], 1, "--kernel partial or --kernel smoothed\n"),
        (["gram", "good.mrg", "-o", "K.npy", "--kernel", "smoothed"], 1, "give --word-vectors FILE"),
        (["encode", "good.mrg", "-o", "v.npy", "--kernel", "smoothed"], 1, "give --word-vectors FILE"),
        (
            ["gram", "good.mrg", "-o", "K.npy", *DENSE, *SMOOTHED, "--threshold", "0.1"],
            1,
            "--threshold has no effect with --vectors",
        ),
        (
            ["gram", "good.mrg", "-o", "K.npy", *DENSE, "--kernel", "partial", "--word-vectors", "x.txt"],
            1,
            "--word-vectors has no effect with --vectors dense: remove it, or choose --kernel smoothed",
        ),
        (
            ["encode", "good.mrg", "-o", "v.npz", *SMOOTHED, "--vectors", "sparse"],
            1,
            "partial trees only have dense vectors: use --vectors dense",
        ),
        (["encode", "good.mrg", "-o", "v.npy", *SMOOTHED], 1, "cannot open nothing.txt"),
        (["gram", "good.mrg", "-o", "K.npy", "--start", "root"], 1, "or choose --kernel route"),
        (["gram", "good.mrg", "-o", "K.npy", "--convention", "kelp"], 1, "use --convention collins-duffy"),
        (
            ["kernel", "(a b)", "(a b)", "--kernel", "route", "--leaves"],
            1,
            "--kernel subset or --kernel subtree",
        ),
        (["gram", "good.mrg", "-o", "K.npy", "--kernel", "partial", "--mu", "2"], 1, "from 0 to 1, not 2"),
        (["gram", "good.mrg", "-o", "K.npy", "--seed", "0"], 1, "--seed has no effect with --kernel subset"),
        (["gram", "good.mrg", "-o", "K.npy", "--jobs", "0"], 1, "--jobs must not be 0"),
        (["kernel", "(a b)", "(a b)", "-d", "256"], 1, "--n-components has no effect with --kernel subset"),
        (["kernel", "(a b)", "(a b)", "--kernel", "bounded", "--dtype", "float64"], 1, "no effect"),
        (["kernel", "(a b)", "(a b)", "--kernel", "bounded", "--budget", "-1"], 1, "at least 0"),
        (
            ["encode", "good.mrg", "-o", "v.npz", "--rest", "dense", "--damping", "sqrt"],
            1,
            "needs --damping linear",
        ),
        (["encode", "good.mrg", "-o", "nowhere/v.npz"], 1, "does not exist"),
        (
            ["encode", "good.mrg", "-o", "folder.npz"],
            1,
            "it is a folder; use treedot batch encode for a fold",
        ),
        (
            ["encode", "good.mrg", "-o", "rows/"],
            1,
            "cannot write rows/: it is a folder; use treedot batch enc",
        ),
        (
            ["predict", "folder.npz", "good.mrg", "-o", "said/"],
            1,
            "it is a folder; use treedot batch predict",
        ),
        (["dups", "-o", "groups/"], 2, "it is a folder; use treedot batch dups for a folder of parts"),
        (["encode", "good.mrg", "-o", "v.npz", "--workers", "2"], 2, "unknown option --workers"),
        (["train", "good.mrg", "--class", "c", "-o", "m", "--engine", "ray"], 2, "unknown option --engine"),
        (["batch"], 2, "COMMAND"),
        (["batch", "encode", "good.mrg", "-o", "rows/", "-j", "2"], 2, "unknown option -j"),
        (
            ["batch", "fit", "good.mrg", "--class", "c", "-o", "m", "--kernel", "subset"],
            2,
            "unknown option --k",
        ),
        (["demo", "--functions", "0"], 1, "at least 50"),
        (["kernel", "good.mrg", "three.mrg"], 1, "cannot pair 2 trees with 3"),
        (["encode", "good.mrg"], 2, "treedot encode: missing: -o/--output; see treedot encode --help"),
        (["encode", "-x"], 2, "unknown option -x"),
        (["encode", "good.mrg", "-o", "v.npz", "--seed", "x"], 2, "--seed: expected an integer, not 'x'"),
        (["dups", "--threshold", "half"], 2, "dups: --threshold: expected a number, not 'half'"),
        (["dups", "--threshold", "-1"], 2, "treedot: --threshold must be a number above 0"),
        (["dups", "--unit", "lines"], 2, "--unit: invalid choice: 'lines'"),
        (["info", "good.mrg", "three.mrg"], 2, "unexpected argument 'three.mrg'"),
        (["dance\n"], 2, "unknown command"),
    ],
)
def test_errors_are_one_clear_line_and_leave_nothing_behind(
    tmp_path, monkeypatch, capsys, arguments, code, complaint
):
    (tmp_path / "bad.mrg").write_text("(a b)\n(a b\n")
    (tmp_path / "good.mrg").write_text("(a b)\n(a c)\n")
    (tmp_path / "table.txt").write_text("class\ttree\nx\t(a b)\n")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "three.mrg").write_text("(a b)\n(a c)\n(a c)\n")
    before = sorted(os.listdir(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert exit_code(arguments) == code
    said = capsys.readouterr().err
    assert complaint in said
    first, *others = said.splitlines()
    assert [line.startswith("usage: treedot") for line in others] == [True] * ("--help" in first)
    assert "None" not in said
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("arguments", "error", "usage"),
    [
        (
            ["serch", "x"],
            "treedot: unknown command serch (did you mean search?); see",
            "search [options] INDEX",
        ),
        (["qwxyz"], "treedot: unknown command qwxyz; see treedot --help", "[options] COMMAND ..."),
        (
            ["--versoin"],
            "treedot: unknown option --versoin (did you mean --version?)",
            "[options] COMMAND ...",
        ),
        (
            ["dups", "--treshold=1"],
            "treedot dups: unknown option --treshold (did you mean --thr",
            "dups [opt",
        ),
        (
            ["encode", "a.mrg", "--outptu", "v"],
            "encode: unknown option --outptu (did you mean --output?)",
            "enc",
        ),
        (
            ["batch", "fti"],
            "treedot batch: unknown command fti (did you mean fit?)",
            "batch fit [options] --class",
        ),
        (["batch", "fit", "--wrokers"], "treedot batch fit: unknown option --wrokers (did", "batch fit [opt"),
    ],
)
def test_an_unknown_command_or_option_suggests_the_nearest_with_its_usage(capsys, arguments, error, usage):
    assert exit_code(arguments) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert error in first
    assert second.startswith(f"usage: treedot {usage}")


@pytest.mark.parametrize(
    "arguments", [["search", "missing.index", "-- a b"], ["search", "missing.index", "--", "--a"]]
)
def test_a_query_may_look_like_an_option(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert exit_code(arguments) == 1
    assert "missing.index" in capsys.readouterr().err


def test_without_arguments_the_help_is_printed(capsys):
    assert main([]) == 0
    printed = capsys.readouterr()
    assert exit_code(["--help"]) == 0
    assert printed.out == capsys.readouterr().out
    assert printed.out.startswith("usage: treedot")
    assert printed.err == ""


def exit_code(arguments):
    """Run a command in this process; return its exit code, also for arguments that the parser refuses."""
    try:
        return main(arguments)
    except SystemExit as error:
        return error.code


@pytest.mark.parametrize(("arguments", "code"), [(["info", "missing.mrg"], 1), (["dance"], 2)])
def test_errors_reach_the_shell(tmp_path, capsys, arguments, code):
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code == exit_code(arguments)
    assert done.stderr == capsys.readouterr().err
    assert done.stdout == ""


def test_skip_bad_goes_on_and_reports(tmp_path, capsys):
    (tmp_path / "t.mrg").write_text("(a b)\n(a\n(a c)\n")
    assert main(["encode", str(tmp_path / "t.mrg"), "-o", str(tmp_path / "v.npz"), "--skip-bad"]) == 0
    assert load_npz(tmp_path / "v.npz").shape[0] == 2
    err = capsys.readouterr().err
    assert "skipped" in err
    assert "left out 1 bad tree" in err


def test_an_interrupted_encode_keeps_the_old_file(tmp_path):
    (tmp_path / "t.mrg").write_text("(a b)\n(a\n")
    for name, options in (("v.npy", DENSE), ("v.npz", [])):
        (tmp_path / name).write_bytes(b"precious")
        assert main(["encode", str(tmp_path / "t.mrg"), "-o", str(tmp_path / name), *options]) == 1
        assert (tmp_path / name).read_bytes() == b"precious"


def test_no_output_takes_the_place_of_the_trees(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = b"tree\n(a b)\n(a c)\n"
    for name in ("t.npz", "t.npy"):
        (tmp_path / name).write_bytes(text)
    (tmp_path / "soft.npy").symlink_to("t.npy")
    (tmp_path / "hard.npy").hardlink_to(tmp_path / "t.npy")
    before = sorted(os.listdir(tmp_path))
    table = ["--format", "tsv"]
    for arguments in (
        ["encode", "t.npz", "-o", "t.npz"],
        ["encode", "t.npy", "t.npz", "-o", "./t.npz"],
        ["encode", "t.npy", "-o", "soft.npy", *DENSE],
        ["encode", "soft.npy", "-o", "t.npy", *DENSE],
        ["encode", "-", "-o", "hard.npy", *DENSE],
        ["gram", "t.npy", "-o", "hard.npy"],
        ["gram", "(a b)", "--against", "t.npy", "-o", str(tmp_path / "t.npy")],
    ):
        with (tmp_path / "t.npy").open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert main([*arguments, *table]) == 1
        assert "is the file that the trees are read from" in capsys.readouterr().err
        assert (tmp_path / "t.npz").read_bytes() == (tmp_path / "t.npy").read_bytes() == text
        assert sorted(os.listdir(tmp_path)) == before


def test_sentences_of_a_treebank_are_converted_to_the_tree_that_is_asked_for(tmp_path, capsys):
    path, target = tmp_path / "a.conllu", tmp_path / "a.mrg"
    path.write_text("1\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n1\tgo\n", encoding="utf-8")
    assert main(["convert", str(path), "-o", str(target), "--unit", "lct", "--skip-bad"]) == 0
    assert target.read_text(encoding="utf-8") == "(go::v VB root)\n"
    assert "a.conllu:3: 2 field(s)" in capsys.readouterr().err
    assert main(["convert", str(target), "-o", str(tmp_path / "a.nwk")]) == 0
    assert (tmp_path / "a.nwk").read_text(encoding="utf-8") == "(VB,root)'go::v';\n"
