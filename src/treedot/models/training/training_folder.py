"""The folder of a training that may be killed: its trees, the α of every tree, and where it stands.

====================== ================================================================================
``request.json``       what was asked for: files with their sizes and times, settings; never changed
``facts.json``         what was read: the sizes of the blocks, the classes; never changed
``trees/``             the trees, in blocks; never changed
``choice.json``        the settings that cross-validation chose
``alpha.0, alpha.1``   the α of all trees; pass n reads those of pass n - 1, and writes those of pass n
``state.safetensors``  the weights, and how many passes, and groups of blocks of the next one, they hold
``written.json``       what is known of the model, before it is written and the folder removed
====================== ================================================================================

The folder appears when all trees have been read. Only the state is replaced, whole; the α that it belongs
to are never written over before the next one: those after pass n are in the file of their own parity.

Every file is checked when it is read. All but the α hold a digest of their content and of the request: a file
that is damaged, or of another training, is refused. The digests of the α, one per block, are in the state.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray, IntArray, Matrix
from treedot._storage.files import open_plain, read_plain, reason, remove_folder, write_folder, write_whole
from treedot._storage.locks import lock
from treedot._storage.safetensors import read_sealed, write_arrays
from treedot._storage.seals import DIGEST_BYTES, new_hash
from treedot.errors import ParameterError, SourceError
from treedot.models.linear_model import LinearModel
from treedot.models.model_folder import digest_of_config, read_model
from treedot.models.training.tree_blocks import Block, BlockFacts, belonging, read_block, write_blocks
from treedot.parameters import checked_path
from treedot.trees import Forest

REQUEST, FACTS, CHOICE, WRITTEN = "request.json", "facts.json", "choice.json", "written.json"
TREES, STATE = "trees", "state.safetensors"
ALPHA, ALPHA_DIGESTS = np.dtype("<f4"), "alpha_digests"


class State(NamedTuple):
    """Where a training stands; the arrays are changed in place."""

    weights: Matrix  # (columns, problems), float32
    mean_weights: Matrix  # over the visits of the pass, or of the last one where none was begun
    bias: FloatArray
    mean_bias: FloatArray
    loss: FloatArray  # what the trees that the pass has visited add to P, as they were met
    excess: FloatArray  # and to the duality gap
    gap: FloatArray  # after the last complete pass
    progress: IntArray  # complete passes, and groups of blocks visited in the next one

    @classmethod
    def begin(cls, columns: int, problems: int) -> State:
        """Return the state before the first pass."""
        weights, mean_weights = np.zeros((2, columns, problems), np.float32)
        bias, mean_bias, loss, excess = np.zeros((4, problems))
        gap, progress = np.full(problems, np.inf), np.zeros(2, np.int64)
        return cls(weights, mean_weights, bias, mean_bias, loss, excess, gap, progress)


class TrainingFolder:
    """An open folder of a training.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = training_identity(path)
        facts = read_json(path / FACTS, self._identity)
        if set(facts) != set(BlockFacts._fields) or not facts["sizes"]:
            raise damaged(path / FACTS, path)
        self.facts = BlockFacts(**facts)
        self._first = np.concatenate([[0], np.cumsum(self.facts.sizes)])
        # Of the α of every block, for either parity.
        self._digests = np.zeros((2, len(self.facts.sizes), DIGEST_BYTES), np.uint8)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return int(self._first[-1])

    def block(self, number: int) -> Block:
        """Return a block of trees."""
        with refused(self.path):
            return read_block(self.path / TREES, number, self._identity)

    def choice(self, choose: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the settings that were chosen; where none were yet, choose and keep them."""
        path = self.path / CHOICE
        if not path.exists():
            write_json(path, choose(), self._identity)
        choice = read_json(path, self._identity)
        if not {"decay", "C", "trials"} <= set(choice):
            raise damaged(path, self.path)
        return choice

    def load(self, columns: int, problems: int) -> State:
        """Return where the training stands."""
        path = self.path / STATE
        begin = State.begin(columns, problems)
        if not path.exists():
            return begin
        with refused(self.path):
            arrays = read_sealed(path, belonging(path, self._identity))
        for name, wanted in {**begin._asdict(), ALPHA_DIGESTS: self._digests}.items():
            found = arrays.get(name)
            if found is None or (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
                raise damaged(path, self.path)
            wanted[...] = found
        return begin

    def save(self, state: State) -> None:
        """Keep where the training stands, in the place of what was kept before."""
        path, arrays = self.path / STATE, {**state._asdict(), ALPHA_DIGESTS: self._digests}
        write_arrays(path, belonging(path, self._identity), arrays, sealed=True)

    def read_alpha(self, passes: int, blocks: IntArray, problems: int) -> Matrix:
        """Return the α that trees of some blocks have after so many passes, one block behind the other."""
        sizes = [self.facts.sizes[block] for block in blocks]
        alpha = np.zeros((sum(sizes), problems), ALPHA)
        if passes:
            rows = np.split(alpha, np.cumsum(sizes)[:-1])
            path = self._alpha_path(passes)
            with refused(self.path):
                file = open_plain(path)
            with file:
                for block, part in zip(blocks, rows, strict=True):
                    file.seek(int(self._first[block]) * problems * ALPHA.itemsize)
                    whole = file.readinto(part.data) == part.nbytes
                    if not whole or self._digest(passes, block) != _digest_of(part):
                        raise damaged(path, self.path)
        return alpha

    def write_alpha(self, passes: int, blocks: IntArray, alpha: Matrix) -> None:
        """Keep the α that trees of some blocks have after so many passes."""
        ends = np.cumsum([self.facts.sizes[block] for block in blocks])
        with self._written_alpha(passes) as file:
            for block, part in zip(blocks, np.split(alpha, ends[:-1]), strict=True):
                file.seek(int(self._first[block]) * alpha.shape[1] * ALPHA.itemsize)
                file.write(part.data)
                self._digests[passes % 2, block] = np.frombuffer(_digest_of(part), np.uint8)

    def _digest(self, passes: int, block: int) -> bytes:
        return bytes(self._digests[passes % 2, block])

    def _alpha_path(self, passes: int) -> Path:
        return self.path / f"alpha.{passes % 2}"

    @contextlib.contextmanager
    def _written_alpha(self, passes: int) -> Iterator[Any]:
        path = self._alpha_path(passes)
        try:
            path.touch()
            with path.open("r+b") as file:
                yield file
        except OSError as error:
            raise SourceError(f"cannot write {path}: {reason(error)}") from error


@contextlib.contextmanager
def training_folder(
    path: str | os.PathLike[str],
    request: dict[str, Any],
    column: str,
    read: Callable[[], Iterable[Forest]],
    check: Callable[[BlockFacts], object],
) -> Iterator[TrainingFolder]:
    """Open the folder of a training, made now if there is none; no other process may have it open.

    Parameters
    ----------
    path : path
        The folder. One that was made for another request is refused.
    request : dict
        All that the training depends on, as JSON values.
    column : str
        The column that holds the classes.
    read : callable
        Returns the trees, in forests.
    check : callable
        Raises where what was read cannot be trained on; then there is no folder.
    """
    folder = checked_path("checkpoint", path)

    def fill(aside: Path) -> None:
        write_json(aside / REQUEST, request)
        identity = training_identity(aside)
        (aside / TREES).mkdir()
        facts = write_blocks(aside / TREES, read(), column, identity)
        check(facts)
        write_json(aside / FACTS, facts._asdict(), identity)

    with sole_training(folder, fill):
        check_request(folder, request)
        yield TrainingFolder(folder)


@contextlib.contextmanager
def sole_training(folder: Path, fill: Callable[[Path], object]) -> Iterator[None]:
    """Hold the folder of a training; raise where another process trains in it.

    Parameters
    ----------
    folder : Path
        The folder, made now if there is none.
    fill : callable
        Takes a new folder, and writes into it all that a training begins with.
    """
    running = f"another training is running in {folder}: wait for it, or give another folder"
    with lock(folder, "refuse", busy=running):
        if not folder.exists():
            with write_folder(folder) as aside:
                fill(aside)
        elif not (folder / REQUEST).is_file():
            raise SourceError(f"{folder} exists and holds no training: give a folder that does not exist")
        yield


def check_apart(model: Path, folder: Path) -> None:
    """Raise where the folder of a model and that of its training are in each other."""
    inner, outer = folder.resolve(), model.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise ParameterError(f"neither of the model {model} and the checkpoint {folder} may be in the other")


def save_model(model: LinearModel, target: Path, folder: Path, overwrite: bool) -> None:
    """Write the model of a training, and remove its folder, which this process holds.

    A run that is killed in between leaves both, and a note in the folder, by which ``is_written`` knows it.
    """
    again = is_written(folder, target)
    write_json(folder / WRITTEN, {"facts": model.facts}, training_identity(folder))
    model.save(target, overwrite=overwrite or again)
    remove_folder(folder)


def is_written(folder: Path, target: Path) -> bool:
    """Return whether a model is that of a training whose folder was left: to write it again is no harm."""
    if not (folder / WRITTEN).is_file():
        return False
    try:
        written = read_json(folder / WRITTEN, training_identity(folder))
        return bool(written["facts"] == read_model(target).facts)
    except SourceError:
        return False


def check_request(folder: Path, request: dict[str, Any]) -> None:
    """Raise where the training of a folder was begun otherwise."""
    kept = read_json(folder / REQUEST)
    changed = [name for name in {**kept, **request} if kept.get(name) != request.get(name)]
    if changed:
        raise ParameterError(
            f"{folder} holds a training that was begun otherwise; these changed since: "
            f"{', '.join(changed[:5])}. Go on with what it was begun with, or delete the folder to begin anew"
        )


def training_identity(folder: Path) -> str:
    """Return the digest of a training's request, which all its files hold."""
    return digest_of_config(read_json(folder / REQUEST))


def write_json(path: Path, content: dict[str, Any], of: str = "") -> None:
    """Write a file of a training, with a checksum of its content, its name and the training's identity."""
    whole = {**content, "checksum": _checksum(path, content, of)}
    with write_whole(path) as aside:
        aside.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path, of: str = "") -> dict[str, Any]:
    """Return the content of a file of a training; raise where it is not what was written."""
    with refused(path.parent):
        text = read_plain(path)
    try:
        found = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(path, path.parent, f": {error}") from None
    if not isinstance(found, dict):
        raise damaged(path, path.parent)
    checksum = found.pop("checksum", None)
    if checksum == digest_of_config(found):
        raise SourceError(f"{path.parent} was begun by an older version of treedot: delete it to begin anew")
    if checksum != _checksum(path, found, of):
        raise damaged(path, path.parent)
    return found


def _checksum(path: Path, content: dict[str, Any], of: str) -> str:
    return digest_of_config({**belonging(path, of), "content": content})


def _digest_of(alpha: Matrix) -> bytes:
    found: bytes = new_hash(alpha.data).digest()
    return found


def damaged(path: str | Path, folder: Path, why: str = "") -> SourceError:
    """Return the error for a file of a training that does not hold what was written."""
    return SourceError(f"{path} is damaged{why}: delete {folder} to begin anew")


@contextlib.contextmanager
def refused(folder: Path) -> Iterator[None]:
    """Add what to do to the errors of damaged files in the folder of a training.

    A file that the system refuses to open, for want of rights or of free handles, may be intact.
    """
    try:
        yield
    except SourceError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            raise
        raise SourceError(f"{error}; delete {folder} to begin anew") from None
