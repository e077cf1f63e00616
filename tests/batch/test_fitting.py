"""Training by many processes: the same optimum, and the same bytes whoever does the work."""

import itertools
import json
import os
import re
import shutil
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from components import component
from treedot import FragmentVectorizer, LinearModel, TreeClassifier, batch, read_trees, train_files
from treedot._storage.safetensors import write_arrays
from treedot.batch import Reading, fitting, partition, streaming
from treedot.batch.engines import LocalProcesses
from treedot.batch.training_folder import TrainingFolder
from treedot.errors import IncompleteError, ParameterError, SourceError
from treedot.models.training import block_visits, training_settings, tree_blocks
from treedot.models.training.tree_blocks import belonging
from trouble import deadly_partition

QUESTIONS = "docs/examples/questions.tsv"
ROWS = FragmentVectorizer(n_features=2**12)
ONE = {"label": "label", "decay": 0.4, "C": 1.0, "rounds": 3, "partitions": 3}


class Here(Executor):
    """Does every task at once; what ends a task then ends the caller, as a kill of everything does."""

    def submit(self, function, *task):
        future = Future()
        future.set_result(function(*task))
        return future


def fit(out, client=None, paths=QUESTIONS, vectorizer=ROWS, **settings):
    return batch.fit(paths, out, vectorizer, client or Here(), **{**ONE, **settings})


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def exact_rows(trees):
    return FragmentVectorizer(n_features=2**12, decay=0.4).transform(trees)


def sides(classes, y):
    problems = 1 if classes.size == 2 else classes.size
    return np.where(np.asarray(y)[:, None] == classes[-problems:], 1.0, -1.0)


def objective(rows, y, classes, C, weights, bias):
    """Return P of all problems as its definition has it."""
    losses = C * np.maximum(0, 1 - sides(classes, y) * (rows @ weights + bias)) ** 2
    return ((weights**2).sum(axis=0) + bias**2) / 2 + losses.sum(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "partitions", "C", "weight", "tolerance"),
    [
        (5, 2, 0.01, None, 1e-6),
        (5, 4, 0.02, "balanced", 1e-6),
        (2, 3, 0.01, None, 1e-6),
        (5, 4, 1.0, None, 1e-2),
    ],
)
def test_it_converges_to_the_optimum_of_linear_svc(tmp_path, n_classes, partitions, C, weight, tolerance):
    trees = read_trees(QUESTIONS)
    y = np.array(trees.columns["label"])
    y = np.where(y == "person", "person", "thing") if n_classes == 2 else y
    lines = [f"{kind}\t{tree}\n" for kind, tree in zip(y, trees, strict=True)]
    (tmp_path / "trees.tsv").write_text("kind\ttree\n" + "".join(lines))
    settings = {"label": "kind", "partitions": partitions, "C": C, "rounds": 20, "class_weight": weight}
    model = fit(tmp_path / "model", paths=tmp_path / "trees.tsv", **settings)
    other = LinearSVC(C=C, class_weight=weight, tol=1e-10, max_iter=200_000).fit(exact_rows(trees), y)
    found = np.zeros((2**12, model.bias.size))
    found[model.columns] = model.weights
    if weight is None:
        mine, least = (
            objective(exact_rows(trees), y, model.classes, C, *pair)
            for pair in ((found, model.bias), (other.coef_.T, other.intercept_))
        )
        assert mine == pytest.approx(least, rel=tolerance)
    assert np.abs(found.T - other.coef_).max() < 5 * tolerance**0.5
    assert np.abs(model.bias - other.intercept_).max() < 5 * tolerance**0.5


def test_one_partition_is_the_sequential_algorithm_to_the_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(tree_blocks, "BLOCK_TREES", 16)
    monkeypatch.setattr(block_visits, "GROUP", 3)
    settings = {"decay": 0.4, "C": 10.0, "class_weight": "balanced", "random_state": 3}
    wanted = train_files(
        QUESTIONS, "label", checkpoint=tmp_path / "training", vectorizer=ROWS, max_passes=4, **settings
    )
    found = fit(
        tmp_path / "model", **settings, partitions=1, rounds=4, visits=streaming.VISITS, shard_size=1 << 20
    )
    for name in ("classes", "columns", "weights", "bias"):
        assert getattr(found, name).tobytes() == getattr(wanted, name).tobytes()


