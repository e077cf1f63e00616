"""Folders of parts: the same bytes by any engine, at any time, in any number of runs."""

import csv
import errno
import gzip
import json
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("pyarrow.dataset")

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    LinearModel,
    TreeClassifier,
    batch,
    load_vectors,
)
from treedot._storage.safetensors import write_arrays
from treedot._storage.seals import is_whole
from treedot.batch import Reading, part_file, plan
from treedot.errors import IncompleteError, ParameterError, SourceError, SpecMismatchError
from treedot.kernels.word_vectors import WordVectors
from treedot.readers.ranges import split_file
from treedot.trees.arrow import pa, typed_columns
from treedot.vectors.parts import DIGEST_KEY, SOURCE_KEY

SPARSE = FragmentVectorizer(n_features=2**12)
DENSE = DistributedTreeVectorizer(n_components=256)
TREES = [str(tree) for tree in random_forest(0, 200)]


@pytest.fixture
def table(tmp_path):
    """Return a table that is cut into several shards."""
    path = tmp_path / "trees.tsv"
    path.write_text("tree\tid\n" + "".join(f"{tree}\t{i}\n" for i, tree in enumerate(TREES)))
    return path


@pytest.fixture
def pool():
    """Return threads, which are an engine too."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


def parts(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def size_for(path, shards):
    return path.stat().st_size // shards


def plain(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


@pytest.mark.parametrize(
    "vectorizer",
    [
        SPARSE,
        DENSE,
        FragmentVectorizer(n_features=2**12, rest="dense", rest_size=256),
        FragmentVectorizer(n_features=None).fit(TREES),
        FragmentVectorizer(n_features=2**12, idf=True).fit(TREES),
    ],
    ids=["sparse", "dense", "with a rest", "dictionary", "idf"],
)
def test_a_folder_of_parts_holds_the_rows_of_the_file(table, tmp_path, pool, vectorizer):
    done = batch.encode(table, tmp_path / "out", vectorizer, pool, shard_size=size_for(table, 4))
    assert done == batch.Done(made=len(parts(tmp_path / "out")), found=0, rows=200, skipped=0)
    assert done.made >= 4
    found, expected = load_vectors(tmp_path / "out"), vectorizer.transform(table)
    assert (plain(found.matrix) == plain(expected)).all()
    assert found.matrix.dtype == expected.dtype
    assert found.columns == {"id": [str(i) for i in range(200)]}
    assert found.fingerprint == getattr(vectorizer, "fingerprint", vectorizer.spec.fingerprint)
    assert sum(len(load_vectors(path)) for path in (tmp_path / "out").glob("*.arrow")) == 200


def test_word_vectors_are_kept_beside_the_parts(tmp_path, pool):
    path, words = tmp_path / "trees.mrg", {"dog": [3, 4], "cat": [4, 3]}
    path.write_text("(S dog::n)\n(S cat::n)\n")
    vectorizer = DistributedTreeVectorizer(n_components=256, kernel="smoothed", similarity=words)
    count = batch.plan_encode(path, tmp_path / "out", vectorizer)
    assert [batch.do_shard(str(tmp_path / "out"), k).error for k in range(count)] == [""]
    found = load_vectors(tmp_path / "out")
    assert (found.matrix == vectorizer.transform(path)).all()
    assert found.matrix[0] @ found.matrix[1] > 0.9
    assert found.spec == vectorizer.spec
    other = DistributedTreeVectorizer(n_components=256, kernel="smoothed", similarity={"dog": [1]})
    with pytest.raises(SpecMismatchError, match="another folder"):
        batch.encode(path, tmp_path / "out", other, pool)


def test_a_plan_stores_one_thread_since_there_is_a_process_per_core(table, tmp_path):
    batch.plan_encode(table, tmp_path / "out", FragmentVectorizer(n_features=2**12, n_jobs=4))
    assert FragmentVectorizer.load(tmp_path / "out" / "_vectorizer").n_jobs == 1


def test_a_damaged_vectorizer_in_a_folder_is_written_again(table, tmp_path, pool):
    out, learned = tmp_path / "out", FragmentVectorizer(n_features=2**12, idf=True).fit(TREES)
    batch.encode(table, out, learned, pool)
    whole = (out / "_vectorizer").read_bytes()
    for data in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        (out / "_vectorizer").write_bytes(data)
        for part in out.glob("part-*"):
            part.unlink()
        batch.encode(table, out, learned, pool)
        assert (out / "_vectorizer").read_bytes() == whole


@pytest.mark.parametrize("damaged", [{}, WordVectors({"dog": [1, 2]}).arrays()])
def test_damaged_word_vectors_beside_the_parts_are_named(damaged, tmp_path):
    path, words = tmp_path / "trees.mrg", {"dog": [3, 4], "cat": [4, 3]}
    path.write_text("(S dog::n)\n")
    batch.plan_encode(
        path,
        tmp_path / "out",
        DistributedTreeVectorizer(n_components=256, kernel="smoothed", similarity=words),
    )
    write_arrays(tmp_path / "out" / "_vectorizer", {}, damaged)
    error = batch.do_shard(str(tmp_path / "out"), 0).error
    assert str(tmp_path / "out" / "_vectorizer is damaged") in error


@pytest.mark.slow
def test_every_way_gives_the_same_bytes(table, tmp_path, pool):
    size = size_for(table, 3)
    batch.encode(table, tmp_path / "a", SPARSE, pool, shard_size=size)
    expected = parts(tmp_path / "a")
    batch.encode(table, tmp_path / "b", SPARSE.set_params(n_jobs=2), workers=1, shard_size=size)
    for k in (2, 1, 3):
        batch.encode(table, tmp_path / "c", SPARSE, pool, share=(k, 3), shard_size=size)
    count = batch.plan_encode(table, tmp_path / "d", SPARSE, shard_size=size)
    assert [batch.do_shard(str(tmp_path / "d"), k).error for k in reversed(range(count))] == [""] * count
    for folder in "bcd":
        assert parts(tmp_path / folder) == expected
        assert sorted(os.listdir(tmp_path / folder)) == ["_treedot.json", "_vectorizer", *sorted(expected)]


def test_patterns_folders_and_files_are_inputs(tmp_path, pool):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("b.mrg", "a.mrg", "deep/c.mrg"):
        (tmp_path / "in" / name).write_text(TREES[0])
    (tmp_path / "in" / "notes.md").write_text("nothing")
    out = tmp_path / "in" / "out"
    asked = [tmp_path / "in" / "a.mrg", str(tmp_path / "in" / "[ab].mrg"), tmp_path / "in"]
    assert batch.encode(asked, out, SPARSE, pool).rows == 3
    plan = json.loads((out / "_treedot.json").read_text())
    assert [os.path.basename(path) for path, _, _ in plan["inputs"]] == ["a.mrg", "b.mrg", "c.mrg"]
    assert batch.encode(asked, out, SPARSE, pool) == batch.Done(made=0, found=3, rows=3, skipped=0)
    for wrong in ("-", tmp_path / "none*.mrg", tmp_path / "none.mrg", []):
        with pytest.raises((SourceError, ParameterError)):
            batch.encode(wrong, tmp_path / "other", SPARSE, pool)
    assert not (tmp_path / "other").exists()


def test_columns_of_tables_come_along_with_their_types(tmp_path, pool):
    table = pa.table({"tree": TREES[:9], "n": pa.array(range(9), pa.int16()), "nothing": pa.nulls(9)})
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as file:
        file.write_table(table, max_chunksize=4)
    batch.encode(tmp_path / "t.arrow", tmp_path / "out", SPARSE, pool, shard_size=1)
    names = sorted(os.listdir(tmp_path / "out"))[2:]
    assert len(names) == 3
    first = pa.ipc.open_file(str(tmp_path / "out" / names[0])).read_all()
    assert first.schema.names == ["indices", "values", "n", "nothing"]
    assert first.schema.field("n").type == pa.int16()
    assert load_vectors(tmp_path / "out").columns == {"n": list(range(9)), "nothing": [None] * 9}


def test_a_part_says_of_what_it_was_made(table, tmp_path, pool):
    batch.encode(table, tmp_path / "out", SPARSE, pool, shard_size=10**9)
    (name,) = parts(tmp_path / "out")
    file = pa.ipc.open_file(str(tmp_path / "out" / name))
    source = json.loads(file.schema.metadata[SOURCE_KEY])
    assert source["path"] == str(table)
    assert (source["begin"], source["end"]) == (0, table.stat().st_size)
    _, said = file.get_batch_with_custom_metadata(file.num_record_batches - 1)
    said = dict(said)
    assert (said[part_file.ROWS_KEY], said[part_file.TREES_KEY]) == (b"200", b"200")
    assert is_whole(tmp_path / "out" / name, said[DIGEST_KEY])


def test_a_run_goes_on_where_it_was(table, tmp_path, pool):
    out, size = tmp_path / "out", size_for(table, 5)
    batch.encode(table, out, SPARSE, pool, shard_size=size)
    expected = parts(out)
    gone, cut, other, *kept = expected
    (out / gone).unlink()
    (out / cut).write_bytes(expected[cut][:-20])
    (out / other).write_bytes(expected[cut])  # of another shard
    (out / f".{gone}.0123456789abcdef.part").write_bytes(b"left by a process that was killed")
    before = {name: (out / name).stat().st_ino for name in kept}
    assert batch.status(out).missing == [gone, cut, other]
    done = []
    again = batch.encode(table, out, SPARSE, pool, on_done=lambda *outcome: done.append(outcome))
    assert [(outcome.error, total) for outcome, total in done] == [("", 3)] * 3
    assert (again.made, again.rows) == (3, 200)
    assert parts(out) == expected
    assert {name: (out / name).stat().st_ino for name in kept} == before
    assert len(os.listdir(out)) == len(expected) + 2


def damaged(whole, random):
    """Return bytes with damage of each kind at random places."""
    for place in random.integers(0, len(whole), 10).tolist():
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(random.integers(8))
        page = place // 512 * 512
        yield bytes(flipped)
        yield whole[:page] + bytes(len(whole[page : page + 512])) + whole[page + 512 :]
        yield whole[:place]
    yield b""


def test_a_damaged_part_is_never_believed_and_is_made_again(table, tmp_path, pool):
    out = tmp_path / "out"
    batch.encode(table, out, SPARSE, pool, shard_size=size_for(table, 3))
    expected, random = parts(out), np.random.default_rng(0)
    name = list(expected)[1]
    for data in damaged(expected[name], random):
        if data == expected[name]:  # zeros were zeroed
            continue
        (out / name).write_bytes(data)
        assert batch.status(out).missing == [name]
        with pytest.raises(SourceError, match=name):
            load_vectors(out)
        assert batch.encode(table, out, SPARSE, pool).made == 1
        assert parts(out) == expected


def test_a_part_of_another_plan_is_not_believed(table, tmp_path, pool):
    TreeClassifier(decay=0.4, C=1).fit(TREES, ["a", "b"] * 100).save(tmp_path / "model")
    for name, scores in (("plain", False), ("scored", True)):
        batch.predict(table, tmp_path / name, tmp_path / "model", pool, scores=scores)
    (name,) = parts(tmp_path / "plain")
    shutil.copy(tmp_path / "plain" / name, tmp_path / "scored" / name)
    assert batch.status(tmp_path / "scored").missing == [name]


def test_parts_that_were_swapped_are_not_read(table, tmp_path, pool):
    out = tmp_path / "out"
    batch.encode(table, out, SPARSE, pool, shard_size=size_for(table, 3))
    expected = parts(out)
    first, second, *_ = expected
    (out / first).write_bytes(expected[second])
    with pytest.raises(SourceError, match=f"{first} was made from another file or with other settings"):
        load_vectors(out)


def as_older_versions_wrote_it(folder):
    """Rewrite the plan and the parts of a folder without digests."""
    plan = json.loads((folder / "_treedot.json").read_text())
    del plan["checksum"]
    (folder / "_treedot.json").write_text(json.dumps(plan))
    for path in folder.glob("part-*"):
        with pa.ipc.open_file(path.read_bytes()) as file:
            metadata = dict(file.schema.metadata)
            del metadata[part_file.PLAN_KEY]
            schema, count = file.schema.with_metadata(metadata), file.num_record_batches
            last, said = file.get_batch_with_custom_metadata(count - 1)
            batches = [*(file.get_batch(k) for k in range(count - 1)), last]
        said = {key: value for key, value in dict(said).items() if key != DIGEST_KEY}
        with pa.ipc.new_file(str(path), schema) as file:
            for batch in batches[:-1]:
                file.write_batch(batch.replace_schema_metadata(metadata))
            file.write_batch(batches[-1].replace_schema_metadata(metadata), custom_metadata=said)


def test_a_folder_of_an_older_version_is_read_and_resumed(table, tmp_path, pool):
    out, how = tmp_path / "out", {"shard_size": size_for(table, 3)}
    batch.encode(table, out, SPARSE, pool, **how)
    expected = plain(load_vectors(out).matrix)
    as_older_versions_wrote_it(out)
    assert batch.status(out).missing == []
    assert (plain(load_vectors(out).matrix) == expected).all()
    first, second, *_ = parts(out)
    (out / first).unlink()
    (out / second).write_bytes(b"ARROW1")
    assert batch.encode(table, out, SPARSE, pool, **how).made == 2
    assert (plain(load_vectors(out).matrix) == expected).all()


def test_a_plan_with_a_changed_byte_is_refused(table, tmp_path, pool):
    out = tmp_path / "out"
    batch.encode(table, out, SPARSE, pool, shard_size=size_for(table, 3))
    path = out / "_treedot.json"
    for data in damaged(path.read_bytes(), np.random.default_rng(0)):
        path.write_bytes(data)
        with pytest.raises(SourceError, match=r"damaged.*: delete the folder, and make it again"):
            batch.status(out)


def test_other_settings_and_changed_inputs_are_refused(table, tmp_path, pool):
    out, before = tmp_path / "out", table.read_text()
    batch.encode(table, out, SPARSE, pool)
    expected = parts(out)
    for part in out.glob("part-*"):
        part.unlink()
    with pytest.raises(SpecMismatchError, match="another folder"):
        batch.encode(table, out, FragmentVectorizer(n_features=2**13), pool)
    with pytest.raises(ParameterError, match="other settings"):
        batch.encode(table, out, SPARSE, pool, reading=Reading(skip_bad=True))
    with pytest.raises(ParameterError, match="shard_size"):
        batch.encode(table, out, SPARSE, pool, shard_size=1000)
    shutil.copy(table, tmp_path / "second.tsv")
    with pytest.raises(ParameterError, match=r"second\.tsv"):
        batch.encode([table, tmp_path / "second.tsv"], out, SPARSE, pool)
    stat = table.stat()
    table.write_text(before + "(A b)\tnew\n")
    with pytest.raises(SourceError, match=r"trees\.tsv has changed"):
        batch.encode(table, out, SPARSE, pool)
    assert "has changed" in batch.do_shard(str(out), 0).error
    table.unlink()
    with pytest.raises(SourceError, match=r"cannot open .*trees\.tsv"):
        batch.encode(table, out, SPARSE, pool)
    assert parts(out) == {}
    table.write_text(before)
    os.utime(table, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    batch.encode(table, out, SPARSE, pool)
    assert parts(out) == expected


def test_folders_with_other_things_are_refused(table, tmp_path, pool):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("")
    with pytest.raises(SourceError, match=r"thesis\.tex"):
        batch.encode(table, tmp_path / "out", SPARSE, pool)
    with pytest.raises(SourceError, match="not a folder"):
        batch.encode(table, table, SPARSE, pool)
    with pytest.raises(SourceError, match="does not exist"):
        batch.encode(table, tmp_path / "no" / "out", SPARSE, pool)
    with pytest.raises(SourceError, match="not a folder of parts"):
        load_vectors(tmp_path)


def test_a_shard_that_fails_is_named_and_the_others_are_finished(tmp_path, pool):
    for name in "abc":
        (tmp_path / f"{name}.mrg").write_text("\n".join(TREES[:5]))
    (tmp_path / "b.mrg").write_text("(A b)\n(B (")
    out = tmp_path / "out"
    with pytest.raises(IncompleteError, match=r"1 of 3 shards failed.*b\.mrg.*b\.mrg:2:1 \(tree 2\)"):
        batch.encode(tmp_path / "*.mrg", out, SPARSE, pool)
    assert len(parts(out)) == 2
    (name,) = batch.status(out).missing
    assert "never closed" in batch.status(out).failed[name]
    with pytest.raises(SourceError, match="1 of 3 parts are missing"):
        load_vectors(out)
    shutil.rmtree(out)
    done = batch.encode(tmp_path / "*.mrg", out, SPARSE, pool, reading=Reading(skip_bad=True))
    assert (done.rows, done.skipped) == (11, 1)


def test_a_failure_that_is_mended_leaves_no_trace(table, tmp_path, pool, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("treedot.batch.work.iter_range", lambda *_: 1 / 0)
        with pytest.raises(IncompleteError, match="ZeroDivisionError"):
            batch.encode(table, out, SPARSE, pool)
    assert [name for name in os.listdir(out) if name.startswith("_failed")]
    batch.encode(table, out, SPARSE, pool)
    assert sorted(os.listdir(out))[:2] == ["_treedot.json", "_vectorizer"]
    assert len(os.listdir(out)) == 3


def test_a_column_with_the_name_of_what_is_made_is_refused(tmp_path, pool):
    (tmp_path / "t.tsv").write_text("tree\tvalues\n(A b)\t1\n")
    with pytest.raises(IncompleteError, match=r"rename the column.*values"):
        batch.encode(tmp_path / "t.tsv", tmp_path / "out", SPARSE, pool)


def test_files_without_trees_become_parts_without_rows(tmp_path, pool):
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "full.py").write_text("def f(x): return x\n")
    assert batch.encode(tmp_path / "*.py", tmp_path / "out", SPARSE, pool).rows == 1
    assert load_vectors(tmp_path / "out").matrix.shape == (1, 2**12)


@pytest.mark.parametrize("name", ["a.mrg", "a.tsv", "a.csv", "a.jsonl", "a.mrg.gz"])
def test_an_empty_file_becomes_a_part_without_rows(tmp_path, pool, name):
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    (tmp_path / "b.mrg").write_text(TREES[0])
    done = batch.encode([tmp_path / name, tmp_path / "b.mrg"], tmp_path / "out", SPARSE, pool)
    assert (done.made, done.rows) == (2, 1)


def test_parts_without_rows_have_the_columns_of_the_others(tmp_path, pool):
    lines = [
        json.dumps({"tree": tree, "n": k, "x": k / 2, "who": {"name": "Ann"}}) for k, tree in enumerate(TREES)
    ]
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / "b.jsonl").write_text("\n".join([*['{"tree": "(A"}'] * 99, *lines]))
    (tmp_path / "c.jsonl").write_text('{"tree": "(A b)", "more": "yes", "x": 3}\n')
    skip = Reading(skip_bad=True)
    done = batch.encode(tmp_path / "*.jsonl", tmp_path / "out", SPARSE, pool, shard_size=900, reading=skip)
    assert (done.rows, done.skipped) == (201, 99)
    schemas = [pa.ipc.open_file(str(path)).schema for path in sorted((tmp_path / "out").glob("part-*"))]
    *alike, last = (dict(zip(schema.names, schema.types, strict=True)) for schema in schemas)
    assert all(types == alike[0] for types in alike)
    assert last == {**alike[0], "more": pa.string()}
    assert alike[0]["n"] == pa.int64()
    table = pa.dataset.dataset(tmp_path / "out", format="ipc", exclude_invalid_files=True).to_table()
    assert table["n"].to_pylist() == [*range(200), None]
    assert table["x"].to_pylist() == [*(k / 2 for k in range(200)), 3.0]


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_without_a_tree_are_left_out_wherever_they_stand(tmp_path, pool, shards):
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": 1}\n' + f'{{"tree": "{TREES[0]}"}}\n' + '{"id": 2}\n' * 5)
    settings = {"shard_size": size_for(path, shards)}
    done = batch.encode(path, tmp_path / "out", SPARSE, pool, reading=Reading(skip_bad=True), **settings)
    assert (done.rows, done.skipped) == (1, 6)
    with pytest.raises(IncompleteError, match=r"t\.jsonl:1: there is no column 'tree'; choose one of 'id'"):
        batch.encode(path, tmp_path / "other", SPARSE, pool, **settings)


def test_the_first_version_of_feather_is_refused(tmp_path, pool):
    (tmp_path / "t.feather").write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(SourceError, match="is Feather V1, which cannot be cut"):
        batch.encode(tmp_path / "t.feather", tmp_path / "out", SPARSE, pool)


def test_errors_of_the_system_are_told_without_numbers(table, tmp_path, pool, monkeypatch):
    missing = tmp_path / "none.parquet"
    missing.symlink_to(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"cannot open .*none\.parquet: no such file or folder$"):
        batch.encode(missing, tmp_path / "out", SPARSE, pool)
    with pytest.raises(SourceError, match=r"cannot open .*nowhere\.arrow: no such file or folder$"):
        split_file(str(tmp_path / "nowhere.arrow"), None, 1)
    batch.plan_encode(table, tmp_path / "out", SPARSE)
    too_many = OSError(errno.EMFILE, os.strerror(errno.EMFILE), "trees.tsv")
    monkeypatch.setattr("treedot.batch.work.iter_range", mock.Mock(side_effect=too_many))
    assert "[Errno" not in batch.do_shard(str(tmp_path / "out"), 0).error


def test_a_folder_whose_name_is_not_utf8_is_refused(table, tmp_path, pool):
    out = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(ParameterError, match="not UTF-8"):
        batch.encode(table, out, SPARSE, pool)
    assert not out.exists()


def test_large_trees_are_encoded_a_few_at_a_time(table, tmp_path, pool, monkeypatch):
    batch.encode(table, tmp_path / "a", SPARSE, pool)
    monkeypatch.setattr("treedot.batch.work.NODES_AT_A_TIME", 30)
    batch.encode(table, tmp_path / "b", SPARSE, pool)
    (one,), (other,) = ((tmp_path / name).glob("part-*") for name in "ab")
    assert pa.ipc.open_file(str(other)).num_record_batches > pa.ipc.open_file(str(one)).num_record_batches
    assert (load_vectors(one).matrix != load_vectors(other).matrix).nnz == 0


def test_label_tables_of_workers_are_small(table, tmp_path, monkeypatch):
    from treedot.batch import shard
    from treedot.vectors.dense.label_table import LabelTable

    made, draw = [], LabelTable._draw
    monkeypatch.setattr(LabelTable, "_draw", lambda self, *x: (made.append(self), draw(self, *x))[1])
    monkeypatch.setattr(shard, "LABEL_BYTES", 30 * 256 * 12)
    product = DistributedTreeVectorizer(n_components=256, composition="product")
    batch.plan_encode(table, tmp_path / "out", product)
    assert batch.do_shard(str(tmp_path / "out"), 0).rows == 200
    assert {each.capacity for each in made} == {30}
    assert (load_vectors(tmp_path / "out").matrix == product.transform(TREES)).all()


def test_of_two_runs_that_plan_one_folder_at_once_the_second_uses_or_refuses_the_first_plan(
    table, tmp_path, monkeypatch
):
    make, others = plan.Plan.make, []

    def make_slowly(*arguments):
        monkeypatch.setattr(plan.Plan, "make", make)
        others.append(pool.submit(batch.plan_encode, table, tmp_path / "out", DENSE))
        others.append(pool.submit(batch.plan_encode, table, tmp_path / "out", SPARSE))
        time.sleep(0.3)  # in which the others would write a plan of their own
        return make(*arguments)

    monkeypatch.setattr(plan.Plan, "make", make_slowly)
    with ThreadPoolExecutor(2) as pool:
        count = batch.plan_encode(table, tmp_path / "out", SPARSE)
        with pytest.raises(SpecMismatchError, match="parts with other settings"):
            others[0].result(60)
        assert others[1].result(60) == count
    assert batch.do_shard(str(tmp_path / "out"), 0).error == ""


def test_a_damaged_plan_is_refused(table, tmp_path, pool):
    batch.encode(table, tmp_path / "out", SPARSE, pool)
    plan = tmp_path / "out" / "_treedot.json"
    whole = json.loads(plan.read_text())
    for damaged in ({**whole, "version": 2}, {**whole, "shards": 3}, {**whole, "inputs": [[1]]}, []):
        plan.write_text(json.dumps(damaged))
        with pytest.raises(SourceError, match="damaged"):
            batch.status(tmp_path / "out")
    plan.write_text(json.dumps({**whole, "work": {**whole["work"], "fingerprint": "another"}}))
    assert "damaged" in batch.do_shard(str(tmp_path / "out"), 0).error


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"share": (0, 3)}, "share must be"),
        ({"share": (4, 3)}, "share must be"),
        ({"share": (1,)}, "share must be"),
        ({"share": (1.5, 2)}, "share must be"),
        ({"share": None}, "share must be"),
        ({"workers": 0}, "workers must be at least 1, not 0"),
        ({"workers": -1}, "workers must be at least 1"),
        ({"shard_size": 0}, "shard_size must be at least 1, not 0"),
        ({"reading": Reading(column="parse")}, "which has no column 'parse'"),
        ({"reading": Reading(unit="record")}, "which has no unit 'record'"),
        ({"reading": Reading(unit="clause")}, "unit must be one of"),
        ({"reading": Reading(format="lisp")}, "unknown format 'lisp'"),
        ({"reading": None}, "reading must be a Reading, such as .* not None"),
        ({"reading": "tsv"}, "reading must be a Reading"),
    ],
)
@pytest.mark.parametrize("shards", [1, 2])
def test_what_makes_no_sense_is_refused_before_anything_is_planned(tmp_path, wrong, said, shards):
    source = tmp_path / "trees.mrg"
    source.write_text("\n".join(TREES))
    with pytest.raises(ParameterError, match=said):
        batch.encode(source, tmp_path / "out", SPARSE, **{"shard_size": size_for(source, shards), **wrong})
    assert not (tmp_path / "out").exists()


def test_a_unit_that_tables_do_not_have_is_refused(tmp_path, pool):
    pa.parquet.write_table(pa.table({"tree": TREES}), tmp_path / "t.parquet", row_group_size=50)
    with pytest.raises(ParameterError, match=r"t\.parquet is read as parquet, which has no unit 'record'"):
        batch.encode(tmp_path / "*.parquet", tmp_path / "out", SPARSE, pool, reading=Reading(unit="record"))


def test_a_shard_size_that_makes_no_sense_is_refused_by_a_folder_too(table, tmp_path, pool):
    batch.encode(table, tmp_path / "out", SPARSE, pool)
    with pytest.raises(ParameterError, match="shard_size"):
        batch.encode(table, tmp_path / "out", SPARSE, pool, shard_size=0)


def test_what_is_no_folder_to_write_to_is_refused(table):
    for out in (None, "a\0b"):
        with pytest.raises(ParameterError, match=f"out must be a path, not {re.escape(repr(out))}"):
            batch.encode(table, out, SPARSE)


def test_only_known_vectorizers_and_clients_are_taken(table, tmp_path):
    with pytest.raises(ParameterError, match="vectorizer must be"):
        batch.encode(table, tmp_path / "out", LinearModel)
    with pytest.raises(ParameterError, match="client must be"):
        batch.encode(table, tmp_path / "out", SPARSE, "tcp://somewhere")
    with ThreadPoolExecutor(1) as pool, pytest.raises(ParameterError, match="workers"):
        batch.encode(table, tmp_path / "out", SPARSE, pool, workers=2)


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_are_those_of_the_model(table, tmp_path, pool, classes):
    labels = [f"c{len(tree) % classes}" for tree in TREES]
    TreeClassifier(decay=0.4, C=1).fit(TREES, labels).save(tmp_path / "model")
    model = LinearModel.load(tmp_path / "model")
    size = size_for(table, 3)
    batch.predict(table, tmp_path / "a", tmp_path / "model", pool, scores=True, shard_size=size)
    shutil.rmtree(tmp_path / "model")  # a copy is in the folder
    paths = sorted((tmp_path / "a").glob("part-*"))
    found = pa.concat_tables([pa.ipc.open_file(str(path)).read_all() for path in paths])
    assert found["predicted"].to_pylist() == model.predict(TREES).tolist()
    assert found["id"].to_pylist() == [str(i) for i in range(200)]
    expected = model.decision_function(TREES).reshape(200, -1)
    assert np.allclose(found["scores"].to_pylist(), expected, atol=1e-6)
    with pytest.raises(SourceError, match="how its vectors were made"):
        load_vectors(tmp_path / "a")


PAIRS = {
    "text": TREES[:60],
    "id": [f"row {i}" for i in range(60)],
    "hypothesis": [*TREES[30:60], *TREES[:30]],
    "overlap": [i / 7 for i in range(60)],
    "note": [f"some words {i % 5}" for i in range(60)],
}


@pytest.fixture(scope="module")
def pair_model(tmp_path_factory):
    """Return the folder of a model of two trees, a number and a text."""
    model = TreeClassifier(
        tree_columns=["text", "hypothesis"], number_columns=["overlap"], text_columns=["note"],
        decay=0.4, C=1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("models") / "pairs"
    model.fit(PAIRS, [f"c{i % 3}" for i in range(60)]).save(folder)
    return folder


def write_pairs(path, rows):
    columns = {name: values[rows] for name, values in PAIRS.items()}
    lines = list(zip(*columns.values(), strict=True))
    if path.suffix in (".tsv", ".csv"):
        with path.open("w", newline="") as file:
            dialect = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if path.suffix == ".tsv" else {}
            csv.writer(file, **dialect).writerows([list(columns), *lines])
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(columns, line, strict=True))) + "\n" for line in lines))
    elif path.suffix == ".parquet":
        pa.parquet.write_table(pa.table(columns), path, row_group_size=8)
    else:
        with pa.ipc.new_file(str(path), pa.table(columns).schema) as file:
            file.write_table(pa.table(columns), max_chunksize=8)


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "parquet", "arrow"])
def test_a_model_of_named_columns_predicts_from_tables(tmp_path, pool, pair_model, suffix):
    for number, rows in enumerate((slice(0, 25), slice(25, 60))):
        write_pairs(tmp_path / f"{number}.{suffix}", rows)
    source, out = tmp_path / f"*.{suffix}", tmp_path / "out"
    done = batch.predict(source, out, pair_model, pool, scores=True, shard_size=1000)
    assert done.rows == 60
    assert done.made > (2 if suffix != "csv" else 1)
    found = pa.dataset.dataset(out, format="ipc", exclude_invalid_files=True).to_table().to_pydict()
    model = LinearModel.load(pair_model)
    assert found["predicted"] == model.predict(PAIRS).tolist()
    assert np.allclose(found["scores"], model.decision_function(PAIRS), atol=1e-6)
    assert found["id"] == PAIRS["id"]
    assert found["note"] == PAIRS["note"]
    assert list(map(float, found["overlap"])) == PAIRS["overlap"]
    assert not {"text", "hypothesis"} & found.keys()


def test_named_columns_that_are_missing_or_bad_are_told(tmp_path, pool, pair_model):
    with pytest.raises(ParameterError, match="from the columns text, hypothesis: remove column"):
        batch.predict(tmp_path, tmp_path / "out", pair_model, pool, reading=Reading(column="text"))
    source = tmp_path / "t.tsv"
    for cells, said in (
        ("text\thypothesis\tnote\n(A b)\t(A b)\tx\n", "there is no column 'overlap'"),
        (
            "text\thypothesis\toverlap\tnote\n(A b)\t(A b)\t1\tx\n(A b)\t(A\t1\tx\n",
            "row 2, column 'hypothesis'",
        ),
        ("text\thypothesis\toverlap\tnote\n(A b)\t(A b)\tmuch\tx\n", "'much' is not a finite number"),
    ):
        source.write_text(cells)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        with pytest.raises(IncompleteError, match=said):
            batch.predict(source, tmp_path / "out", pair_model, pool)


@pytest.mark.parametrize("suffix", ["tsv", "parquet"])
def test_a_bad_tree_in_any_column_costs_its_row_where_bad_ones_are_left_out(
    tmp_path, pool, pair_model, suffix, monkeypatch
):
    monkeypatch.setattr("treedot.batch.work.TREES_AT_A_TIME", 8)
    bad = {"text": [3, 20], "hypothesis": [0, 4, 20, *range(24, 40), 59]}
    with monkeypatch.context() as patch:
        for name, rows in bad.items():
            cells = ["(A" if i in rows else cell for i, cell in enumerate(PAIRS[name])]
            patch.setitem(PAIRS, name, cells)
        write_pairs(tmp_path / f"t.{suffix}", slice(0, 60))
    source, out = tmp_path / f"t.{suffix}", tmp_path / "out"
    done = batch.predict(source, out, pair_model, pool, reading=Reading(skip_bad=True))
    kept = [i for i in range(60) if i not in bad["text"] and i not in bad["hypothesis"]]
    assert done == batch.Done(made=1, found=0, rows=len(kept), skipped=60 - len(kept))
    found = pa.dataset.dataset(out, format="ipc", exclude_invalid_files=True).to_table().to_pydict()
    assert found["id"] == [PAIRS["id"][i] for i in kept]
    assert found["predicted"] == LinearModel.load(pair_model).predict(PAIRS)[kept].tolist()


def test_a_row_that_is_left_out_is_named_by_its_file_and_where_its_shard_begins(tmp_path, pool, pair_model):
    source, good, bad = tmp_path / "t.tsv", "(A b)\t(A b)\t1\tx\n", "(A b)\t(A\t1\tx\n"
    source.write_text("text\thypothesis\toverlap\tnote\n" + 4 * good + bad)
    reading, said = Reading(skip_bad=True), []
    batch.predict(
        source, tmp_path / "out", pair_model, pool, reading=reading, shard_size=60,
        on_done=lambda outcome, _: said.extend(outcome.messages),
    )  # fmt: skip
    (only,) = said
    begin, row = re.fullmatch(rf"{source} after line (\d+), row (\d+), column 'hypothesis' .*", only).groups()
    assert int(begin) > 1
    assert int(begin) + int(row) == 6


def test_no_rows_of_named_columns_are_a_part_without_rows(tmp_path, pool, pair_model):
    (tmp_path / "t.tsv").write_text("text\thypothesis\toverlap\tnote\tid\n")
    assert batch.predict(tmp_path / "t.tsv", tmp_path / "out", pair_model, pool, scores=True).rows == 0


def test_a_shard_that_does_not_fit_into_memory_is_told(table, tmp_path, monkeypatch):
    def too_much(*_, **__):
        raise MemoryError

    batch.plan_encode(table, tmp_path / "out", SPARSE)
    monkeypatch.setattr("treedot.batch.work.iter_range", too_much)
    assert batch.do_shard(str(tmp_path / "out"), 0).error == "MemoryError"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (-1, "there is no shard -1: there are 1, from 0"),
        (99, "there is no shard 99"),
        ("0", "the number of a shard must be an integer, not '0'"),
        (None, "must be an integer"),
    ],
)
def test_shards_that_are_not_there_are_told(table, tmp_path, number, said):
    batch.plan_encode(table, tmp_path / "out", SPARSE)
    outcome = batch.do_shard(str(tmp_path / "out"), number)
    assert said in outcome.error
    assert outcome.shard == number
    assert not list((tmp_path / "out").glob("_failed-*"))


@pytest.mark.parametrize("folder", [3, None, "a\0b"])
def test_what_is_no_path_is_told(tmp_path, folder):
    assert batch.do_shard(folder, 0).error == f"folder must be a path, not {folder!r}"
    with pytest.raises(ParameterError, match="folder must be a path"):
        batch.status(folder)
    with pytest.raises(ParameterError, match="paths must be a path or an iterable of paths"):
        batch.encode(folder, tmp_path / "out", SPARSE)


def test_names_of_vectors_are_taken_whatever_their_kind(tmp_path):
    (tmp_path / "t.tsv").write_text("tree\tvector\n(A b)\t1\n")
    batch.plan_encode(tmp_path / "t.tsv", tmp_path / "out", SPARSE)
    assert "rename the column(s) ['vector']" in batch.do_shard(str(tmp_path / "out"), 0).error


@pytest.mark.parametrize(("first", "then"), [(True, 5), (1, "7"), ({"a": 1}, {"b": 2}), ("x", True)])
def test_no_value_of_a_column_is_made_another_one(first, then):
    types = {name: array.type for name, array in typed_columns({"c": [first]}, 1, None).items()}
    with pytest.raises(SourceError, match=r"the column 'c' is of type .* before: convert it to one type"):
        typed_columns({"c": [then]}, 1, types)


def test_integers_become_floats_and_dictionaries_plain_values():
    assert typed_columns({"c": [1]}, 1, {"c": pa.float64()})["c"].to_pylist() == [1.0]
    assert typed_columns({"c": pa.array(["x"]).dictionary_encode()}, 1, None)["c"].type == pa.string()
