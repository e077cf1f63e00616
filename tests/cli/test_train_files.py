"""``treedot train`` with a checkpoint and ``treedot batch fit``: trees are streamed, and trainings resume."""

import json
import os
import re
import resource
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest

from treedot import FragmentVectorizer, LinearModel, batch, train_files
from treedot.batch.training_folder import SoleFolder
from treedot.cli import main

QUESTIONS = "docs/examples/questions.tsv"


@pytest.fixture(autouse=True)
def _few_columns(monkeypatch):
    monkeypatch.setattr("treedot.models.training.training_settings.N_FEATURES", 2**12)


@pytest.fixture
def command(tmp_path):
    paths = ["-o", str(tmp_path / "model"), "--checkpoint", str(tmp_path / "training")]
    return ["train", QUESTIONS, "--label", "label", *paths, "--decay", "0.4", "--C", "1", "-j", "2"]


def test_it_writes_the_model_and_removes_the_checkpoint(command, tmp_path, capsys):
    assert main([*command, "--passes", "3", "--balanced", "--budget", "3"]) == 0
    assert os.listdir(tmp_path) == ["model"]
    wanted = train_files(
        QUESTIONS, "label", checkpoint=tmp_path / "other", decay=0.4, C=1, class_weight="balanced",
        max_passes=3, vectorizer=FragmentVectorizer(n_features=2**12, budget=3),
    )  # fmt: skip
    found = LinearModel.load(tmp_path / "model")
    assert found.weights.tobytes() == wanted.weights.tobytes()
    assert found.facts["training"] == wanted.facts["training"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("300 trees read, ")
    assert [line.split(":")[0] for line in said[1:4]] == ["pass 1", "pass 2", "pass 3"]
    assert said[4].startswith("300 trees of 5 classes, with ")
    assert said[5] == f"{tmp_path / 'model'}: decay 0.4, C 1"


def test_several_settings_are_compared(command, tmp_path, capsys):
    command[command.index("--C") + 1 : command.index("--C") + 2] = ["0.01", "1"]
    assert main([*command, "--passes", "2", "--cv", "3"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\n +0\.\d{3} +3 +200  decay 0\.4, C 0\.01\n", said)
    assert len(LinearModel.load(tmp_path / "model").facts["training"]["trials"]) == 2


@pytest.mark.parametrize("damping", ["linear", "log1p"])
def test_the_damping_that_is_chosen_is_that_of_the_rows(command, damping, tmp_path, monkeypatch):
    decision = {"decay": 0.4, "C": 1.0, "trials": [], "damping": damping}
    monkeypatch.setattr("treedot.batch.streaming.choose", lambda *_: decision)
    assert main([*command, "--passes", "2", "--damping", "choose"]) == 0
    found = LinearModel.load(tmp_path / "model")
    assert found.inputs[0].rows.spec.damping == found.facts["training"]["damping"] == damping


def test_streamed_training_chooses_a_damping(command, tmp_path, capsys):
    assert main([*command, "--passes", "2", "--cv", "3", "--damping", "sqrt", "log1p"]) == 0
    training = LinearModel.load(tmp_path / "model").facts["training"]
    assert sorted(trial["damping"] for trial in training["trials"]) == ["log1p", "sqrt"]
    assert f"decay 0.4, C 1, {training['damping']}\n" in capsys.readouterr().out


def test_info_describes_the_model(command, tmp_path, capsys):
    assert main([*command, "--passes", "1"]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "model"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trained on"] == "300 trees"


def test_the_model_and_the_checkpoint_are_two_folders(command, tmp_path, capsys):
    for checkpoint in (tmp_path / "model", tmp_path / "model" / "inside", tmp_path):
        command[command.index("--checkpoint") + 1] = str(checkpoint)
        assert main(command) == 1
        assert "must not be inside each other" in capsys.readouterr().err
    assert not os.listdir(tmp_path)


def test_groups_want_all_trees_in_memory(command, tmp_path, capsys):
    assert main([*command, "--group", "label"]) == 1
    assert "--group needs all trees in memory: remove --checkpoint" in capsys.readouterr().err
    assert not os.listdir(tmp_path)


def test_an_existing_model_is_told_before_any_work(command, tmp_path, capsys):
    assert main([*command, "--passes", "1"]) == 0
    assert main([*command, "--passes", "1"]) == 1
    assert "it exists; to replace the model" in capsys.readouterr().err
    assert main([*command, "--passes", "1", "--overwrite"]) == 0
    assert os.listdir(tmp_path) == ["model"]


def test_what_was_interrupted_goes_on_and_says_after_which_pass(command, tmp_path, capsys, monkeypatch):
    wanted = train_files(
        QUESTIONS, "label", checkpoint=tmp_path / "other", decay=0.4, C=1, max_passes=4,
        vectorizer=FragmentVectorizer(n_features=2**12),
    )  # fmt: skip
    save = SoleFolder.save

    def interrupted(self, state):
        if state.progress[0] == 3:
            raise KeyboardInterrupt
        save(self, state)

    with monkeypatch.context() as patch:
        patch.setattr(SoleFolder, "save", interrupted)
        assert main([*command, "--passes", "4"]) == 130
    said = capsys.readouterr().err
    assert said == f"treedot: interrupted; run the same command to resume from {tmp_path / 'training'}\n"
    assert main([*command, "--passes", "4"]) == 0
    assert capsys.readouterr().out.startswith("300 trees, resuming after pass 2\npass 3: ")
    assert LinearModel.load(tmp_path / "model").weights.tobytes() == wanted.weights.tobytes()


@pytest.mark.parametrize("by_many", [False, True])
def test_a_kill_before_the_checkpoint_is_removed_leaves_it_to_the_next_run(
    command, tmp_path, monkeypatch, by_many
):
    monkeypatch.setattr("treedot.batch.engines.LocalProcesses", ThreadPoolExecutor)
    train = [*command, "--passes", "2"]
    if by_many:
        train = ["batch", "fit", *command[1:-2], "--partitions", "2", "--rounds", "2", "--workers", "1"]
    with monkeypatch.context() as patch:
        removed = mock.Mock(side_effect=KeyboardInterrupt)
        patch.setattr("treedot.batch.checkpoint.remove_folder", removed)
        assert main(train) == 130
    assert sorted(os.listdir(tmp_path)) == ["model", "training"]
    written = LinearModel.load(tmp_path / "model").weights.tobytes()
    assert main(train) == 0
    assert os.listdir(tmp_path) == ["model"]
    assert LinearModel.load(tmp_path / "model").weights.tobytes() == written


def test_a_disk_that_fills_up_is_told_and_the_training_goes_on_later(command, tmp_path, capsys):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, hard))
        assert main([*command, "--passes", "2"]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = capsys.readouterr().err
    assert said == f"treedot: cannot write {tmp_path / 'training' / 'state.safetensors'}: File too large\n"
    assert os.listdir(tmp_path) == ["training"]
    assert main([*command, "--passes", "2"]) == 0
    assert os.listdir(tmp_path) == ["model"]


def test_what_was_begun_otherwise_is_told_with_what_to_do(command, tmp_path, capsys):
    train_files(
        QUESTIONS, "label", checkpoint=tmp_path / "training", decay=0.4, C=2, max_passes=1,
        vectorizer=FragmentVectorizer(n_features=2**12),
    )  # fmt: skip
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "changed since it began: C. Use the original ones to resume it, or delete the folder" in said


@pytest.fixture
def by_many(tmp_path, monkeypatch):
    """Return a command that trains by many processes, for which threads stand in."""
    monkeypatch.setattr("treedot.batch.engines.LocalProcesses", ThreadPoolExecutor)
    return ["batch", "fit", "docs/examples/quest*.tsv", "--label", "label", "-o", str(tmp_path / "model"),
            "--decay", "0.4", "--C", "1", "--workers", "2"]  # fmt: skip


def test_workers_train_what_batch_fit_trains(by_many, tmp_path, capsys):
    rows = ["--budget", "3", "--damping", "log1p"]
    assert main([*by_many, "--rounds", "3", "--partitions", "4", "--balanced", *rows]) == 0
    assert os.listdir(tmp_path) == ["model"]
    with ThreadPoolExecutor(1) as pool:
        wanted = batch.fit(
            QUESTIONS, tmp_path / "other", FragmentVectorizer(n_features=2**12, budget=3), pool,
            label="label", decay=0.4, damping="log1p", C=1, class_weight="balanced", rounds=3, partitions=4,
        )  # fmt: skip
    found = LinearModel.load(tmp_path / "model")
    assert found.inputs[0].rows.spec.damping == "log1p"
    assert found.weights.tobytes() == wanted.weights.tobytes()
    assert found.facts == wanted.facts
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("300 trees read, ")
    assert said[1].startswith("round 1: began with a duality gap of 1, ")
    assert [line.split(":")[0] for line in said[1:4]] == ["round 1", "round 2", "round 3"]
    assert said[4].startswith("300 trees of 5 classes, with ")
    assert said[5] == f"{tmp_path / 'model'}: decay 0.4, C 1, log1p"


def test_what_workers_did_not_finish_goes_on(by_many, tmp_path, capsys, monkeypatch):
    command = [*by_many, "--partitions", "2", "--rounds", "3", "--checkpoint", str(tmp_path / "work")]
    add_up = batch.fitting.add_up

    def interrupted(folder, state):
        if state.progress[0] == 1:
            raise KeyboardInterrupt
        return add_up(folder, state)

    with monkeypatch.context() as patch:
        patch.setattr("treedot.batch.fitting.add_up", interrupted)
        assert main(command) == 130
    assert f"run the same command to resume from {tmp_path / 'work'}" in capsys.readouterr().err
    assert main([*command[:-2]]) == 0
    assert main([*command, "--overwrite"]) == 0
    said = capsys.readouterr().out
    assert "300 trees, resuming after round 1\nround 2: began" in said
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n-features", "1000"], "--n-features must be a power of two"),
        (["--engine", "dask"], "--workers has no effect with --engine"),
        (["--partitions", "0"], "partitions must be at least 1"),
        (["--label", "kind"], "there is no column 'kind'; the columns are 'label'"),
    ],
)
def test_what_many_processes_cannot_do_is_told_and_leaves_nothing(
    by_many, tmp_path, capsys, options, message
):
    assert main([*by_many, *options]) == 1
    assert message in capsys.readouterr().err
    assert not os.listdir(tmp_path)


def test_bad_trees_are_left_out_by_workers_too(by_many, tmp_path, capsys):
    (tmp_path / "trees.tsv").write_text("label\ttree\na\t(A b)\nb\t(B b\nb\t(B c)\n")
    by_many[2] = str(tmp_path / "trees.tsv")
    assert main([*by_many, "--skip-bad"]) == 0
    said = capsys.readouterr()
    assert "treedot: skipped " in said.err
    assert "treedot: left out 1 bad tree(s)" in said.err
    assert said.out.startswith("2 trees read")