@pytest.mark.parametrize(("partitions", "visits", "C"), [(2, 1, 1.0), (5, 4, 10.0)])
def test_weights_are_those_of_the_alphas_and_the_dual_never_falls(tmp_path, partitions, visits, C):
    trees = read_trees(QUESTIONS)
    duals, gaps = [], []

    def look(at):
        if at.trees or at.passes in (-1, 0, 6):  # after the last round, there are means
            return
        folder = TrainingFolder(tmp_path / "model.training")
        state = folder.load(at.passes)
        blocks = [folder.trees.block(k) for k in range(folder.sizes.size)]
        alpha = folder.read_alpha(state, np.arange(folder.sizes.size)) / partitions
        names = np.array(folder.trees.facts.names)[np.concatenate([block.classes for block in blocks])]
        rows = exact_rows([str(tree) for block in blocks for tree in block.trees])
        classes = np.unique(trees.columns["label"])
        weights, bias, gap_before = state.weights, state.bias, state.gap
        signed = alpha * sides(classes, names)
        assert (alpha >= 0).all()
        assert np.abs(rows.T @ signed - weights).max() < 1e-5
        assert signed.sum(axis=0) == pytest.approx(bias, abs=1e-5)
        weights = weights.astype(float)
        dual = (alpha - alpha**2 / (4 * C)).sum(axis=0) - ((weights**2).sum(axis=0) + bias**2) / 2
        primal = objective(rows, names, classes, C, weights, bias)
        duals.append(dual)
        gaps.append((gap_before, (primal - dual) / primal))

    fit(tmp_path / "model", partitions=partitions, visits=visits, C=C, rounds=6, progress=look)
    assert len(duals) == 5
    assert (np.diff(duals, axis=0) >= -1e-6).all()
    for (_, gap), (said, _) in itertools.pairwise(gaps):
        assert said == pytest.approx(gap, rel=1e-3)


def test_ten_rounds_of_four_partitions_are_as_accurate_as_the_optimum(tmp_path):
    trees = read_trees(QUESTIONS)
    y = np.array(trees.columns["label"])
    exact = TreeClassifier(vectorizer=ROWS, decay=0.4, C=1.0, tol=1e-4).fit(trees, y)
    model = fit(tmp_path / "model", partitions=4, rounds=10)
    assert np.mean(model.predict(trees) == exact.predict(trees)) > 0.99


def test_classes_in_the_order_of_the_file_do_no_harm(tmp_path):
    trees = read_trees(QUESTIONS)
    y = np.array(trees.columns["label"])
    lines = [f"{y[i]}\t{trees[int(i)]}\n" for i in np.argsort(y, kind="stable")]
    (tmp_path / "sorted.tsv").write_text("label\ttree\n" + "".join(lines))
    model = fit(tmp_path / "model", paths=tmp_path / "sorted.tsv", partitions=4, rounds=10)
    assert np.mean(model.predict(trees) == y) > 0.98


def test_threads_give_the_same_bytes(tmp_path):
    fit(tmp_path / "here")
    for count in (1, 3):
        with ThreadPoolExecutor(count) as pool:
            fit(tmp_path / f"threads {count}", pool)
        assert content(tmp_path / f"threads {count}") == content(tmp_path / "here")
    assert sorted(os.listdir(tmp_path)) == ["here", "threads 1", "threads 3"]


def test_warming_up_compiles_the_pass_that_partitions_make(monkeypatch):
    visited = []
    monkeypatch.setattr(block_visits, "visit_rows", lambda *arguments: visited.append(arguments))
    partition.warm_up()
    ((rows, *_, descent, figures),) = visited
    types = [array.dtype.str for array in (*rows, *descent, *figures[:4])]
    floats = ["<f4", "|b1", "<f8", "<f8", "<f4", "<f4", "<f8", "<f4", "<f8", "<f8", "<f8"]
    assert types == ["<i4", "<i4", *floats]


def test_dask_gives_the_same_bytes(tmp_path):
    distributed = component("dask")
    fit(tmp_path / "here")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        fit(tmp_path / "dask", client)
    assert content(tmp_path / "dask") == content(tmp_path / "here")


@pytest.mark.slow
def test_processes_give_the_same_bytes_and_where_one_dies_another_does_its_partition(tmp_path, monkeypatch):
    fit(tmp_path / "here")
    monkeypatch.setattr(fitting, "do_partition", deadly_partition)
    with LocalProcesses(2) as pool:
        fit(tmp_path / "processes", pool)
    assert content(tmp_path / "processes") == content(tmp_path / "here")


class Killed(BaseException):
    """Ends a training as SIGKILL does: nothing of what comes next is done."""


