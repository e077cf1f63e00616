"""Training on files of trees, in memory that does not grow with their number."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmarks.streaming import labelled
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from treedot import Forest, FragmentVectorizer, LinearModel, TreeClassifier, read_trees, train_files
from treedot._storage.described_folder import digest_of_config
from treedot.batch import streaming
from treedot.batch.training_folder import Job, SoleFolder
from treedot.errors import ParameterError, SourceError
from treedot.models.training import block_visits, training_settings, tree_blocks
from treedot.models.training.coordinate_descent import Descent, PassFigures, Rows, visit_rows

QUESTIONS = "docs/examples/questions.tsv"
ROWS = FragmentVectorizer(n_features=2**12)
ONE = {"vectorizer": ROWS, "decay": 0.4, "C": 1.0}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a training of small groups, kept after each."""
    monkeypatch.setattr(tree_blocks, "BLOCK_TREES", 16)
    monkeypatch.setattr(block_visits, "GROUP", 3)
    monkeypatch.setattr(streaming, "SECONDS", -1.0)
    return tmp_path / "training"


def train(folder, paths=QUESTIONS, **settings):
    return train_files(paths, "label", checkpoint=folder, **{**ONE, **settings})


def same(one, other):
    return all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name in ("classes", "columns", "weights", "bias")
    )


def spec_of(model):
    return model.inputs[0].rows.spec


def all_weights(model):
    found = np.zeros((spec_of(model).n_features, model.bias.size))
    found[model.columns] = model.weights
    return found


def sides(model, y):
    return np.where(np.asarray(y)[:, None] == model.classes[-model.bias.size :], 1.0, -1.0)


def objective(model, trees, y, C, weights, bias):
    """Return P of all problems as its definition has it."""
    spec = spec_of(model)
    rows = FragmentVectorizer(n_features=spec.n_features, decay=spec.decay).transform(trees)
    losses = C * np.maximum(0, 1 - sides(model, y) * (rows @ weights + bias)) ** 2
    return ((weights**2).sum(axis=0) + bias**2) / 2 + losses.sum(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "C", "weight"), [(5, 1.0, None), (5, 10.0, "balanced"), (2, 1.0, None)]
)
def test_it_converges_to_the_optimum_of_linear_svc(folder, tmp_path, n_classes, C, weight):
    trees = read_trees(QUESTIONS)
    y = np.array(trees.columns.pop("label"))
    y = np.where(y == "person", "person", "thing") if n_classes == 2 else y
    trees.columns["kind"] = y.tolist()
    trees.save(tmp_path / "trees.parquet")
    settings = {"vectorizer": ROWS, "decay": 0.4, "C": C, "class_weight": weight}
    model = train_files(
        tmp_path / "trees.parquet", "kind", checkpoint=folder, **settings, tol=1e-6, max_passes=3000
    )
    other = LinearSVC(C=C, class_weight=weight, tol=1e-10, max_iter=200_000)
    other.fit(FragmentVectorizer(n_features=2**12, decay=0.4).transform(trees), y)
    assert model.facts["training"]["gap"] <= 1e-6
    assert np.abs(all_weights(model).T - other.coef_).max() < 5e-3
    if weight is None:
        mine = objective(model, trees, y, C, all_weights(model), model.bias)
        assert mine == pytest.approx(objective(model, trees, y, C, other.coef_.T, other.intercept_), rel=1e-5)


@pytest.mark.slow
def test_five_passes_are_as_accurate_as_the_optimum_on_hard_trees(tmp_path, monkeypatch):
    monkeypatch.setattr(tree_blocks, "BLOCK_TREES", 512)
    monkeypatch.setattr(block_visits, "GROUP", 3)
    new, *parts = labelled(4 * 4096)
    known = Forest.concat(parts)
    known.save(tmp_path / "trees.parquet")
    settings = {"vectorizer": FragmentVectorizer(n_features=2**18), "decay": 0.2, "C": 1.0}
    model = train_files(
        tmp_path / "trees.parquet", "class", checkpoint=tmp_path / "training", max_passes=5, **settings
    )
    exact = TreeClassifier(**settings, tol=1e-3).fit(known, known.columns["class"])
    truth = np.array(new.columns["class"])
    streamed, optimum = (np.mean(of.predict(new) == truth) for of in (model, exact))
    assert model.facts["training"]["passes"] == 5
    assert streamed >= optimum - 0.003


