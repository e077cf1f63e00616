"""The folder of an interruptible training: its request, its lock, and the writing of the model.

``request.json`` holds everything that a training depends on, and never changes. ``written.json`` holds the
facts of the model; it exists from just before the model is written until the folder is removed. Every file
contains a digest of its content, its name and the request. It is checked when the file is read, so damaged
files and files of another training are rejected.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from treedot._storage.described_folder import digest_of_config
from treedot._storage.files import read_plain, remove_folder, write_folder, write_whole
from treedot._storage.locks import lock
from treedot.errors import ParameterError, SourceError
from treedot.models.linear_model import LinearModel
from treedot.models.model_folder import read_model
from treedot.models.training.tree_blocks import belonging

REQUEST, WRITTEN = "request.json", "written.json"


@contextlib.contextmanager
def sole_training(folder: Path, fill: Callable[[Path], object]) -> Iterator[None]:
    """Hold the folder of a training; raise if another process trains in it.

    Parameters
    ----------
    folder : Path
        The folder; created if it does not exist.
    fill : callable
        Writes the initial files of a training into a new folder, its argument.
    """
    running = f"another training is running in {folder}: wait for it, or choose another folder"
    with lock(folder, "refuse", busy=running):
        if not folder.exists():
            with write_folder(folder) as aside:
                fill(aside)
        elif not (folder / REQUEST).is_file():
            raise SourceError(f"{folder} exists but holds no training: choose a new folder")
        yield


def check_apart(model: Path, folder: Path) -> None:
    """Raise if the folder of a model contains that of its training, or the other way round."""
    inner, outer = folder.resolve(), model.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise ParameterError(f"the model {model} and the checkpoint {folder} must not be inside each other")


def save_model(model: LinearModel, target: Path, folder: Path, overwrite: bool) -> None:
    """Write the model of a training, and remove its folder, which this process holds.

    If the process is killed in between, both remain, with a note in the folder. ``is_written`` reads this
    note.
    """
    again = is_written(folder, target)
    write_json(folder / WRITTEN, {"facts": model.facts}, training_identity(folder))
    model.save(target, overwrite=overwrite or again)
    remove_folder(folder)


def is_written(folder: Path, target: Path) -> bool:
    """Return whether a model was written by the training of a folder; if so, it is safe to overwrite."""
    if not (folder / WRITTEN).is_file():
        return False
    try:
        written = read_json(folder / WRITTEN, training_identity(folder))
        return bool(written["facts"] == read_model(target).facts)
    except SourceError:
        return False


def check_request(folder: Path, request: dict[str, Any]) -> None:
    """Raise if the training in a folder has another request."""
    kept = read_json(folder / REQUEST)
    changed = [name for name in {**kept, **request} if kept.get(name) != request.get(name)]
    if changed:
        raise ParameterError(
            f"{folder} holds a training with other inputs or settings; changed since it began: "
            f"{', '.join(changed[:5])}. Use the original ones to resume it, or delete the "
            "folder to start again"
        )


def training_identity(folder: Path) -> str:
    """Return the digest of a training's request, which all its files hold."""
    return digest_of_config(read_json(folder / REQUEST))


def write_json(path: Path, content: dict[str, Any], of: str = "") -> None:
    """Write a file of a training with a digest of its content, its name and the training's identity."""
    whole = {**content, "checksum": _checksum(path, content, of)}
    with write_whole(path) as aside:
        aside.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path, of: str = "") -> dict[str, Any]:
    """Return the content of a file of a training; raise if it is damaged or of another training."""
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
        raise outdated(path.parent)
    if checksum != _checksum(path, found, of):
        raise damaged(path, path.parent)
    return found


def _checksum(path: Path, content: dict[str, Any], of: str) -> str:
    return digest_of_config({**belonging(path, of), "content": content})


def damaged(path: str | Path, folder: Path, why: str = "") -> SourceError:
    """Return the error for a damaged file of a training."""
    return SourceError(f"{path} is damaged{why}: delete {folder} to start again")


def outdated(folder: Path) -> SourceError:
    """Return the error for the folder of a training that this version cannot resume."""
    return SourceError(f"{folder} was written by an older version of treedot: delete it to start again")


@contextlib.contextmanager
def refused(folder: Path) -> Iterator[None]:
    """Append a remedy to errors about damaged files in the folder of a training.

    A file that the system refuses to open, for lack of permission or of file handles, may be intact.
    """
    try:
        yield
    except SourceError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            raise
        raise SourceError(f"{error}; delete {folder} to start again") from None
