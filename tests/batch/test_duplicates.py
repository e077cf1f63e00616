"""Near-duplicates among the trees of many files are those that ``find_duplicates`` finds in memory."""

import errno
import json
import os
import random
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("pyarrow")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies import examples, random_forest
from treedot import Forest, Tree, batch, find_duplicates
from treedot.batch import Reading
from treedot.batch.pair_search import plan_pair_search
from treedot.errors import IncompleteError, ParameterError, SourceError, SpecMismatchError
from treedot.trees.arrow import pa

FIGURES = ("similarity", "agreement", "bits", "band")


def edited(tree: Tree, rng: random.Random) -> Tree:
    """Return the tree with another label somewhere below its root."""
    children = list(tree.children)
    k = rng.randrange(len(children))
    children[k] = Tree(f"e{rng.randrange(9)}", children[k].children)
    return Tree(tree.label, children)


def some_trees(seed: int, count: int) -> list[Tree]:
    """Return trees with copies and edited copies among them."""
    rng, trees = random.Random(seed), [*random_forest(seed, count, 30)]
    with_children = [tree for tree in trees if tree.children]
    trees += trees[::5] + [edited(tree, rng) for tree in with_children[::2]]
    rng.shuffle(trees)
    return trees


TREES = some_trees(0, 80)
LOW = {"threshold": 0.5, "min_nodes": 6}


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Let a few trees be work for several tasks, and their index be sorted in several pieces."""
    monkeypatch.setattr("treedot.batch.pair_search.TREES_OF_A_TASK", 24)
    monkeypatch.setattr("treedot.batch.pair_index.SORTED_AT_A_TIME", 64)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def write(path, trees):
    path.write_text("tree\tid\n" + "".join(f"{tree}\tid {i}\n" for i, tree in enumerate(trees)))
    return path


@pytest.fixture
def table(tmp_path):
    """Return a table that is cut into several shards."""
    return write(tmp_path / "trees.tsv", TREES)


def check_same(found, groups):
    """Check that a table tells the groups that are found in memory."""
    rows = found.to_pylist()
    told = [[row for row in rows if row["group"] == k] for k in range(len(groups))]
    assert sum(map(len, told)) == len(rows)
    for mine, group in zip(told, groups, strict=True):
        assert tuple(row["row"] for row in mine) == group.members
        assert max(row["nodes"] for row in mine) == group.nodes
        for row in mine:
            assert [row[name] for name in FIGURES] == [getattr(group, name) for name in FIGURES]
            also = [(partner["row"], partner["similarity"]) for partner in row["also"]]
            assert also == [(p.tree, p.similarity) for p in group.also if p.member == row["row"]]


def files(folder):
    """Return the bytes of all files."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_groups_of_all_files_are_those_of_all_trees(table, tmp_path, pool):
    write(tmp_path / "trees2.tsv", TREES[:40])
    found = batch.find_duplicates(tmp_path / "*.tsv", tmp_path / "out", pool, shard_size=2000, **LOW)
    groups = find_duplicates(TREES + TREES[:40], **LOW)
    assert len({group.band for group in groups}) == 3
    check_same(found, groups)
    row = found["row"].to_pylist()
    assert found["id"].to_pylist() == [f"id {i if i < len(TREES) else i - len(TREES)}" for i in row]
    assert [os.path.basename(path) for path in found["file"].to_pylist()] == [
        "trees.tsv" if i < len(TREES) else "trees2.tsv" for i in row
    ]
    assert pa.ipc.open_file(str(tmp_path / "out" / "duplicates.arrow")).read_all().equals(found)
    assert batch.status(tmp_path / "out").missing == []
    assert batch.status(tmp_path / "out").parts > 10