def test_classes_in_the_order_of_the_file_do_no_harm(folder, tmp_path):
    trees = read_trees(QUESTIONS)
    order = np.argsort(trees.columns["label"], kind="stable")
    lines = [f"{trees.columns['label'][i]}\t{trees[int(i)]}\n" for i in order]
    path = tmp_path / "sorted.tsv"
    path.write_text("label\ttree\n" + "".join(lines))
    model = train(folder, path, max_passes=10)
    assert np.mean(model.predict(trees) == trees.columns["label"]) > 0.99


@pytest.mark.parametrize("passes", [2, 10, 30])
def test_weights_are_those_of_the_alphas_and_the_gap_is_about_right(folder, passes):
    model = train(folder, max_passes=passes, C=10.0)
    kept = SoleFolder(folder)
    kept.write_job(Job([], {}, spec_of(model).to_dict(), [0] * 5, [], 0, 1, passes, 3))
    state = kept.load()
    alpha = kept.read_alpha(state, np.arange(kept.sizes.size)).astype(float)
    trees = read_trees(QUESTIONS)
    y = trees.columns["label"]
    rows = FragmentVectorizer(n_features=2**12, decay=0.4).transform(trees)
    assert (alpha >= 0).all()
    assert np.abs(rows.T @ (alpha * sides(model, y)) - state.weights).max() < 1e-5
    assert (alpha * sides(model, y)).sum(axis=0) == pytest.approx(state.bias, abs=1e-9)
    weights = state.weights.astype(float)
    primal = objective(model, trees, y, 10.0, weights, state.bias)
    dual = (alpha - alpha**2 / 40).sum(axis=0) - ((weights**2).sum(axis=0) + state.bias**2) / 2
    estimate = model.facts["training"]["gap"]
    assert estimate / 3 < ((primal - dual) / primal).max() < 3 * estimate
    of_means = objective(model, trees, y, 10.0, all_weights(model), model.bias)
    assert ((of_means - dual) / of_means).max() < 2 * estimate


def test_the_model_is_the_mean_of_the_weights_over_the_visits_of_the_last_pass():
    random = np.random.default_rng(0)
    matrix = csr_matrix((random.random((9, 5)) * (random.random((9, 5)) < 0.6)).astype(np.float32))
    rows = Rows(matrix.indptr, matrix.indices, matrix.data)
    squares = np.asarray(matrix.multiply(matrix).sum(axis=1), float).ravel()
    positive = random.random((9, 2)) < 0.5
    weights, means = random.normal(size=(2, 5, 2)).astype(np.float32)
    bias, loss, excess, mean_bias = random.normal(size=(4, 2))
    means[...], mean_bias[...] = weights, bias
    alpha = random.random((9, 2)).astype(np.float32)
    state = Descent(positive, np.full((2, 2), 3.0), np.ones(len(alpha)), alpha, weights, bias)
    order = random.permutation(9)
    seen = []
    for visited in range(9):
        figures = PassFigures(means, mean_bias, loss, excess, visited, 9)
        visit_rows(rows, squares, order[visited : visited + 1], state, figures)
        seen.append((weights.copy(), bias.copy()))
    assert means == pytest.approx(np.mean([w for w, _ in seen], axis=0), abs=1e-6)
    assert mean_bias == pytest.approx(np.mean([b for _, b in seen], axis=0), abs=1e-6)


@pytest.mark.parametrize("n_jobs", [2, 5, -1])
def test_threads_and_checkpoints_make_no_difference_to_a_byte(folder, tmp_path, monkeypatch, n_jobs):
    alone = train(tmp_path / "alone", max_passes=3)
    monkeypatch.setattr(streaming, "SECONDS", 1e9)
    assert same(train(folder, max_passes=3, n_jobs=n_jobs), alone)
    assert alone.facts["training"]["gap"] == train(folder, max_passes=3).facts["training"]["gap"]


def test_the_seed_changes_the_way(folder, tmp_path):
    assert not same(train(folder, max_passes=2), train(tmp_path / "other", max_passes=2, random_state=1))


def test_more_passes_go_on_from_where_it_ended(folder, tmp_path):
    at_once = train(tmp_path / "at once", max_passes=6)
    train(folder, max_passes=2)
    told = []
    assert same(train(folder, max_passes=6, progress=told.append), at_once)
    assert [at.passes for at in told if at.trees == 0] == [2, 3, 4, 5, 6]
    assert same(train(folder, max_passes=6), at_once)  # and again without any work


class Killed(BaseException):
    """Ends a training as SIGKILL does: nothing of what comes next is done."""


