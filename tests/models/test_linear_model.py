"""Models in folders: whole or not at all, the same after loading, and refused where they were changed."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from treedot import LinearModel, TreeClassifier, read_trees
from treedot._storage import described_folder, files
from treedot._storage.safetensors import write_arrays
from treedot.cli import main
from treedot.errors import ParameterError, SourceError


@pytest.fixture(scope="module")
def questions():
    return read_trees("docs/examples/questions.tsv")


@pytest.fixture(scope="module")
def trained(questions):
    return TreeClassifier(decay=(0.2, 0.4), C=10).fit(questions, questions.columns["label"])


@pytest.fixture
def folder(trained, tmp_path):
    trained.save(tmp_path / "model")
    return tmp_path / "model"


def rewrite(folder, change):
    """Change a configuration, and give it the digest that belongs to it."""
    config = json.loads((folder / "config.json").read_text())
    del config["digest"]
    change(config)
    config["digest"] = described_folder.digest_of_config(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_model_is_the_same_after_loading(trained, folder, questions):
    assert sorted(os.listdir(folder)) == ["config.json", "weights.safetensors"]
    wanted = trained.decision_function(questions)
    model, again = LinearModel.load(folder), TreeClassifier.load(folder)
    assert (model.decision_function(questions) == wanted).all()
    assert (model.predict(questions, n_jobs=2) == trained.predict(questions)).all()
    assert (again.decision_function(questions) == wanted).all()
    assert (again.C_, again.decay_) == (trained.C_, trained.decay_)
    assert again.selection_ == [trial._replace(seconds=None) for trial in trained.selection_]
    assert again.get_params()["C"] == trained.C_
    again.save(folder.with_name("again"))
    for name in os.listdir(folder):
        assert (folder / name).read_bytes() == (folder.with_name("again") / name).read_bytes()


@pytest.mark.parametrize("classes", [["no", "yes"], [False, True], [-3, 5], [1, 2, 3]])
def test_classes_keep_their_type(classes, tmp_path, questions):
    y = np.array(classes)[np.arange(len(questions)) % len(classes)]
    TreeClassifier(decay=0.4, C=1.0).fit(questions, y).save(tmp_path / "m")
    model = LinearModel.load(tmp_path / "m")
    assert model.classes.dtype.kind == y.dtype.kind
    assert model.classes.tolist() == classes
    assert set(model.predict(questions).tolist()) <= set(classes)


@pytest.mark.slow
def test_it_is_loaded_without_scikit_learn(folder):
    code = f"""
import sys
from treedot import LinearModel
model = LinearModel.load({str(folder)!r})
print(*model.predict(["(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NNP Hamlet))))"]))
assert "sklearn" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("person\n", "")


