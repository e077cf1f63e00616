"""Damaged folders of finished and unfinished work: they must be rejected, or lead to the same result.

A case is the damage to a folder, as a line of JSON: each entry names a file and the change to it. Each
process makes the folder itself, since it contains paths and times of its inputs.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from fuzz.mutations import mutate
from fuzz.target import Target, require
from treedot import FragmentVectorizer, TreeClassifier, TreedotError, batch, load_vectors, train_files
from treedot.batch import pair_search, streaming
from treedot.batch.training_folder import SoleFolder, TrainingFolder
from treedot.models.training import block_visits, tree_blocks

PAGES = (512, 4096)
ROWS = FragmentVectorizer(n_features=2**8)
SETTINGS: dict[str, Any] = {"decay": 0.4, "C": 1.0}


class Here(Executor):
    """An executor that runs every task at once, in this process."""

    def submit(self, function: Callable[..., Any], /, *task: Any, **named: Any) -> Any:
        """Call a function; an error that it returns must be one of treedot's own."""
        future: Future[Any] = Future()
        outcome = function(*task, **named)
        require("Traceback" not in outcome.error, outcome.error)
        future.set_result(outcome)
        return future


class KilledError(BaseException):
    """Ends work as a kill would."""


@contextlib.contextmanager
def small_blocks() -> Iterator[None]:
    """Make a few trees fill several blocks, groups and tasks; store the state after every group."""
    with (
        mock.patch.object(tree_blocks, "BLOCK_TREES", 8),
        mock.patch.object(block_visits, "GROUP", 2),
        mock.patch.object(streaming, "SECONDS", -1.0),
        mock.patch.object(pair_search, "TREES_OF_A_TASK", 16),
    ):
        yield


def _train(source: Path, folder: Path) -> Any:
    model = train_files(source, "label", checkpoint=folder, vectorizer=ROWS, max_passes=4, **SETTINGS)
    return model.weights.tobytes(), model.columns.tobytes(), model.bias.tobytes()


def _half_trained(source: Path, folder: Path) -> None:
    """Interrupt a training in its third pass."""
    save = SoleFolder.save

    def until_third_pass(self: SoleFolder, state: Any) -> None:
        save(self, state)
        if state.progress.tolist() == [2, 2]:
            raise KilledError

    with mock.patch.object(SoleFolder, "save", until_third_pass), contextlib.suppress(KilledError):
        _train(source, folder)


def _fit(source: Path, folder: Path) -> Any:
    out = folder.with_name("model")
    shutil.rmtree(out, ignore_errors=True)
    how: dict[str, Any] = {"label": "label", "rounds": 3, "partitions": 2, "shard_size": 400}
    batch.fit(source, out, ROWS, Here(), checkpoint=folder, **how, **SETTINGS)
    return _content(out)


def _half_fitted(source: Path, folder: Path) -> None:
    """Interrupt a training by many processes after one partition has done the third round."""
    write = TrainingFolder.write_update

    def until_third_round(self: TrainingFolder, rounds: int, partition: int, update: Any) -> None:
        if (rounds, partition) == (3, 1):
            raise KilledError
        write(self, rounds, partition, update)

    with (
        mock.patch.object(TrainingFolder, "write_update", until_third_round),
        contextlib.suppress(KilledError),
    ):
        _fit(source, folder)


def _encode(source: Path, folder: Path) -> Any:
    with contextlib.suppress(TreedotError):
        rows = load_vectors(folder).matrix
        expected = ROWS.transform(source)
        require((rows != expected).nnz == 0, "damaged vectors are read")
    _look(folder)
    batch.encode(source, folder, ROWS, Here(), shard_size=1000)
    return _results(folder)


def _predict(source: Path, folder: Path) -> Any:
    _look(folder)
    batch.predict(source, folder, source.with_name("predictor"), Here(), shard_size=1000)
    return _results(folder)


def _duplicates(source: Path, folder: Path) -> Any:
    _look(folder)
    batch.find_duplicates(source, folder, Here(), threshold=0.3, min_nodes=3, shard_size=1000)
    return _results(folder)


def _look(folder: Path) -> None:
    with contextlib.suppress(TreedotError):
        batch.status(folder)