def test_pairs_that_no_group_shows_are_in_the_table(tmp_path, pool):
    parts = [f"(s{k} a b)" for k in range(40)]
    chain = [Tree.parse(f"(f {' '.join(parts[k : k + 20])})") for k in range(20)]
    write(tmp_path / "one.tsv", chain[:10])
    write(tmp_path / "two.tsv", chain[10:])
    found = batch.find_duplicates(tmp_path / "*.tsv", tmp_path / "out", pool, **LOW)
    groups = find_duplicates(chain, **LOW)
    check_same(found, groups)
    partners = [partner for some in found["also"].to_pylist() for partner in some]
    assert len(partners) == sum(len(group.also) for group in groups) > 0
    assert all(p["file"].endswith("one.tsv" if p["row"] < 10 else "two.tsv") for p in partners)


@pytest.mark.slow
@settings(
    max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 40),
    threshold=st.sampled_from([0.2, 0.5, 0.7, 1.0]),
    min_nodes=st.integers(2, 30),
)
def test_any_trees_have_the_same_groups(tmp_path, pool, seed, count, threshold, min_nodes):
    trees, how = some_trees(seed, count), {"threshold": threshold, "min_nodes": min_nodes}
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    table = write(tmp_path / "some.tsv", trees)
    found = batch.find_duplicates(table, tmp_path / "out", pool, shard_size=1000, **how)
    check_same(found, find_duplicates(trees, **how))


def test_limits_are_the_same(tmp_path, pool, monkeypatch):
    statements = [Tree(f"s{k}", ["x"]) for k in range(20)]
    trees = [
        Tree("f", [*statements, *(Tree(f"t{j}", ["x"]) for j in range(k % 3 + 1)), f"u{k}"])
        for k in range(90)
    ]
    random.Random(0).shuffle(trees)
    for limit, most in (("MAX_SIMILAR", 5), ("MAX_COMPARED", 7)):
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["treedot.clones.similarity"], limit, most)
            told, expected = [], []
            groups = find_duplicates(trees, on_limit=expected.append)
            found = batch.find_duplicates(
                write(tmp_path / "t.tsv", trees),
                tmp_path / limit,
                pool,
                shard_size=5000,
                on_limit=told.append,
            )
        assert told == expected
        assert told[0] > 50
        check_same(found, groups)


def test_the_order_of_the_files_and_trees_changes_rows_and_nothing_else(tmp_path, pool):
    parts = [Tree(f"s{k}", ["x"]) for k in range(30)]
    trees = [Tree("f", parts[k : k + 16 + k % 3]) for k in range(13)] + [Tree("g", parts[3:19])] * 2
    texts = [str(tree) for tree in trees]
    found = []
    for number in range(3):
        random.Random(number).shuffle(texts)
        folder = tmp_path / str(number)
        folder.mkdir()
        for half in (0, 1):
            (folder / f"{half}.tsv").write_text(
                "tree\ttext\n" + "".join(f"{t}\t{t}\n" for t in texts[half::2])
            )
        table = batch.find_duplicates(folder / "*.tsv", folder / "out", pool, shard_size=500, **LOW)
        columns = ("group", *FIGURES, "text")
        found.append(sorted(tuple(row[name] for name in columns) for row in table.to_pylist()))
        check_same(table, find_duplicates([*texts[0::2], *texts[1::2]], **LOW))
    assert found[0] == found[1] == found[2]
    assert len({row[0] for row in found[0]}) > 2


def test_an_index_whose_trees_are_in_another_order_is_made_again(table, tmp_path, pool):
    out, how = tmp_path / "out", {"shard_size": 2000, **LOW}
    batch.find_duplicates(table, out, pool, **how)
    plan, expected = out / "_pairs" / "_treedot.json", files(out)
    described = json.loads(plan.read_text())
    del described["work"]["order"]  # as in folders of the versions before
    plan.write_text(json.dumps(described))
    assert batch.status(out).missing == ["_pairs"]
    batch.find_duplicates(table, out, pool, **how)
    assert files(out) == expected


