"""The commands of ``treedot batch`` that write folders of parts."""

import json
import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    TreeClassifier,
    batch,
    find_duplicates,
    load_vectors,
)
from treedot.cli import main
from treedot.trees.arrow import pa

TREES = [str(tree) for tree in random_forest(0, 60)]


@pytest.fixture
def table(tmp_path):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "trees.tsv"
    path.write_text("tree\tid\n" + "".join(f"{tree}\t{i}\n" for i, tree in enumerate(TREES)))
    return path


@pytest.fixture(autouse=True)
def in_threads(monkeypatch):
    """Let threads do what local processes would, which take seconds to start."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr("treedot.batch.engines.LocalProcesses", ThreadPoolExecutor)


def test_encode_writes_parts_to_a_folder(table, tmp_path, capsys):
    out = f"{tmp_path}/out/"
    options = [f"{tmp_path}/in/*.tsv", "-o", out, "--shard-size", "1k", "--n-features", "4096"]
    for share in ("2/2", "1/2"):
        assert main(["batch", "encode", *options, "--shard", share]) == 0
    parts = len(list((tmp_path / "out").glob("part-*")))
    assert parts > 2
    assert main(["batch", "encode", *options, "--workers", "2"]) == 0
    assert f"{out}: {parts} part(s) ({parts} were finished before), 60 rows" in capsys.readouterr().out
    expected = FragmentVectorizer(n_features=4096).transform(TREES)
    assert (load_vectors(out).matrix != expected).nnz == 0
    assert main(["info", out]) == 0
    assert "a folder of parts (load_vectors)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "vectorizer"),
    [
        ([], FragmentVectorizer()),
        (["--damping", "log1p", "--decay", "0.5"], FragmentVectorizer(damping="log1p", decay=0.5)),
        (["--rest", "dense", "--rest-size", "256"], FragmentVectorizer(rest="dense", rest_size=256)),
        (["--vectors", "dense", "-d", "256"], DistributedTreeVectorizer(n_components=256)),
    ],
    ids=["default", "damping", "rest", "dense"],
)
def test_encode_writes_the_same_folder_as_in_python(table, tmp_path, options, vectorizer):
    assert main(["batch", "encode", str(table), "-o", f"{tmp_path}/a", *options]) == 0
    batch.encode(table, tmp_path / "b", vectorizer, workers=1)
    a, b = ({one.name: one.read_bytes() for one in (tmp_path / name).iterdir()} for name in "ab")
    assert a == b


def test_status_says_what_is_missing_and_why(table, tmp_path, capsys):
    out = f"{tmp_path}/out"
    (tmp_path / "in" / "wrong.tsv").write_text("tree\n(A\n")
    assert main(["batch", "encode", str(table.parent), "-o", out, "--workers", "1"]) == 1
    said = capsys.readouterr().err
    assert "1 of 2 shards failed" in said
    assert "wrong.tsv:2, column 'tree'" in said
    assert main(["batch", "status", out]) == 1
    said = capsys.readouterr().out
    assert said.startswith("1 of 2 parts are finished, with 60 rows\n")
    assert "never closed" in said
    assert main(["batch", "status", "--json", out]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert (facts["parts"], facts["finished"], facts["rows"], len(facts["missing"])) == (2, 1, 60, 1)
    assert list(facts["failed"]) == facts["missing"]
    assert (
        main(["batch", "encode", str(table.parent), "-o", f"{out}2/", "--skip-bad"]) == 0
    )  # no tree in wrong.tsv
    assert "2 part(s), 60 rows" in capsys.readouterr().out
    (tmp_path / "in" / "wrong.tsv").write_text("tree\n(A\n(A b)\n")
    assert main(["batch", "encode", str(table.parent), "-o", f"{out}3/", "--skip-bad"]) == 0
    assert "left out 1 bad tree(s)" in capsys.readouterr().err
    assert main(["batch", "status", f"{out}3"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scheduler", "tcp://x"], "--engine dask"),
        (["--engine", "dask"], "--scheduler tcp"),
        (["--engine", "ray", "--workers", "2"], "has its own"),
        (["--n-components", "64"], "no effect"),
    ],
)
def test_options_that_do_not_fit_are_refused(table, tmp_path, capsys, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    assert main(["batch", "encode", str(table), "-o", "out/", *options]) == 1
    assert said in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["in"]


@pytest.mark.parametrize(
    "wrong", [["--shard", "3/2"], ["--shard", "0/2"], ["--shard-size", "0"], ["--engine", "x"]]
)
def test_options_that_make_no_sense_are_not_understood(table, wrong):
    with pytest.raises(SystemExit):
        main(["batch", "encode", str(table), "-o", "out/", *wrong])


def test_predict_writes_parts_to_a_folder(table, tmp_path, capsys):
    labels = [f"c{len(tree) % 2}" for tree in TREES]
    classifier = TreeClassifier(decay=0.4, C=1).fit(TREES, labels)
    classifier.save(tmp_path / "model")
    assert (
        main(["batch", "predict", str(tmp_path / "model"), str(table), "-o", f"{tmp_path}/out/", "--scores"])
        == 0
    )
    (path,) = (tmp_path / "out").glob("part-*")
    found = pa.ipc.open_file(str(path)).read_all()
    assert found.column_names == ["predicted", "scores", "id"]
    assert found["predicted"].to_pylist() == classifier.predict(TREES).tolist()
    assert main(["info", f"{tmp_path}/out"]) == 0
    assert "a folder of predictions" in capsys.readouterr().out


def test_dups_writes_a_table_to_a_folder(table, tmp_path, capsys):
    out = f"{tmp_path}/out/"
    (tmp_path / "in" / "others.mrg").write_text("\n".join(TREES[:7]))
    command = ["batch", "dups", f"{tmp_path}/in", "-o", out, "--min-nodes", "5", "--threshold", "0.3"]
    for share in ("1/2", "2/2", "2/2"):
        assert main([*command, "--shard-size", "1k", "--shard", share]) == 0
    assert main(["batch", "status", out]) == 1
    assert "this share is done; when all shares are, run them once more" in capsys.readouterr().out
    assert main([*command, "--shard", "1/2"]) == 0
    groups = find_duplicates([*TREES[:7], *TREES], min_nodes=5, threshold=0.3)  # by the names of the files
    members = [i for group in groups for i in group.members]
    assert f"{out}duplicates.arrow: {len(groups)} groups of {len(members)} trees" in capsys.readouterr().out
    assert len(groups) == 7
    found = pa.ipc.open_file(f"{out}duplicates.arrow").read_all()
    assert found["row"].to_pylist() == members
    assert main(["batch", "status", out]) == 0
    assert main(["info", out]) == 0
    assert "a folder of near-duplicates" in capsys.readouterr().out


def test_dups_tells_of_bad_trees_and_of_limits(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.modules["treedot.clones.similarity"], "MAX_SIMILAR", 2)
    trees = [f"(f (a x) (b y) (c z) (d u) (e v) w{k})" for k in range(9)]
    (tmp_path / "t.jsonl").write_text("".join(f'{{"text": "{tree}"}}\n' for tree in [*trees, "(A"]))
    command = [
        "batch",
        "dups",
        f"{tmp_path}/t.jsonl",
        "-o",
        f"{tmp_path}/out/",
        "--min-nodes",
        "5",
        "--column",
        "text",
    ]
    assert main(command) == 1
    assert "t.jsonl:10" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "out")
    assert main([*command, "--skip-bad"]) == 0
    said = capsys.readouterr().err
    assert "left out 1 bad tree(s)" in said
    assert "found too many near-duplicates of 6 trees" in said
    assert "raise --threshold" in said


@pytest.mark.parametrize("options", [["code.py"], ["trees.tsv", "--format", "python"]])
def test_dups_refuses_source_code(table, tmp_path, capsys, monkeypatch, options):
    (tmp_path / "in" / "code.py").write_text("x = 1")
    monkeypatch.chdir(tmp_path / "in")
    assert main(["batch", "dups", *options, "-o", "out/"]) == 1
    assert f"{options[0]} is source code: use treedot dups" in capsys.readouterr().err
    assert sorted(os.listdir(".")) == ["code.py", "trees.tsv"]


def test_dups_takes_the_format_and_the_unit_of_its_files(tmp_path, capsys):
    (tmp_path / "a.txt").write_text('[{"k": [1, 2, 3]}, {"k": [1, 2, 3]}]')
    options = ["-o", f"{tmp_path}/out", "--min-nodes", "2", "--format", "json", "--unit", "record"]
    assert main(["batch", "dups", f"{tmp_path}/a.txt", *options]) == 0
    assert main(["batch", "status", f"{tmp_path}/out"]) == 0
    assert "parts are finished, with 2 rows" in capsys.readouterr().out


def test_a_full_disk_is_named_and_the_next_run_goes_on(table, tmp_path, capsys):
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        options = ["batch", "encode", str(table), "-o", f"{disk}/out/", "--shard-size", "2k"]
        assert main(options) == 1
        assert "No space left on device" in capsys.readouterr().err
        found = batch.status(disk / "out")
        assert 0 < len(found.missing) < found.parts
        assert not [name for name in os.listdir(disk / "out") if name.startswith(".")]
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        assert main(options) == 0
        assert (load_vectors(disk / "out").matrix != FragmentVectorizer().transform(TREES)).nnz == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)