@pytest.mark.parametrize("write", ["write_alpha", "save"])
def test_a_training_that_is_killed_goes_on_to_the_same_model(folder, tmp_path, monkeypatch, write):
    wanted = train(tmp_path / "undisturbed", max_passes=3)
    plain = getattr(SoleFolder, write)
    left = 0

    def until_killed(self, *arguments):
        nonlocal left
        left -= 1
        if left == 0:
            if write == "write_alpha":  # half of it has been written, and wrongly
                state, blocks, alpha = arguments
                plain(self, state, blocks[:1], alpha[: self.sizes[blocks[0]]] + 7)
            raise Killed
        plain(self, *arguments)

    kills = 0
    with monkeypatch.context() as patch:
        patch.setattr(SoleFolder, write, until_killed)
        for left in (1, 2, 3, 5, 2, 7, 1, 4):  # noqa: B007 (counted down above)
            try:
                train(folder, max_passes=3, n_jobs=2)
            except Killed:
                kills += 1
    assert kills > 4
    assert same(train(folder, max_passes=3), wanted)


def test_settings_are_chosen_on_a_sample_and_only_once(folder, monkeypatch):
    monkeypatch.setattr(training_settings, "SAMPLE", 120)
    seen = []
    fit = TreeClassifier.fit
    monkeypatch.setattr(TreeClassifier, "fit", lambda self, X, y: seen.append(len(X)) or fit(self, X, y))
    settings = {"decay": (0.2, 0.4), "C": (0.01, 1), "cv": 3, "max_passes": 2}
    model = train(folder, **settings)
    (size,) = seen
    assert 120 <= size < 150  # as many of every block, and the first of every class
    trials = model.facts["training"]["trials"]
    assert {(trial["decay"], trial["C"]) for trial in trials} == {
        (d, C) for d in (0.2, 0.4) for C in (0.01, 1)
    }
    best = max(trials, key=lambda trial: trial["score"])
    assert (spec_of(model).decay, model.facts["training"]["C"]) == (best["decay"], best["C"])
    train(folder, **{**settings, "max_passes": 3})
    assert seen == [size]


def test_the_scores_held_out_of_the_sample_give_probabilities(folder, tmp_path):
    settings = {"decay": (0.2, 0.4), "C": 1, "cv": 3, "max_passes": 2}
    model, trees = train(folder, **settings), read_trees(QUESTIONS)
    assert "calibration" not in model.facts["training"]
    p = model.predict_proba(trees)
    own = np.searchsorted(model.classes, np.array(trees.columns["label"]))
    assert -np.log(p[np.arange(len(trees)), own]).mean() < 0.3
    again = train(folder, **settings)
    assert (again.predict_proba(trees) == p).all()
    for other in ({"calibrate": False}, {"decay": 0.2}):
        without = train(tmp_path / "other", **settings | other)
        assert without.calibration is None
        shutil.rmtree(tmp_path / "other")


def test_the_model_is_one_as_any_other(folder, tmp_path):
    model = train(folder, max_passes=5)
    model.save(tmp_path / "model")
    trees = read_trees(QUESTIONS)
    assert (LinearModel.load(tmp_path / "model").predict(trees) == model.predict(trees)).all()
    assert TreeClassifier.load(tmp_path / "model").C_ == 1.0
    assert model.facts["data"]["trees"] == 300


def test_several_files_are_one_after_the_other(folder, tmp_path):
    table = read_trees(QUESTIONS)
    head, *lines = Path(QUESTIONS).read_text(encoding="utf-8").splitlines()
    for name, part in (("a.tsv", lines[:77]), ("b.tsv", lines[77:])):
        (tmp_path / name).write_text("\n".join([head, *part]) + "\n", encoding="utf-8")
    model = train(folder, [tmp_path / "a.tsv", str(tmp_path / "b.tsv")], max_passes=3)
    assert model.facts["data"]["trees"] == len(table)
    assert np.mean(model.predict(table) == table.columns["label"]) > 0.9


def test_bad_trees_are_left_out_where_that_is_asked(folder, tmp_path):
    path = tmp_path / "trees.tsv"
    path.write_text("label\ttree\na\t(A b)\nb\t(B b\nb\t(B c)\n")
    with pytest.raises(SourceError, match=r"trees.tsv:3"):
        train(folder, path)
    bad = []
    assert train(folder, path, on_bad=bad.append).facts["data"]["trees"] == 2
    assert len(bad) == 1


