"""Stored files are plain files: a pipe is never waited for, and a device is never read."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import treedot as td
from strategies import random_forest
from treedot import batch
from treedot._storage.files import open_plain
from treedot.cli import main
from treedot.cli.facts import file_facts
from treedot.clones.baseline import read_baseline
from treedot.models.model_folder import read_model

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes"),
    pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="the system has no such device"),
]

FOREST = random_forest(0, 12, 10)
READERS = {
    "x.index": [td.TreeIndex.open, td.load_vectors],
    "v.npy": [td.load_vectors],
    "v.npz": [td.load_vectors],
    "v.parquet": [td.load_vectors, td.Forest.load],
    "v.arrow": [td.load_vectors, td.Forest.load],
    "v.feather": [td.Forest.load],
    "v.vectorizer": [td.FragmentVectorizer.load],
    "baseline.json": [read_baseline],
}


def put(kind, path):
    """Let a path be a pipe that nobody writes to, or a link to a device that never ends."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_plain_file_is_refused_by_its_name(tmp_path, name, kind):
    put(kind, tmp_path / name)
    for read in READERS[name]:
        with pytest.raises(td.errors.SourceError, match=rf"{name}: it is a {kind}, not a plain file"):
            read(tmp_path / name)
    if name != "baseline.json":
        assert main(["info", str(tmp_path / name)]) == 1
    if name == "x.index":
        assert main(["search", str(tmp_path / name), "def f(): pass"]) == 1
    if name == "baseline.json":
        assert main(["dups", str(tmp_path), "--baseline", str(tmp_path / name)]) == 2


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("member", ["config.json", "weights.safetensors"])
def test_a_model_that_holds_no_plain_file_is_refused(tmp_path, capsys, member, kind):
    td.TreeClassifier(decay=0.4, C=1).fit(FOREST, ["a", "b"] * 6).save(tmp_path / "m")
    FOREST.write_brackets(tmp_path / "t.mrg")
    put(kind, tmp_path / "m" / member)
    with pytest.raises(td.errors.SourceError, match=rf"m: {member} is missing, or is not a plain file"):
        read_model(tmp_path / "m")
    for command in (["info", "m"], ["predict", "m", "t.mrg"]):
        assert main([command[0], *(str(tmp_path / name) for name in command[1:])]) == 1
        assert member in capsys.readouterr().err
    with pytest.raises(td.errors.SourceError, match=r"cannot write .*m: it exists"):
        td.TreeClassifier(decay=0.4, C=1).fit(FOREST, ["a", "b"] * 6).save(tmp_path / "m")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_plain_file_is_not_cut_into_shards(tmp_path, kind):
    for name in ("t.mrg", "t.tsv", "t.parquet", "t.arrow"):
        put(kind, tmp_path / name)
        with pytest.raises(td.errors.SourceError, match=rf"{name}: it is a {kind}, not a plain file"):
            batch.plan_encode(tmp_path / name, tmp_path / "out", td.FragmentVectorizer())


@pytest.mark.slow
def test_trees_may_come_from_a_pipe(tmp_path):
    trees = "(S (NP Ann) (VP runs))\n(S (NP Bob) (VP sits))\n"
    read, write = os.pipe()
    with os.fdopen(write, "w") as file:
        file.write(trees)
    command = [sys.executable, "-m", "treedot", "info", "--json"]
    done = subprocess.run([*command, f"/dev/fd/{read}"], pass_fds=[read], capture_output=True, text=True)
    os.close(read)
    assert json.loads(done.stdout)["trees"] == 2, done.stderr
    done = subprocess.run([*command, "/dev/stdin"], input=trees, capture_output=True, text=True)
    assert json.loads(done.stdout)["trees"] == 2, done.stderr


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="the system has no such folder")
def test_a_plain_file_among_devices_is_described_as_what_it_is():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        vectorizer = td.FragmentVectorizer()
        td.save_vectors(os.path.join(folder, "v.npz"), vectorizer.transform(FOREST), vectorizer)
        assert file_facts(Path(folder, "v.npz"))["file"] == "sparse rows"


def test_a_link_to_a_plain_file_is_opened(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").symlink_to("a")
    with open_plain(tmp_path / "b") as file:
        assert file.read() == b"x"
    with pytest.raises(td.errors.SourceError, match="it is a folder, not a plain file"):
        open_plain(tmp_path)
