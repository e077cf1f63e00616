"""Damaged model folders: they must be rejected, or the loaded model must work.

Half of the cases have digests that match their damaged content, so other checks must find the damage. In the
other half, a model that is loaded must be the undamaged one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.mutations import INTEGERS, mutate
from fuzz.readers import seed_trees
from fuzz.stored import check_facts
from fuzz.target import Target, require
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    FragmentVectorizer,
    LinearModel,
    SubsetTreeKernel,
    TreeClassifier,
)
from treedot._storage.described_folder import CONFIG, WEIGHTS, digest_of_config, digest_of_file
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.errors import SourceError
from treedot.kernels import BoundedTreeKernel
from treedot.models import TreeMetric
from treedot.vectors import DenseSpec, Metric
from treedot.vectors.sparse.fitted_rows import fingerprint_of

Files = dict[str, bytes]

NAMES: dict[str, Any] = {
    "tree_columns": ["tree", "other"],
    "number_columns": ["size", "half"],
    "text_columns": ["note"],
}
KINDS: dict[str, dict[str, Any]] = {
    "fragments": {"vectorizer": FragmentVectorizer(n_features=2**10)},
    "dictionary": {"vectorizer": FragmentVectorizer(n_features=None, budget=1)},
    "idf": {"vectorizer": FragmentVectorizer(n_features=2**10, idf=True)},
    "rest": {"vectorizer": FragmentVectorizer(n_features=2**8, rest="dense", rest_size=256)},
    "dense": {"vectorizer": DistributedTreeVectorizer(n_components=256)},
    "kernel": {"kernel": SubsetTreeKernel(normalize=True)},
    "columns": NAMES,
    "pair": {"pair_columns": ["tree", "other"], "number_columns": ["size"]},
    "kernel.columns": {"kernel": BoundedTreeKernel(normalize=True), **NAMES},
}
METRIC = "metric"
VALUES: list[Any] = [*INTEGERS, 0.5, 1e308, float("nan"), None, True, "", "x", "../..", "/etc/hosts", [], {}]
NUMBERS = [np.nan, np.inf, -np.inf, 0, 1, -1, 2**31 - 1, 2**40, -(2**63), 1e30, 1e-320]


@cache
def _examples() -> Forest:
    trees = [tree for trees in seed_trees() for tree in trees if tree.children][:12]
    count = len(trees)
    columns: dict[str, list[Any]] = {
        "other": [str(tree) for tree in trees[::-1]],
        "size": [tree.size for tree in trees],
        "half": [k / 2 for k in range(count)],
        "note": [f"note {k % 3}" for k in range(count)],
    }
    return Forest.from_trees(trees, columns)


@cache
def _sound(kind: str) -> tuple[Files, np.ndarray]:
    """Return the files of a sound model and the scores of the examples, or of a metric and their vectors."""
    examples = _examples()
    y = [("a", "b", "c")[k % 3] for k in range(len(examples))]
    if kind == METRIC:
        metric = TreeMetric(n_columns=64, shrinkage=1.0).fit(examples, y)
        return _saved(metric), metric.transform(examples)
    model = TreeClassifier(**KINDS[kind], decay=0.4, C=1).fit(examples, y)
    return _saved(model), model.decision_function(examples)


def _saved(model: TreeClassifier | TreeMetric) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "m"))
        return {name: Path(folder, "m", name).read_bytes() for name in (CONFIG, WEIGHTS)}


@dataclass(frozen=True)
class ModelTarget:
    """The folder of one kind of model.

    A case is a line of JSON, followed by the contents of files, concatenated. The line has an entry for each
    item in the folder: its type, its name and its size; and whether digests were updated.
    """

    kind: str
    needs: tuple[str, ...] = ()

    def make(self, random: Random) -> bytes:
        """Damage a sound model."""
        files, _ = _sound(self.kind)
        change = random.choice(CHANGES)
        if change is _trick:
            return _trick(files, random)
        signed = random.random() < 0.7
        changed = change(dict(files), random)
        return _packed(
            [("file", *item) for item in (_signed(changed) if signed else changed).items()], signed
        )

    def run(self, data: bytes, folder: Path) -> None:
        """Make the folder, and load it."""
        line, _, contents = data.partition(b"\n")
        head = json.loads(line)
        path = folder / "case.model"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        place = 0
        for what, name, size in head["entries"]:
            _put(what, path / name, contents[place : place + size])
            place += size
        self._check(path, head["signed"])

    def _check(self, path: Path, signed: bool) -> None:
        check_facts(path)
        model, examples = LinearModel.load(path), _examples()
        scores = model.decision_function(examples)
        require(np.isfinite(scores).all(), "a score is not finite")
        require(len(model.best(scores)) == len(examples), "the numbers of classes and of examples differ")
        if not signed:
            require(np.array_equal(scores, _sound(self.kind)[1]), "a damaged model was loaded")
        try:
            again = TreeClassifier.load(path)
        except SourceError:  # the model does not record its training
            return
        require(np.array_equal(again.decision_function(examples), scores), "the estimator differs")


class MetricTarget(ModelTarget):
    """The folder of a metric."""

    def _check(self, path: Path, signed: bool) -> None:
        check_facts(path)
        vectors = Metric.load(path).transform(_examples())
        require(np.isfinite(vectors).all() or signed, "a number of a vector is not finite")
        if not signed:
            require(np.array_equal(vectors, _sound(self.kind)[1]), "a damaged metric was loaded")


def _packed(entries: list[tuple[str, str, bytes]], signed: bool) -> bytes:
    head = {"entries": [(what, name, len(data)) for what, name, data in entries], "signed": signed}
    return json.dumps(head).encode() + b"\n" + b"".join(data for _, _, data in entries)


def _put(what: str, path: Path, data: bytes) -> None:
    match what:
        case "link":
            path.symlink_to(data.decode())
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.write_bytes(data)


def _signed(files: Files) -> Files:
    """Return files with matching digests and fingerprints, if they can have any."""
    try:
        config = json.loads(files[CONFIG])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, WEIGHTS)
            path.write_bytes(files[WEIGHTS])
            config["weights"] = digest_of_file(path)
            with contextlib.suppress(Exception):  # they have none
                _sign_inputs(config["inputs"], read_arrays(path)[1])
        config.pop("digest", None)
        config["digest"] = digest_of_config(config)
        return files | {CONFIG: json.dumps(config).encode()}
    except Exception:  # it is no longer a configuration
        return files


def _sign_inputs(inputs: list[dict[str, Any]], arrays: dict[str, np.ndarray]) -> None:
    for k, each in enumerate(inputs):
        if each["kind"] == "fragments":
            own = {n.removeprefix(f"input{k}."): x for n, x in arrays.items() if n.startswith(f"input{k}.")}
            each["fingerprint"] = fingerprint_of(each["rows"], own)
        elif each["kind"] == "dense":
            fields = {name: x for name, x in each["vectors"].items() if name != "fingerprint"}
            each["vectors"]["fingerprint"] = DenseSpec.from_dict(fields).fingerprint


def _some_bytes(files: Files, random: Random) -> Files:
    """Change bytes of one file or of both."""
    for name in random.choice([[CONFIG], [WEIGHTS], [CONFIG, WEIGHTS]]):
        files[name] = mutate(files[name], [files[CONFIG], files[WEIGHTS]], random)
    return files


def _some_value(files: Files, random: Random) -> Files:
    """Replace, remove or add a value somewhere in the configuration."""
    config = json.loads(files[CONFIG])
    places = list(_places(config))
    for _ in range(random.choice([1, 1, 2, 3])):
        inside, key = random.choice(places)
        if isinstance(inside, dict) and random.random() < 0.2:
            inside.pop(key, None)
        elif isinstance(inside, dict) and random.random() < 0.2:
            inside[random.choice(["x", "column", "max_pairs", "fingerprint"])] = random.choice(VALUES)
        elif isinstance(inside, dict) or key < len(inside):
            inside[key] = random.choice(
                [random.choice(VALUES), json.loads(json.dumps(random.choice(places)[0]))]
            )
    return files | {CONFIG: json.dumps(config).encode()}


def _places(value: Any) -> Any:
    """Yield every container and key of nested JSON values."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _some_array(files: Files, random: Random) -> Files:
    """Change an array: a number, its length, its type; or remove or rename it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, WEIGHTS)
        path.write_bytes(files[WEIGHTS])
        description, mapped = read_arrays(path)
        arrays = {name: np.array(array) for name, array in mapped.items()}
        for _ in range(random.choice([1, 1, 2])):
            name = random.choice(list(arrays))
            arrays |= _changed(name, arrays.pop(name), random)
        write_arrays(path, description, arrays)
        return files | {WEIGHTS: path.read_bytes()}


@np.errstate(all="ignore")
def _changed(name: str, array: np.ndarray, random: Random) -> dict[str, np.ndarray]:
    match random.randrange(8):
        case 0 | 1 | 2 if array.size:
            flat = array.reshape(-1)
            flat[random.randrange(flat.size)] = np.array(random.choice(NUMBERS)).astype(array.dtype)
            return {name: array}
        case 3:
            return {name: array[: random.randint(0, len(array))]}
        case 4:
            return {name: np.concatenate([array, array])}
        case 5:
            return {name: array.astype(random.choice([np.float64, np.float32, np.int64, np.int32, np.uint8]))}
        case 6:
            return {}
        case _:
            return {random.choice(["more", "input9.x", "input0.label", f"{name}x"]): array}


def _other_weights(files: Files, random: Random) -> Files:
    """Combine a configuration with the weights of another kind of model."""
    return files | {WEIGHTS: _sound(random.choice(list(KINDS)))[0][WEIGHTS]}


def _trick(files: Files, random: Random) -> bytes:
    """Replace a file by a link, a pipe or a folder, omit one, or add others."""
    name = random.choice([CONFIG, WEIGHTS])
    odd = random.choice(
        [
            ("link", name, b"/etc/passwd"), ("link", name, b"/dev/zero"), ("link", name, name.encode()),
            ("link", name, b"../log"), ("pipe", name, b""), ("folder", name, b""), None,
            ("file", name, b""), ("file", "more.txt", b"x"), ("link", "more", b"/dev/zero"),
        ]
    )  # fmt: skip
    replaced = name if odd is None else odd[1]
    entries = [("file", *item) for item in files.items() if item[0] != replaced]
    return _packed(entries + ([] if odd is None else [odd]), False)


CHANGES: list[Callable[..., Any]] = [
    _some_bytes, _some_value, _some_value, _some_array, _some_array, _other_weights, _trick,
]  # fmt: skip
MODELS: dict[str, Target] = {f"model.{kind}": ModelTarget(kind) for kind in KINDS}
MODELS["metric"] = MetricTarget(METRIC)