def test_places_and_names_count_as_in_memory(tmp_path, pool):
    tree, other, more = (random_forest(seed, 1, 80)[0] for seed in (3, 4, 5))
    around = Tree("outer", [more, tree])
    forest = Forest.from_trees([around, tree, around, tree, tree, other, other])
    files = ["a.py", "a.py", "b.py", "b.py", "c.py", None, None]
    forest.columns.update(file=files, start=[1, 2, 5, 6, 1, 1, 1], end=[9, 9, 13, 13, 3, 9, 9])
    forest.columns["blurred"] = [[1, 2], [1], [1, 2], [2], [1], [3, 4], None]
    forest.save(tmp_path / "t.arrow")
    found = batch.find_duplicates(tmp_path / "t.arrow", tmp_path / "out", pool)
    groups = find_duplicates(forest)
    check_same(found, groups)
    assert {group.band for group in groups} == {"identical", "renamed"}
    assert {None, 1.0} < {group.agreement for group in groups}
    last = [row["file"] for row in found.to_pylist() if row["row"] >= 5]
    assert last == [str(tmp_path / "t.arrow")] * 2


def test_every_way_gives_the_same_files(table, tmp_path, pool):
    how = {"shard_size": 2000, **LOW}
    expected = batch.find_duplicates(table, tmp_path / "a", pool, **how)
    for _ in range(2):  # rounds
        for k in (2, 3, 1):
            found = batch.find_duplicates(table, tmp_path / "b", pool, share=(k, 3), **how)
    assert found.equals(expected)
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert sorted(os.listdir(tmp_path / "a")) == sorted(os.listdir(tmp_path / "b"))
    assert not [name for name in os.listdir(tmp_path / "a" / "_pairs") if name[0] == "."]


def test_shares_do_one_round_after_the_other(table, tmp_path, pool):
    how = {"shard_size": 2000, **LOW}
    out = tmp_path / "out"
    assert batch.find_duplicates(table, out, pool, share=(1, 2), **how) is None
    assert not (out / "_pairs").exists()
    assert "_pairs" in batch.status(out).missing
    assert batch.find_duplicates(table, out, pool, share=(2, 2), **how) is None
    missing = batch.status(out).missing
    assert missing
    assert all(name.startswith("_pairs/part-") for name in missing)
    check_same(batch.find_duplicates(table, out, pool, share=(1, 2), **how), find_duplicates(TREES, **LOW))


class StopError(Exception):
    pass


@pytest.mark.parametrize("after", [2, 6, 9])
def test_a_run_that_was_ended_goes_on_where_it_was(table, tmp_path, pool, after):
    how = {"shard_size": 2000, **LOW}
    batch.find_duplicates(table, tmp_path / "expected", pool, **how)
    expected, out, done = files(tmp_path / "expected"), tmp_path / "out", []

    def stop(outcome, total):
        done.append(outcome)
        if len(done) == after:
            raise StopError

    with pytest.raises(StopError), ThreadPoolExecutor(1) as one:
        batch.find_duplicates(table, out, one, on_done=stop, **how)
    before = {path: path.stat().st_ino for path in out.rglob("part-*")}
    assert len(before) >= after
    batch.find_duplicates(table, out, pool, **how)
    assert files(out) == expected
    assert all(path.stat().st_ino == number for path, number in before.items())


def test_where_one_that_makes_the_index_fails_one_other_does(table, tmp_path, pool, monkeypatch):
    begun, at_once, make = [], [], plan_pair_search

    def index(*args):
        at_once.append(1)
        begun.append(len(at_once))
        try:
            time.sleep(0.2)  # for others to come and wait
            if len(begun) == 1:
                raise StopError
            make(*args)
        finally:
            at_once.pop()

    monkeypatch.setattr("treedot.batch.duplicates.plan_pair_search", index)
    with ThreadPoolExecutor(3) as runs:
        ends = [runs.submit(batch.find_duplicates, table, tmp_path / "out", pool, **LOW) for _ in range(3)]
    assert [type(run.exception()) for run in ends].count(StopError) == 1
    assert begun == [1, 1]