def test_changed_files_and_settings_are_refused(folder, tmp_path):
    path = tmp_path / "trees.tsv"
    shutil.copy(QUESTIONS, path)
    train(folder, path, max_passes=1)
    for changed, name in (
        ({"C": 2.0}, "C"),
        ({"random_state": 1}, "random_state"),
        ({"class_weight": "balanced"}, "class_weight"),
        ({"vectorizer": FragmentVectorizer(n_features=2**13)}, "rows"),
        ({"on_bad": print}, "leaving out bad trees"),
    ):
        with pytest.raises(ParameterError, match=f"changed since it began: {name}.* delete the folder"):
            train(folder, path, **changed)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ParameterError, match=r"changed since it began: .*trees.tsv\. Use"):
        train(folder, path)
    path.unlink()
    with pytest.raises(SourceError, match=r"cannot train on .*trees.tsv"):
        train(folder, path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"paths": "docs"}, "cannot train on docs: "),
        ({"paths": "-"}, "cannot train on -: "),
        ({"paths": []}, "no files"),
        ({"C": 0}, "C must be a number above 0"),
        ({"decay": 2}, "from 0 to 1, not 2"),
        ({"tol": 0}, "tol must be a number above 0"),
        ({"max_passes": 0}, "max_passes must be at least 1"),
        ({"cv": 1, "C": (1, 2)}, "cv must be at least 2"),
        ({"class_weight": "even"}, "class_weight: "),
        ({"class_weight": {"person": -1}}, "class_weight must be a number above 0"),
        ({"random_state": 0.5}, "random_state must be an integer"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"vectorizer": FragmentVectorizer(n_features=None)}, "hashed columns .*, without rest and idf"),
        ({"vectorizer": FragmentVectorizer(n_features=2**30)}, "too many for 5 classes"),
        ({"column": "sentence"}, "sentence"),
    ],
)
def test_wrong_settings_are_told_and_leave_nothing(folder, settings, message):
    with pytest.raises((ParameterError, SourceError), match=message):
        train(folder, **settings)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("label\ttree\na\t(A b)\na\t(B b)\n", "at least two classes, not only \\['a'\\]"),
        ("label\ttree\na\t(A b)\n\t(B b)\n", "'label': 1 of 2 trees have no class, the first is tree 2"),
        ("kind\ttree\na\t(A b)\nb\t(B b)\n", "no column 'label'; the columns are 'kind'"),
        ("label\ttree\n", "contains no tree"),
    ],
)
def test_what_cannot_be_learned_is_told_and_leaves_nothing(folder, tmp_path, table, message):
    path = tmp_path / "trees.tsv"
    path.write_text(table)
    with pytest.raises((ParameterError, SourceError), match=message):
        train(folder, path)
    assert os.listdir(tmp_path) == ["trees.tsv"]


def test_progress_is_told_while_reading_and_in_every_pass(folder):
    told = []
    train(folder, max_passes=2, progress=told.append)
    assert [at.passes for at in told if at.trees == 0] == [0, 1, 2]
    visited = [at.trees for at in told if at.passes == 1]
    assert len(visited) == 8
    assert visited == sorted(visited)
    assert (visited[0], visited[-1]) == (0, 300)
    assert told[0] == (-1, told[0].trees, 0, np.inf)
    assert told[-1].gap < np.inf


def test_a_pass_that_was_begun_is_finished_whatever_is_asked_for_next(folder, tmp_path, monkeypatch):
    wanted = train(tmp_path / "other", max_passes=3)
    save = SoleFolder.save

    def until_third_pass(self, state):
        save(self, state)
        if state.progress.tolist() == [2, 1]:
            raise KeyboardInterrupt

    monkeypatch.setattr(streaming, "SECONDS", -1.0)
    with monkeypatch.context() as patch:
        patch.setattr(SoleFolder, "save", until_third_pass)
        with pytest.raises(KeyboardInterrupt):
            train(folder, max_passes=3)
    assert same(train(folder, max_passes=2), wanted)


