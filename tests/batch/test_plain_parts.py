"""Parts, plans and checkpoints are plain files: a pipe in the place of one is never waited for."""

import os

import pytest

import treedot as td
from strategies import random_forest
from treedot import batch
from treedot.batch.checkpoint import read_json
from treedot.batch.pair_index import ARRAYS, PairIndex, file_digests
from treedot.cli import main
from treedot.vectors.parts import read_plan

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes"),
    pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="the system has no such device"),
]

FOREST = random_forest(0, 12, 10)


def put(kind, path):
    """Let a path be a pipe that nobody writes to, or a link to a device that never ends."""
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_folder_of_parts_that_holds_no_plain_file_is_refused(tmp_path, capsys, kind):
    FOREST.write_brackets(tmp_path / "t.mrg")
    vectorizer, out = td.FragmentVectorizer(n_features=2**10), tmp_path / "out"
    batch.plan_encode(tmp_path / "t.mrg", out, vectorizer)
    assert batch.do_shard(str(out), 0).error == ""
    (part,) = out.glob("part-*")
    put(kind, part)
    with pytest.raises(td.errors.SourceError, match=rf"part-.*: it is a {kind}, not a plain file"):
        td.load_vectors(out)
    assert batch.status(out).missing == [part.name]
    assert "it is not a plain file" in batch.do_shard(str(out), 0).error
    put(kind, out / "_treedot.json")
    with pytest.raises(td.errors.SourceError, match=rf"_treedot\.json: it is a {kind}, not a plain file"):
        read_plan(out)
    assert main(["info", str(out)]) == 1
    assert "_treedot.json" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_files_of_a_search_for_duplicates_that_are_no_plain_files_are_made_anew_or_refused(tmp_path, kind):
    sizes = dict.fromkeys(ARRAYS, 8)
    put(kind, tmp_path / "elements.bin")
    assert file_digests(tmp_path) == {}
    with pytest.raises(td.errors.SourceError, match=rf"elements\.bin: it is a {kind}, not a plain file"):
        PairIndex.load(tmp_path, sizes)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_files_of_a_training_that_are_no_plain_files_are_refused(tmp_path, kind):
    for name in ("facts.json", "request.json"):
        put(kind, tmp_path / name)
        with pytest.raises(td.errors.SourceError, match=rf"{name}.* not a plain file"):
            read_json(tmp_path / name)