@pytest.mark.parametrize("write", ["write_job", "write_alpha", "write_update", "save"])
def test_a_training_that_is_killed_goes_on_to_the_same_bytes(tmp_path, monkeypatch, write):
    fit(tmp_path / "undisturbed")
    plain = getattr(TrainingFolder, write)
    left = 0

    def until_killed(self, *arguments):
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        plain(self, *arguments)

    kills = 0
    with monkeypatch.context() as patch:
        patch.setattr(TrainingFolder, write, until_killed)
        for left in (1, 2, 1, 4):  # noqa: B007 (counted down above)
            try:
                fit(tmp_path / "model")
                break
            except Killed:
                kills += 1
    assert kills
    if not (tmp_path / "model").exists():
        fit(tmp_path / "model")
    assert content(tmp_path / "model") == content(tmp_path / "undisturbed")
    assert sorted(os.listdir(tmp_path)) == ["model", "undisturbed"]


def test_a_kill_before_the_work_folder_is_removed_leaves_it_to_the_next_run(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("treedot.batch.checkpoint.remove_folder", mock.Mock(side_effect=Killed))
        with pytest.raises(Killed):
            fit(tmp_path / "model")
    written = content(tmp_path / "model")
    fit(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    assert content(tmp_path / "model") == written
    with pytest.raises(SourceError, match="it exists; to replace the model"):
        fit(tmp_path / "model")


def test_a_model_of_another_training_is_not_written_over(tmp_path, monkeypatch):
    fit(tmp_path / "other", C=2.0)
    with monkeypatch.context() as patch:
        patch.setattr("treedot.batch.checkpoint.remove_folder", mock.Mock(side_effect=Killed))
        with pytest.raises(Killed):
            fit(tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    (tmp_path / "other").rename(tmp_path / "model")
    before = content(tmp_path / "model")
    with pytest.raises(SourceError, match="it exists; to replace the model"):
        fit(tmp_path / "model")
    assert content(tmp_path / "model") == before


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    done = []
    pack, solve = fitting.pack_shard, fitting.do_partition

    def stops(folder, rounds, number):
        if (rounds, number) == (1, 2) and ("stopped",) not in done:
            done.append(("stopped",))
            raise Killed
        done.append((rounds, number))
        return solve(folder, rounds, number)

    monkeypatch.setattr(fitting, "do_partition", stops)
    monkeypatch.setattr(fitting, "pack_shard", lambda *task: done.append(task[1:]) or pack(*task))
    with pytest.raises(Killed):
        fit(tmp_path / "model")
    fit(tmp_path / "model")
    tasks = [task for task in done if task != ("stopped",)]
    assert len(tasks) == len(set(tasks))
    assert {task for task in tasks if len(task) == 2} == {(r, n) for r in range(3) for n in range(3)}


def test_tasks_that_fail_are_named_and_tried_again(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("treedot.batch.partition.groups", lambda *_: 1 / 0)
        with pytest.raises(IncompleteError, match=r"3 of 3 tasks failed.*partition 0: ZeroDivision"):
            fit(tmp_path / "model")
    with monkeypatch.context() as patch:
        patch.setattr(TrainingFolder, "load", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):  # of this process itself
            fit(tmp_path / "model")
    fit(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]


def test_changed_files_and_settings_are_refused(tmp_path, monkeypatch):
    path, out = tmp_path / "trees.tsv", tmp_path / "model"
    shutil.copy(QUESTIONS, path)
    with monkeypatch.context() as patch:
        patch.setattr("treedot.batch.partition.groups", lambda *_: 1 / 0)
        with pytest.raises(IncompleteError):
            fit(out, paths=path)
    for changed, name in (
        ({"C": 2.0}, "C"),
        ({"rounds": 4}, "rounds"),
        ({"partitions": 2}, "partitions"),
        ({"visits": 1}, "visits"),
        ({"label": "tree"}, "label"),
        ({"vectorizer": FragmentVectorizer(n_features=2**13)}, "rows"),
    ):
        with pytest.raises(ParameterError, match=f"changed since it began: {name}.* delete the folder"):
            fit(out, paths=path, **changed)
    with pytest.raises(ParameterError, match="read with other settings"):
        fit(out, paths=path, reading=Reading(skip_bad=True))
    for size in (100, 0):
        with pytest.raises(ParameterError, match="shard_size"):
            fit(out, paths=path, shard_size=size)
    with pytest.raises(ParameterError, match="made from other files"):
        fit(out, paths=[path, QUESTIONS])
    os.utime(path, ns=(1, 1))
    with pytest.raises(SourceError, match=r"trees.tsv has changed"):
        fit(out, paths=path)
    path.write_text(path.read_text() * 2)
    with pytest.raises(SourceError, match=r"trees.tsv has changed"):
        fit(out, paths=path)
    assert sorted(os.listdir(tmp_path)) == ["model.training", "trees.tsv"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"paths": "-"}, "standard input"),
        ({"paths": "none*.tsv"}, "no file matches"),
        ({"label": "class"}, "no column 'class'; the columns are 'label'"),
        ({"C": 0}, "C must be a number above 0"),
        ({"decay": 2}, "from 0 to 1, not 2"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"visits": 0}, "visits must be at least 1"),
        ({"partitions": 0}, "partitions must be at least 1"),
        ({"class_weight": "even"}, "class_weight: "),
        ({"vectorizer": FragmentVectorizer(n_features=None)}, "hashed columns .*, without rest and idf"),
        ({"vectorizer": FragmentVectorizer(n_features=2**30)}, "too many for 5 classes"),
        ({"client": "tcp://head"}, "client must be"),
        ({"workers": 2}, "workers is for local processes"),
        ({"partitions": 400, "shard_size": 1 << 20}, "300 trees in 1 block.* too few for 400 partitions"),
        ({"reading": Reading(column="sentence")}, "sentence"),
    ],
)
def test_wrong_settings_are_told_and_leave_nothing(tmp_path, settings, message):
    with pytest.raises((ParameterError, SourceError), match=message):
        fit(tmp_path / "model", **settings)
    assert not os.listdir(tmp_path)