def _content(folder: Path) -> dict[str, bytes]:
    """Return the content of a folder, except reasons of failures."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("_failed-")]
    return {os.fspath(path.relative_to(folder)): path.read_bytes() for path in paths}


def _results(folder: Path) -> dict[str, bytes]:
    """Return the parts and the results made from them."""
    found = _content(folder).items()
    return {name: data for name, data in found if name.endswith(".arrow") and name != "_queries.arrow"}


class Sound:
    """Work on some trees: its folder before damage, and the result of resuming it."""

    def __init__(self, prepare: Callable[[Path, Path], Any], resume: Callable[[Path, Path], Any]) -> None:
        self._own = tempfile.TemporaryDirectory()
        self.resume, self.source = resume, Path(self._own.name, "trees.tsv")
        self.source.write_text(_table(), encoding="utf-8")
        if resume is _predict:
            model = TreeClassifier(**SETTINGS, vectorizer=ROWS)
            model.fit(["(S (A a))", "(S (B b))"], ["a", "b"]).save(self.source.with_name("predictor"))
        sound = Path(self._own.name, "sound")
        prepare(self.source, sound)
        self.files = _content(sound)
        self.expected = self.result(self.files)

    def result(self, files: dict[str, bytes]) -> Any:
        """Return the result of resuming a folder with these files; its name is the same in every case."""
        folder = Path(self._own.name, "case")
        shutil.rmtree(folder, ignore_errors=True)
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return self.resume(self.source, folder)


def _table() -> str:
    random, lines = Random(0), []
    for number in range(60):
        kind = random.choice("ab")
        words = [f"({random.choice('NPV')} w{random.randrange(9)})" for _ in range(random.randint(2, 5))]
        lines.append(f"{kind}\t(S ({kind.upper()} {' '.join(words)}) (C c{number % 7}))\n")
    return "label\ttree\n" + "".join(lines)


KINDS: dict[str, tuple[Callable[[Path, Path], Any], Callable[[Path, Path], Any]]] = {
    "checkpoint": (_half_trained, _train),
    "fit": (_half_fitted, _fit),
    "parts": (_encode, _encode),
    "predictions": (_predict, _predict),
    "pairs": (_duplicates, _duplicates),
}


@cache
def _sound(kind: str) -> Sound:
    with small_blocks():
        return Sound(*KINDS[kind])


@dataclass(frozen=True)
class FolderTarget:
    """The folder of one kind of work."""

    kind: str
    needs: tuple[str, ...] = ("pyarrow",)

    def make(self, random: Random) -> bytes:
        """Return damage to one file, or to two."""
        names = sorted(_sound(self.kind).files)
        damage = []
        for name in random.sample(names, random.choice([1, 1, 1, 2])):
            entry = [random.choice(list(DAMAGE)), name, random.choice(names), random.randrange(2**32)]
            damage.append(entry)
        return json.dumps(damage).encode()

    def run(self, data: bytes, folder: Path) -> None:
        """Damage the folder, and resume its work."""
        sound = _sound(self.kind)
        files = dict(sound.files)
        for how, name, other, seed in json.loads(data):
            DAMAGE[how](files, name, other, Random(seed))
        with small_blocks():
            require(sound.result(files) == sound.expected, "the result is different")


def _flip(files: dict[str, bytes], name: str, other: str, random: Random) -> None:
    data = bytearray(files[name])
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    files[name] = bytes(data)


def _zero_page(files: dict[str, bytes], name: str, other: str, random: Random) -> None:
    data, size = files[name], random.choice(PAGES)
    start = random.randrange(0, len(data) + 1, size)
    files[name] = data[:start] + bytes(len(data[start : start + size])) + data[start + size :]


def _cut(files: dict[str, bytes], name: str, other: str, random: Random) -> None:
    files[name] = files[name][: random.randint(0, len(files[name]))]


def _empty(files: dict[str, bytes], name: str, other: str, random: Random) -> None:
    files[name] = b""


def _remove(files: dict[str, bytes], name: str, other: str, random: Random) -> None:
    files.pop(name, None)


def _swap(files: dict[str, bytes], name: str, other: str, random: Random) -> None:
    files[name], files[other] = files.get(other, b""), files.get(name, b"")


def _mutate(files: dict[str, bytes], name: str, other: str, random: Random) -> None:
    files[name] = mutate(files[name], [files.get(other, b"")], random)


DAMAGE: dict[str, Callable[[dict[str, bytes], str, str, Random], None]] = {
    "flip": _flip, "zero": _zero_page, "cut": _cut, "empty": _empty, "remove": _remove, "swap": _swap,
    "mutate": _mutate,
}  # fmt: skip
FOLDERS: dict[str, Target] = {f"folder.{kind}": FolderTarget(kind) for kind in KINDS}