def test_settings_are_chosen_on_files_that_are_sorted_by_class(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(training_settings, "SAMPLE", 40)
    path = tmp_path / "sorted.tsv"
    rows = [f"{kind}\t(S (A {kind}) (B {k}))" for kind, many in (("a", 300), ("b", 3)) for k in range(many)]
    path.write_text("\n".join(["label\ttree", *rows]))
    model = train(folder, path, decay=(0.2, 0.4), C=1, cv=2, max_passes=2)
    assert model.classes.tolist() == ["a", "b"]
    assert len(model.facts["training"]["trials"]) == 2


@pytest.mark.parametrize("name", ["facts.json", "choice.json"])
def test_damaged_notes_are_told(folder, name):
    train(folder, max_passes=1)
    edited = json.loads((folder / name).read_text()) | {"sizes": "many", "C": "much"}
    for text in ("{}", json.dumps(edited), "[" * 100_000):
        (folder / name).write_text(text)
        with pytest.raises(SourceError, match=rf"{name} is damaged: .*delete .* to start again"):
            train(folder, max_passes=2)


@pytest.fixture
def begun(folder, monkeypatch):
    """Return the folder of a training that was ended in its third pass, and the model that it leads to."""
    wanted, save = train(folder.with_name("undisturbed"), max_passes=4), SoleFolder.save

    def until_third_pass(self, state):
        save(self, state)
        if state.progress.tolist() == [2, 4]:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(SoleFolder, "save", until_third_pass)
        with pytest.raises(Killed):
            train(folder, max_passes=4)
    return folder, wanted


FILES = ["alpha.0", "alpha.1", "state.safetensors", "trees/000001.safetensors", "facts.json", "request.json"]


def is_refused(folder, wanted):
    """Resume a training; return whether it was refused with what to do; fail where the model differs."""
    try:
        found = train(folder, max_passes=4)
    except SourceError as error:
        return f"delete {folder} to start again" in str(error)
    assert same(found, wanted)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_refused_or_leads_to_the_same_model(begun, tmp_path, name):
    folder, wanted = begun
    random, whole, refused = np.random.default_rng(0), (folder / name).read_bytes(), 0
    for place in random.integers(0, len(whole), 12).tolist():
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(random.integers(8))
        page = place // 512 * 512
        zeroed = whole[:page] + bytes(len(whole[page : page + 512])) + whole[page + 512 :]
        for damaged in (bytes(flipped), zeroed, whole[:place], b""):
            copy = tmp_path / "damaged"
            shutil.copytree(folder, copy)
            (copy / name).write_bytes(damaged)
            refused += is_refused(copy, wanted)
            shutil.rmtree(copy)
    assert refused > 12


@pytest.mark.parametrize(
    ("one", "other"),
    [("alpha.0", "alpha.1"), ("trees/000001.safetensors", "trees/000002.safetensors")],
)
def test_files_of_a_checkpoint_that_were_swapped_are_refused(begun, tmp_path, one, other):
    folder, _ = begun
    (folder / one).rename(tmp_path / "aside")
    (folder / other).rename(folder / one)
    (tmp_path / "aside").rename(folder / other)
    with pytest.raises(SourceError, match=rf"delete {folder} to start again"):
        train(folder, max_passes=3)


@pytest.mark.parametrize(
    "name", ["state.safetensors", "choice.json", "facts.json", "trees/000001.safetensors"]
)
def test_files_of_another_training_are_refused(begun, tmp_path, name):
    folder, _ = begun
    train(tmp_path / "other", C=2.0, max_passes=2)
    shutil.copy(tmp_path / "other" / name, folder / name)
    with pytest.raises(SourceError, match=rf"delete {folder} to start again"):
        train(folder, max_passes=3)


def test_an_old_state_beside_new_alphas_is_refused(folder, tmp_path):
    train(folder, max_passes=2)
    shutil.copy(folder / "state.safetensors", tmp_path / "old")
    train(folder, max_passes=4)
    shutil.copy(tmp_path / "old", folder / "state.safetensors")
    with pytest.raises(SourceError, match=rf"alpha.0 is damaged: delete {folder} to start again"):
        train(folder, max_passes=5)


def test_a_checkpoint_of_an_older_version_is_refused_as_such(folder):
    train(folder, max_passes=1)
    request = json.loads((folder / "request.json").read_text())
    del request["checksum"]
    (folder / "request.json").write_text(json.dumps({**request, "checksum": digest_of_config(request)}))
    with pytest.raises(SourceError, match="older version of treedot: delete it to start again"):
        train(folder, max_passes=2)


@pytest.mark.parametrize("paths", [3, None, ["trees.tsv", 3]])
def test_what_is_no_path_is_refused(tmp_path, paths):
    with pytest.raises(ParameterError, match="paths must be a path or an iterable of paths"):
        train_files(paths, "label", checkpoint=tmp_path / "training")


def test_a_training_needs_a_folder(tmp_path):
    (tmp_path / "trees.tsv").write_text("label\ttree\na\t(A b)\nb\t(B c)\n")
    with pytest.raises(ParameterError, match="checkpoint must be a path, not None"):
        train_files(tmp_path / "trees.tsv", "label", checkpoint=None)