def test_what_is_in_the_way_is_told_before_the_work(tmp_path):
    fit(tmp_path / "model")
    with pytest.raises(SourceError, match="it exists; to replace the model"):
        fit(tmp_path / "model")
    fit(tmp_path / "model", rounds=1, overwrite=True)
    assert LinearModel.load(tmp_path / "model").facts["training"]["rounds"] == 1
    (tmp_path / "other").mkdir()
    with pytest.raises(SourceError, match="holds no training"):
        fit(tmp_path / "new", checkpoint=tmp_path / "other")
    with pytest.raises(ParameterError, match="must not be inside each other"):
        fit(tmp_path / "new", checkpoint=tmp_path / "new" / "inside")
    assert sorted(os.listdir(tmp_path)) == ["model", "other"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("label\ttree\na\t(A b)\na\t(B b)\n", "at least two classes, not only \\['a'\\]"),
        ("label\ttree\n\t(A b)\nb\t(B b)\n", "'label': 1 of 1 trees have no class, the first is tree 1"),
    ],
)
def test_what_cannot_be_learned_is_told_and_leaves_nothing(tmp_path, table, message):
    (tmp_path / "trees.tsv").write_text(table)
    with pytest.raises(ParameterError, match=message):
        fit(tmp_path / "model", paths=tmp_path / "trees.tsv")
    assert os.listdir(tmp_path) == ["trees.tsv"]


def test_a_tree_without_a_class_is_told_with_its_shard(tmp_path):
    (tmp_path / "trees.tsv").write_text("label\ttree\na\t(A b)\n\t(B b)\n")
    with pytest.raises(IncompleteError, match=r"trees\.tsv \[.*: column 'label': 1 of 1 trees have no class"):
        fit(tmp_path / "model", paths=tmp_path / "trees.tsv", shard_size=1)


def test_bad_trees_are_left_out_where_that_is_asked(tmp_path):
    (tmp_path / "trees.tsv").write_text("label\ttree\na\t(A b)\nb\t(B b\nb\t(B c)\n")
    paths, told = tmp_path / "trees.tsv", []
    with pytest.raises(IncompleteError, match=r"trees.tsv:3"):
        fit(tmp_path / "model", paths=paths, partitions=1)
    shutil.rmtree(tmp_path / "model.training")
    settings = {"reading": Reading(skip_bad=True), "on_done": lambda *of: told.append(of)}
    model = fit(tmp_path / "model", paths=paths, partitions=1, **settings)
    assert model.facts["data"]["trees"] == 2
    assert sum(outcome.skipped for outcome, _ in told) == 1