def test_an_existing_folder_is_replaced_only_where_that_is_asked_and_it_is_a_model(trained, folder, tmp_path):
    before = (folder / "config.json").read_bytes()
    with pytest.raises(SourceError, match="it exists; to replace the model, use overwrite=True"):
        trained.save(folder)
    trained.to_model({"note": "new"}).save(folder, overwrite=True)
    assert (folder / "config.json").read_bytes() != before
    assert LinearModel.load(folder).facts["note"] == "new"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(SourceError, match="it exists; it is not a model"):
        trained.save(tmp_path / "mine", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["mine", "model"]
    assert os.listdir(tmp_path / "mine") == ["notes.txt"]


def test_of_two_models_that_are_saved_at_once_the_second_is_refused(trained, tmp_path, monkeypatch):
    write, second = described_folder.write_arrays, []

    def write_slowly(*arguments):
        monkeypatch.setattr(described_folder, "write_arrays", write)
        second.append(pool.submit(trained.to_model({"note": "second"}).save, tmp_path / "m"))
        time.sleep(0.3)  # in which the second one would be saved, and then replaced
        write(*arguments)

    monkeypatch.setattr(described_folder, "write_arrays", write_slowly)
    with ThreadPoolExecutor(1) as pool:
        trained.to_model({"note": "first"}).save(tmp_path / "m")
        with pytest.raises(SourceError, match="it exists; to replace the model"):
            second[0].result(60)
    assert LinearModel.load(tmp_path / "m").facts["note"] == "first"
    assert os.listdir(tmp_path) == ["m"]


def test_a_model_that_cannot_be_written_leaves_nothing(trained, tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        trained.to_model({"bad": float("nan")}).save(tmp_path / "m")
    assert os.listdir(tmp_path) == []
    with pytest.raises(SourceError, match="does not exist"):
        trained.save(tmp_path / "no" / "m")


def test_what_a_killed_process_left_is_removed_by_the_next(trained, tmp_path):
    code = "import os; from treedot._storage.files import write_folder\nwith write_folder('m'): os.abort()"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".m.")
    trained.save(tmp_path / "m")
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_reader_sees_the_old_or_the_new_model_while_it_is_replaced(
    trained, tmp_path, monkeypatch, can_exchange
):
    if not can_exchange:
        monkeypatch.setattr(files, "_exchange", lambda a, b: False)
    models = [trained.to_model({"number": number}) for number in range(2)]
    target, seen, done = tmp_path / "m", [], threading.Event()
    models[0].save(target)

    def read():
        while not done.is_set():
            seen.append(LinearModel.load(target).facts["number"])

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]

        def wait_for(number):
            while number not in seen[-2:] and not any(reader.done() for reader in readers):
                time.sleep(0.001)

        wait_for(0)
        for number in range(60):
            models[number % 2].save(target, overwrite=True)
        wait_for(1)
        done.set()
        for reader in readers:
            reader.result()
    assert set(seen) == {0, 1}
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.slow
def test_a_model_that_was_moved_aside_by_a_killed_process_is_still_there(trained, tmp_path, monkeypatch):
    target = tmp_path / "m"
    trained.to_model({"number": 0}).save(target)
    code = f"""
import os
from treedot._storage import files, files
from treedot import LinearModel
files._exchange = lambda a, b: os.rename(b, b.with_name(".m.0123456789abcdef.old")) or os.kill(os.getpid(), 9)
LinearModel.load({str(target)!r}).save({str(target)!r}, overwrite=True)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert not target.exists()
    assert LinearModel.load(target).facts["number"] == 0
    with pytest.raises(SourceError, match="to replace the model, use overwrite=True"):
        trained.save(target)
    with pytest.raises(ValueError, match="JSON"):  # a write that fails leaves it where it is
        trained.to_model({"bad": float("nan")}).save(target, overwrite=True)
    assert LinearModel.load(target).facts["number"] == 0
    trained.to_model({"number": 1}).save(target, overwrite=True)
    trained.to_model({"number": 2}).save(target, overwrite=True)
    assert LinearModel.load(target).facts["number"] == 2
    assert os.listdir(tmp_path) == ["m"]


def test_classes_that_are_no_text_or_integer_are_refused(trained, tmp_path):
    model = trained.to_model()
    odd = LinearModel(model.inputs, np.array([0.5, 1.5]), model.columns, model.weights, model.bias)
    with pytest.raises(ParameterError, match="cannot save classes of type float64"):
        odd.save(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config.update(format="another"), "does not describe a treedot model"),
        (lambda config: config.update(version=1), "has version 1, but this treedot reads 2"),
        (lambda config: config.pop("classes"), "lacks one of"),
        (lambda config: config.update(inputs={}), "lacks one of"),
        (lambda config: config.update(inputs=[]), "found 0"),
        (lambda config: config.update(inputs=[7]), "unknown kind"),
        (lambda config: config["inputs"][0].update(kind=[]), "unknown kind"),
        (lambda config: config["inputs"][0].update(column=3), "column is not a text"),
        (lambda config: config["inputs"][0].pop("rows"), "an input lacks its rows"),
        (lambda config: config["inputs"].append(config["inputs"][0]), "a column twice"),
        (lambda config: config.update(classes=["a"]), "at least two distinct texts"),
        (lambda config: config.update(classes=["a", 1]), "at least two distinct texts"),
        (lambda config: config.update(classes=["a", "a"]), "at least two distinct texts"),
        (lambda config: config.update(classes=[1, 2**70, 3]), "more than 64 bits"),
        (lambda config: config.update(classes=["a", "b"]), r"do not match 1 score\(s\)"),
        (lambda config: config["inputs"][0]["rows"].update(decay=0.9), "fingerprint"),
        (lambda config: config["inputs"][0]["rows"].update(more=1), "does not describe a treedot spec"),
        (lambda config: config.update(weights="0" * 32), "damaged, or belongs to another model"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(folder, change, message):
    rewrite(folder, change)
    with pytest.raises(SourceError, match=message):
        LinearModel.load(folder)


@pytest.mark.parametrize(
    "facts", [{}, {"training": []}, {"training": {"C": "x", "gap": 0, "trials": []}},
              {"training": {"C": 1, "gap": 0, "trials": [{"more": 1}]}}, {"data": 3}],
)  # fmt: skip
def test_facts_that_make_no_sense_matter_to_the_estimator_alone(folder, questions, facts, capsys):
    wanted = LinearModel.load(folder).predict(questions)
    rewrite(folder, lambda config: config.update(facts=facts))
    assert (LinearModel.load(folder).predict(questions) == wanted).all()
    with pytest.raises(SourceError, match="lacks the settings of a TreeClassifier"):
        TreeClassifier.load(folder)
    assert main(["info", str(folder)]) == 0
    assert "unknown" in capsys.readouterr().out


def nan(arrays):
    arrays["weights"][3, 0] = np.nan


def infinite(arrays):
    arrays["bias"][0] = np.inf


def unordered(arrays):
    arrays["columns"][:2] = arrays["columns"][1::-1]


def out_of_range(arrays):
    arrays["columns"][-1] = 2**40


def short(arrays):
    arrays["weights"] = arrays["weights"][:-1]


def wide(arrays):
    arrays["weights"] = arrays["weights"].astype(np.float64)


def more(arrays):
    arrays["more"] = np.zeros(3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (nan, "not finite"),
        (infinite, "not finite"),
        (unordered, "out of order or out of range"),
        (out_of_range, "out of order or out of range"),
        (short, "shapes do not match"),
        (wide, "with the right types"),
        (more, "with the right types"),
    ],
)
def test_weights_that_make_no_sense_are_refused(folder, trained, change, message):
    arrays = {
        "columns": trained.columns_.copy(), "weights": trained.weights_.copy(),
        "bias": trained.intercept_.copy(),
    }  # fmt: skip
    change(arrays)
    write_arrays(folder / "weights.safetensors", {}, arrays)
    digest = described_folder.digest_of_file(folder / "weights.safetensors")
    rewrite(folder, lambda config: config.update(weights=digest))
    with pytest.raises(SourceError, match=message):
        LinearModel.load(folder)


def test_links_folders_and_missing_files_are_refused(folder, tmp_path):
    for name in ("config.json", "weights.safetensors"):
        kept = (folder / name).rename(tmp_path / name)
        for put in (lambda path: None, lambda path: path.symlink_to(kept), lambda path: path.mkdir()):  # noqa: B023
            put(folder / name)
            with pytest.raises(SourceError, match=f"{name} is missing, or is not a plain file"):
                LinearModel.load(folder)
            if (folder / name).is_dir():
                (folder / name).rmdir()
            (folder / name).unlink(missing_ok=True)
        kept.rename(folder / name)
    with pytest.raises(SourceError, match="it is a file, not a folder"):
        LinearModel.load(folder / "config.json")
    with pytest.raises(SourceError, match="no such folder"):
        LinearModel.load(tmp_path / "nothing")


def test_a_configuration_may_not_be_huge_or_deep(folder, monkeypatch):
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(SourceError, match="truncated, or is not JSON"):
        LinearModel.load(folder)
    monkeypatch.setattr(described_folder, "MAX_CONFIG", 1 << 10)
    with pytest.raises(SourceError, match="is larger than"):
        LinearModel.load(folder)


@pytest.mark.slow
def test_mutated_folders_are_refused_or_the_same_model(folder, trained, questions):
    wanted = trained.decision_function(questions[:3])
    whole = {path: path.read_bytes() for path in folder.iterdir()}
    refused = 0
    for seed in range(200):
        for path, content in whole.items():
            path.write_bytes(content)
        mutate(folder, random.Random(seed))
        try:
            found = LinearModel.load(folder)
        except SourceError:
            refused += 1
        else:  # a space more in the configuration
            assert (found.decision_function(questions[:3]) == wanted).all()
    assert refused > 180


def mutate(folder, rng):
    """Change one of the files somewhere."""
    path = folder / rng.choice(["config.json", "weights.safetensors"])
    content = bytearray(path.read_bytes())
    place = rng.randrange(len(content))
    match rng.randrange(4):
        case 0:
            content[place] ^= 1 << rng.randrange(8)
        case 1:
            del content[place:]
        case 2:
            content[place:place] = rng.randbytes(rng.randrange(1, 9))
        case _:
            del content[place : place + rng.randrange(1, 9)]
    path.write_bytes(content)


def test_a_folder_with_anything_else_in_it_is_never_replaced(trained, tmp_path):
    folder = tmp_path / "work"
    trained.save(folder)
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(SourceError, match="it is not a model"):
        trained.save(folder, overwrite=True)
    assert (folder / "thesis.txt").read_text() == "mine"
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    with pytest.raises(SourceError, match="it is not a model"):
        trained.save(other, overwrite=True)


def test_a_model_prints_no_weights():
    trees, classes = [f"(A (B b{k}))" for k in range(40)], [f"class{k % 20}" for k in range(40)]
    model = TreeClassifier(decay=0.4, C=1.0).fit(trees, classes).to_model()
    shape = "20 classes: {} weights of FragmentInput"
    assert repr(model) == f"<LinearModel of {shape.format(model.weights.size)}>"