@pytest.mark.slow
def test_what_is_damaged_is_made_again(table, tmp_path, pool):
    how, out = {"shard_size": 2000, **LOW}, tmp_path / "out"
    batch.find_duplicates(table, out, pool, **how)
    expected = files(out)
    some = [
        sorted(out.glob("part-*"))[1],
        sorted(out.glob("_pairs/part-*"))[1],
        out / "_pairs" / "bounds.bin",
    ]
    for path in some:
        os.truncate(path, path.stat().st_size - 8)
        batch.find_duplicates(table, out, pool, **how)
        assert files(out) == expected
    for path in [*some, *out.glob("_pairs/*.bin"), out / "duplicates.arrow"]:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 8
        path.write_bytes(data)
        assert batch.status(out).missing
        batch.find_duplicates(table, out, pool, **how)
        assert files(out) == expected
        assert not batch.status(out).missing
    (out / "_pairs" / "index_trees.bin").unlink()
    batch.find_duplicates(table, out, pool, **how)
    assert files(out) == expected
    shutil.move(out, tmp_path / "elsewhere")
    batch.find_duplicates(table, tmp_path / "elsewhere", pool, **how)
    assert files(tmp_path / "elsewhere") == expected


def test_a_shard_that_fails_is_named_and_the_others_are_finished(table, tmp_path, pool, monkeypatch):
    (tmp_path / "bad.tsv").write_text("tree\n(A\n")
    paths, how = [table, tmp_path / "bad.tsv"], {"shard_size": 2000, **LOW}
    with pytest.raises(IncompleteError, match=r"1 of \d+ shards failed(.*\n)*.*bad\.tsv"):
        batch.find_duplicates(paths, tmp_path / "out", pool, **how)
    assert len(batch.status(tmp_path / "out").missing) == 2  # and all pairs
    reading = Reading(skip_bad=True)
    found = batch.find_duplicates(paths, tmp_path / "skipping", pool, reading=reading, **how)
    check_same(found, find_duplicates(TREES, **LOW))

    def out_of_memory(by_size, index, block, *_):
        raise MemoryError(f"at {block.start}")

    with monkeypatch.context() as patch:
        patch.setattr("treedot.batch.pair_search.partners", out_of_memory)
        with pytest.raises(IncompleteError, match=r"elements\.bin \[0:24\]: at 0"):
            batch.find_duplicates(table, tmp_path / "pairs", pool, **how)
    failed = batch.status(tmp_path / "pairs").failed
    assert failed["_pairs/part-000000-000000000000024-000000000000048.arrow"] == "at 24"
    check_same(batch.find_duplicates(table, tmp_path / "pairs", pool, **how), find_duplicates(TREES, **LOW))
    assert batch.status(tmp_path / "pairs").failed == {}