def test_files_of_all_kinds_make_the_same_trees(tmp_path):
    pytest.importorskip("pyarrow")
    trees = read_trees(QUESTIONS)
    y = trees.columns.pop("label")
    trees.columns["kind"] = y
    trees[:150].save(tmp_path / "a.parquet")
    trees[150:].save(tmp_path / "b.arrow")
    lines = [f"{kind}\t{tree}\n" for kind, tree in zip(y, trees, strict=True)]
    (tmp_path / "c.tsv").write_text("kind\ttree\n" + "".join(lines[:150]))
    (tmp_path / "d.tsv").write_text("kind\ttree\n" + "".join(lines[150:]))
    settings = {"label": "kind", "partitions": 2, "shard_size": 1 << 20}
    fit(tmp_path / "one", paths=[tmp_path / "a.parquet", tmp_path / "b.arrow"], **settings)
    fit(tmp_path / "other", paths=[tmp_path / "c.tsv", tmp_path / "d.tsv"], **settings)
    one, other = (tmp_path / name / "weights.safetensors" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_the_number_of_partitions_follows_from_that_of_trees(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "TREES_OF_A_PARTITION", 100)
    assert fit(tmp_path / "one", partitions=None).facts["training"]["partitions"] == 1  # of one block
    assert fit(tmp_path / "three", partitions=None, shard_size=2000).facts["training"]["partitions"] == 3
    monkeypatch.setattr(fitting, "MAX_PARTITIONS", 2)
    assert fit(tmp_path / "two", partitions=None, shard_size=2000).facts["training"]["partitions"] == 2


def test_settings_are_chosen_on_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(training_settings, "SAMPLE", 120)
    model = fit(tmp_path / "model", decay=(0.2, 0.4), C=(0.01, 1), cv=3)
    trials = model.facts["training"]["trials"]
    assert {(trial["decay"], trial["C"]) for trial in trials} == {
        (d, C) for d in (0.2, 0.4) for C in (0.01, 1)
    }
    best = max(trials, key=lambda trial: trial["score"])
    assert (model.inputs[0].rows.spec.decay, model.facts["training"]["C"]) == (best["decay"], best["C"])


def test_progress_is_told_while_reading_and_in_every_round(tmp_path):
    told = []
    fit(tmp_path / "model", progress=told.append)
    assert [at.passes for at in told if at.trees == 0] == [0, 1, 2, 3]
    assert [at.trees for at in told if at.passes == 1][-1] == 300
    assert told[0].passes == -1
    assert told[-1].gap < told[-5].gap < np.inf


@pytest.mark.parametrize("name", ["training.json", "weights-0002.safetensors", "partition-0002-00001.alpha"])
def test_damaged_files_are_refused(tmp_path, monkeypatch, name):
    folder, write = tmp_path / "model.training", TrainingFolder.save

    def stops(self, state):
        write(self, state)
        if state.progress[0] == 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(TrainingFolder, "save", stops)
        with pytest.raises(Killed):
            fit(tmp_path / "model")
    whole = (folder / name).read_bytes()
    other = {
        "training.json": "trees/_treedot.json",
        "weights-0002.safetensors": "partition-0002-00001.alpha",
    }
    flipped = bytearray(whole)
    flipped[-9] ^= 1
    instead = (folder / other.get(name, "weights-0002.safetensors")).read_bytes()
    for damaged in (whole[:-3], b"", instead, bytes(flipped)):
        (folder / name).write_bytes(damaged)
        with pytest.raises((SourceError, IncompleteError), match=name):
            fit(tmp_path / "model")
    (folder / name).write_bytes(whole)
    fit(tmp_path / "model")


def test_a_damaged_update_is_refused(tmp_path, monkeypatch):
    update = stopped(tmp_path / "model", monkeypatch) / "partition-0001-00002.safetensors"
    whole = update.read_bytes()
    for damaged in (whole[:-3], b"", whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]):
        update.write_bytes(damaged)
        with pytest.raises(SourceError, match=r"partition-0001-00002.* to start again"):
            fit(tmp_path / "model")


def test_a_work_folder_of_an_older_version_is_refused_as_such(tmp_path, monkeypatch):
    folder = stopped(tmp_path / "model", monkeypatch)
    path, kept = folder / "partition-0001-00002.safetensors", TrainingFolder(folder)
    older = {**kept.read_update(1, 2)._asdict(), "alpha": np.zeros((4, 5), np.float32)}
    write_arrays(path, belonging(path, kept.identity), older, sealed=True)
    with pytest.raises(SourceError, match="older version of treedot: delete it to start again"):
        fit(tmp_path / "model")