def test_other_settings_and_changed_inputs_are_refused(table, tmp_path, pool):
    out = tmp_path / "out"
    batch.find_duplicates(table, out, pool, **LOW)
    with pytest.raises(SpecMismatchError, match="min_nodes is 6, not 7"):
        batch.find_duplicates(table, out, pool, threshold=0.5, min_nodes=7)
    with pytest.raises(SpecMismatchError, match=r"threshold is 0\.5, not 0\.6"):
        batch.find_duplicates(table, out, pool, threshold=0.6, min_nodes=6)
    write(table, TREES[:30])
    with pytest.raises(SourceError, match="has changed since"):
        batch.find_duplicates(table, out, pool, **LOW)
    for wrong in ({"threshold": 0}, {"min_nodes": 1}, {"share": (2, 1)}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            batch.find_duplicates(table, tmp_path / "other", pool, **wrong)
    assert not (tmp_path / "other").exists()
    for nowhere in (None, 3, b"out"):
        with pytest.raises(ParameterError, match="out must be a path"):
            batch.find_duplicates(table, nowhere, pool)


def test_an_index_of_other_trees_or_settings_is_not_used(table, tmp_path, pool):
    out = tmp_path / "out"
    others = some_trees(1, 80)
    for trees, how in ((TREES, LOW), (others, LOW), (others, LOW | {"threshold": 0.8})):
        for path in out.glob("*.*"):  # as rm out/* does, which leaves folders
            path.unlink()
        check_same(
            batch.find_duplicates(write(table, trees), out, pool, **how), find_duplicates(trees, **how)
        )


@pytest.mark.parametrize("damage", ["", "{}", '"filez"'])
def test_a_damaged_plan_of_pairs_is_made_again(table, tmp_path, pool, damage):
    out, how = tmp_path / "out", {"shard_size": 2000, **LOW}
    batch.find_duplicates(table, out, pool, **how)
    plan, expected = out / "_pairs" / "_treedot.json", files(out)
    plan.write_text(plan.read_text().replace('"files"', damage) if "f" in damage else damage)
    assert batch.status(out).missing == ["_pairs"]
    batch.find_duplicates(table, out, pool, **how)
    assert files(out) == expected


def test_status_tells_that_groups_are_not_made_yet_or_the_index_is_damaged(table, tmp_path, pool):
    out = tmp_path / "out"
    batch.find_duplicates(table, out, pool, **LOW)
    parts = batch.status(out).parts
    (out / "duplicates.arrow").unlink()
    assert batch.status(out).missing == ["duplicates.arrow"]
    assert batch.status(out).parts == parts + 1
    (out / "_pairs" / "bounds.bin").unlink()
    assert "_pairs" in batch.status(out).missing


def test_where_no_tree_is_large_enough_the_table_is_empty(table, tmp_path, pool):
    found = batch.find_duplicates(table, tmp_path / "out", pool, min_nodes=1000)
    assert (len(found), found.column_names[:6]) == (0, ["group", *FIGURES, "row"])
    assert batch.status(tmp_path / "out").missing == []
    (tmp_path / "none.mrg").write_text("")
    assert len(batch.find_duplicates(tmp_path / "none.mrg", tmp_path / "none", pool)) == 0


@pytest.mark.parametrize("name", ["group", "band", "row", "nodes", "also", "tree_key", "productions"])
def test_a_column_with_a_name_of_the_result_is_to_be_renamed(tmp_path, pool, name):
    (tmp_path / "t.tsv").write_text(f"tree\t{name}\n(S (A a))\t7\n")
    with pytest.raises(IncompleteError, match=rf"rename the column\(s\) \['{name}'\]"):
        batch.find_duplicates(tmp_path / "t.tsv", tmp_path / "out", pool)


def test_places_in_text_count_and_what_is_no_place_is_told_at_once(tmp_path, pool):
    table = "tree\tfile\tstart\tend\n(S (A a))\tx\t9\t10\n(S (A a))\tx\t10\t10\n(S (A a))\ty\t{}\t1\n"
    (tmp_path / "t.tsv").write_text(table.format(1))
    found = batch.find_duplicates(tmp_path / "t.tsv", tmp_path / "out", pool, min_nodes=2)
    assert found["row"].to_pylist() == [0, 2]
    (tmp_path / "t.tsv").write_text(table.format("noon"))
    with pytest.raises(IncompleteError, match="not 'y', 'noon' and '1': rename"):
        batch.find_duplicates(tmp_path / "t.tsv", tmp_path / "other", pool, min_nodes=2)


def test_columns_whose_types_do_not_go_together_are_told_before_pairs_are_looked_for(tmp_path, pool):
    for name, number in (("a", 1), ("b", "one")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"tree": "(S (A a))", "n": number}))
    with pytest.raises(SourceError, match="Field n has incompatible types: int64 vs string"):
        batch.find_duplicates(tmp_path / "*.jsonl", tmp_path / "out", pool, min_nodes=2)
    assert not (tmp_path / "out" / "_pairs").exists()


def test_an_index_that_does_not_fit_on_the_disk_is_told_and_nothing_is_left(
    table, tmp_path, pool, monkeypatch
):
    def full(*_):
        raise OSError(errno.ENOSPC, "")

    with monkeypatch.context() as patch:
        patch.setattr("os.posix_fallocate", full)
        with pytest.raises(SourceError, match=r"cannot write .*_pairs: No space left"):
            batch.find_duplicates(table, tmp_path / "out", pool, **LOW)
    assert not [name for name in os.listdir(tmp_path / "out") if "_pairs" in name]
    check_same(batch.find_duplicates(table, tmp_path / "out", pool, **LOW), find_duplicates(TREES, **LOW))