def stopped(path, monkeypatch, **settings):
    """Begin a training, and end it when the first round is done."""
    with monkeypatch.context() as patch:
        patch.setattr(TrainingFolder, "save", mock.Mock(side_effect=Killed))
        with pytest.raises(Killed):
            fit(path, **settings)
    return path.with_name(f"{path.name}.training")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("trees/000001/000000.safetensors", "trees/000002/000000.safetensors"),
        ("trees/000001/facts.json", "trees/000002/facts.json"),
        ("partition-0001-00000.safetensors", "partition-0001-00001.safetensors"),
    ],
)
def test_files_that_were_swapped_are_refused(tmp_path, monkeypatch, one, other):
    folder = stopped(tmp_path / "model", monkeypatch)
    (folder / one).rename(tmp_path / "aside")
    (folder / other).rename(folder / one)
    (tmp_path / "aside").rename(folder / other)
    (folder / "training.json").unlink()  # so that what is known of the shards is read again
    with pytest.raises((SourceError, IncompleteError), match=r"delete .* to start again"):
        fit(tmp_path / "model")


@pytest.mark.parametrize(
    "name", ["training.json", "request.json", "trees/_treedot.json", "partition-0001-00000.safetensors"]
)
def test_a_file_of_another_training_is_refused(tmp_path, monkeypatch, name):
    folder = stopped(tmp_path / "model", monkeypatch)
    other = stopped(tmp_path / "other", monkeypatch, C=2.0, shard_size=1500)
    shutil.copy(other / name, folder / name)
    with pytest.raises((SourceError, ParameterError, IncompleteError)):
        fit(tmp_path / "model")


def test_trees_that_are_damaged_are_refused_and_packed_again_when_they_are_deleted(tmp_path, monkeypatch):
    fit(tmp_path / "undisturbed")
    folder = stopped(tmp_path / "model", monkeypatch)
    block = folder / "trees" / "000001" / "000000.safetensors"
    data = bytearray(block.read_bytes())
    data[-1] ^= 4
    block.write_bytes(data)
    with pytest.raises(IncompleteError, match=r"is damaged.* delete .*trees/000001 to start again"):
        fit(tmp_path / "model")
    shutil.rmtree(block.parent)
    fit(tmp_path / "model")
    assert content(tmp_path / "model") == content(tmp_path / "undisturbed")


def test_a_second_training_that_begins_meanwhile_does_not_replace_the_first(tmp_path, monkeypatch):
    plain, out, refused = fitting.Plan.make, tmp_path / "model", []

    def slowly(*arguments):
        with ThreadPoolExecutor(1) as pool:
            refused.append(pool.submit(fit, out).exception(60))
        return plain(*arguments)

    monkeypatch.setattr(fitting.Plan, "make", slowly)
    fit(out)
    (error,) = refused
    assert isinstance(error, SourceError)
    assert re.search(r"another training is running in .*: wait for it", str(error))


def test_two_trainings_do_not_share_a_folder(tmp_path, monkeypatch):
    folder, plain, said = stopped(tmp_path / "model", monkeypatch), TrainingFolder.save, []

    def second(self, *arguments):
        with pytest.raises(SourceError) as caught:
            fit(tmp_path / "model")
        said.append(str(caught.value))
        plain(self, *arguments)

    monkeypatch.setattr(TrainingFolder, "save", second)
    fit(tmp_path / "model")
    assert set(said) == {f"another training is running in {folder}: wait for it, or choose another folder"}


@pytest.mark.parametrize("change", [{"targets": 3}, {"shards": [1]}, {"spec": "none"}, {"rounds": "2"}])
def test_an_edited_training_is_refused(tmp_path, monkeypatch, change):
    with monkeypatch.context() as patch:
        patch.setattr(TrainingFolder, "save", mock.Mock(side_effect=Killed))
        with pytest.raises(Killed):
            fit(tmp_path / "model")
    path = tmp_path / "model.training" / "training.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(
        SourceError, match=r"training\.json is damaged: delete .*model\.training to start again"
    ):
        fit(tmp_path / "model")


@pytest.mark.parametrize("wrong", [{"reading": None}, {"checkpoint": 3}])
def test_settings_of_a_foreign_kind_are_refused(tmp_path, wrong):
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))} must be a"):
        fit(tmp_path / "model", **wrong)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [".", "", "/"])
def test_a_folder_without_a_name_is_no_model_to_write(folder):
    with pytest.raises(SourceError, match="it exists; it is not a model"):
        fit(folder)
