"""Write and read the folder of a model: ``config.json`` and ``weights.safetensors``.

The configuration holds the inputs, the classes (unless the model predicts numbers), further facts, and two
digests: one of the weights' file, one of the rest of the configuration. They reveal folders that are damaged,
truncated, or mixed from two models.
The configuration holds no paths, and loading a model executes none of its content.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot._runtime.array_types import Array
from treedot._storage.files import check_parent, existing_folder, open_plain, read_plain, write_folder
from treedot._storage.locks import lock
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.errors import ParameterError, SourceError, TreedotError
from treedot.models.inputs.inputs import Inputs, described, restored, spans
from treedot.models.inputs.model_input import StoredInput

CONFIG, WEIGHTS = "config.json", "weights.safetensors"
FORMAT = "treedot model"
VERSION, NUMBERS_VERSION = 2, 3  # of models that predict classes, and of those that predict numbers
MAX_CONFIG = 1 << 26  # bytes
MAX_CLASSES = 1 << 20
ATTEMPTS = 100  # attempts to read a folder while other processes replace it

DTYPES: dict[str, np.dtype[Any]] = {
    "columns": np.dtype(np.int64),
    "weights": np.dtype(np.float32),
    "bias": np.dtype(np.float64),
}


def write_model(
    path: str | os.PathLike[str],
    inputs: Sequence[StoredInput],
    classes: Array | None,
    arrays: Mapping[str, Array],
    facts: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> None:
    """Write the folder of a model; ``overwrite`` allows replacing an existing model.

    ``classes`` is None for a model that predicts numbers.
    """
    target = Path(path)
    if (
        classes is not None
        and classes.dtype.kind not in "Uiub"
        and not all(type(label) is str for label in classes.tolist())
    ):
        raise ParameterError(f"cannot save classes of type {classes.dtype}: use texts or integers as y")
    configs, learned = described(inputs)
    typed = {name: np.ascontiguousarray(arrays[name], dtype) for name, dtype in DTYPES.items()}
    with _replaceable(target, overwrite), write_folder(target) as aside:
        write_arrays(aside / WEIGHTS, {"file": FORMAT}, typed | learned)
        config = {
            "format": FORMAT,
            "version": NUMBERS_VERSION if classes is None else VERSION,
            "inputs": configs,
            **({} if classes is None else {"classes": classes.tolist()}),
            "facts": dict(facts),
            "weights": digest_of_file(aside / WEIGHTS),
        }
        config["digest"] = digest_of_config(config)
        text = json.dumps(config, ensure_ascii=False, indent=2, allow_nan=False)
        (aside / CONFIG).write_text(text + "\n", encoding="utf-8")


@contextlib.contextmanager
def _replaceable(target: Path, overwrite: bool) -> Iterator[None]:
    """Check that a model may be written to ``target``, and lock it against other processes."""
    check_model_target(target, overwrite)
    with lock(target):
        check_model_target(target, overwrite)
        yield


def check_model_target(target: Path, overwrite: bool) -> None:
    """Raise SourceError if ``target`` exists and may not be replaced, so that training need not run first."""
    check_parent(target)
    found = existing_folder(target)
    if found.exists() and not (overwrite and _is_model(found)):
        what = "to replace the model, use overwrite=True" if _is_model(found) else "it is not a model"
        raise SourceError(f"cannot write {target}: it exists; {what}")


def _is_model(folder: Path) -> bool:
    """Whether a folder holds nothing but a model, of any version and possibly damaged."""
    try:
        names = set(os.listdir(folder))
        config = read_plain(folder / CONFIG, 200) if CONFIG in names else b""
    except (OSError, SourceError):
        return False
    return names <= {CONFIG, WEIGHTS} and b'"format": "treedot' in config


class StoredModel(NamedTuple):
    """The content of a model's folder."""

    inputs: list[StoredInput]
    classes: Array | None
    columns: Array
    weights: Array
    bias: Array
    facts: dict[str, Any]


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read and check the folder of a model.

    If another process replaces the model meanwhile, the new one is read, never one file of each.
    """
    for _ in range(ATTEMPTS):
        before = _identity(path)
        try:
            found = _read_folder(existing_folder(path))
        except (SourceError, OSError) as error:
            if _identity(path) == before:
                raise SourceError(f"cannot read the model {os.fspath(path)}: {error}") from None
        else:
            if _identity(path) == before:
                return found
    raise SourceError(
        f"cannot read the model {os.fspath(path)}: other processes keep replacing it; try again"
    )


def _identity(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _read_folder(folder: Path) -> StoredModel:
    if not folder.is_dir():
        raise SourceError("no such folder")
    config = _read_config(_regular(folder / CONFIG))
    weights = _regular(folder / WEIGHTS)
    if digest_of_file(weights) != config["weights"]:
        raise SourceError(f"{WEIGHTS} is damaged, or belongs to another model")
    classes = _checked_classes(config["classes"]) if "classes" in config else None
    try:
        _, arrays = read_arrays(weights)
        linear = {name: array for name, array in arrays.items() if not name.startswith("input")}
        inputs = restored(config["inputs"], {n: x for n, x in arrays.items() if n not in linear})
        _check_arrays(linear, 1 if classes is None or classes.size == 2 else classes.size, inputs)
    except TreedotError as error:
        raise SourceError(str(error)) from None
    return StoredModel(inputs, classes, linear["columns"], linear["weights"], linear["bias"], config["facts"])


def _regular(path: Path) -> Path:
    """Return ``path`` if it is a plain file, not a link, which could lead anywhere."""
    if path.is_symlink() or not path.is_file():
        raise SourceError(f"{path.name} is missing, or is not a plain file")
    return path


def _read_config(path: Path) -> dict[str, Any]:
    """Read a configuration and verify its digest."""
    text = read_plain(path, MAX_CONFIG + 1)
    if len(text) > MAX_CONFIG:
        raise SourceError(f"{CONFIG} is larger than {MAX_CONFIG >> 20} MiB")
    try:
        config = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{CONFIG} is truncated, or is not JSON: {error}") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise SourceError(f"{CONFIG} does not describe a treedot model")
    version = config.get("version")
    if version not in (VERSION, NUMBERS_VERSION):
        raise SourceError(
            f"{CONFIG} has version {version!r}, but this treedot reads {VERSION} and {NUMBERS_VERSION}: "
            "train again, or update treedot"
        )
    if config.pop("digest", None) != digest_of_config(config):
        raise SourceError(f"{CONFIG} was changed after it was written: its digest does not match")
    kinds = {"inputs": list, "classes": list, "facts": dict, "weights": str}
    if version == NUMBERS_VERSION:
        del kinds["classes"]
        if "classes" in config:
            raise SourceError(f"{CONFIG} has classes, but its version is that of models that predict numbers")
    if not all(isinstance(config.get(name), kind) for name, kind in kinds.items()):
        raise SourceError(f"{CONFIG} lacks one of {', '.join(kinds)}")
    return config


def _checked_classes(values: list[Any]) -> Array:
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {str, int, bool} or not 2 <= len(set(values)) == len(values):
        raise SourceError("the classes must be at least two distinct texts or integers")
    if len(values) > MAX_CLASSES:
        raise SourceError(f"there are more than {MAX_CLASSES} classes")
    classes = np.array(values)
    if classes.dtype.kind not in "Uiub":
        raise SourceError("the classes are integers of more than 64 bits")
    return classes


def _check_arrays(arrays: Mapping[str, Array], problems: int, inputs: Inputs) -> None:
    """Raise SourceError unless types and shapes are right, columns ascend, and all values are finite."""
    if {name: array.dtype for name, array in arrays.items()} != DTYPES:
        raise SourceError(f"{WEIGHTS} does not hold the arrays {', '.join(DTYPES)} with the right types")
    columns, weights, bias = (arrays[name] for name in DTYPES)
    if columns.ndim != 1 or weights.shape != (columns.size, problems) or bias.shape != (problems,):
        raise SourceError(f"{WEIGHTS} has arrays whose shapes do not match {problems} score(s)")
    width = sum(each.width for each in inputs)
    if columns.size and (columns[0] < 0 or columns[-1] >= width or (np.diff(columns) <= 0).any()):
        raise SourceError(f"{WEIGHTS} has columns that are out of order or out of range")
    for each, which, _ in spans(inputs, columns, weights):
        if each.is_dense and which.size != each.width:
            raise SourceError(
                f"{WEIGHTS} does not have one weight for each of the {each.width} columns of an input"
            )
    if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        raise SourceError(f"{WEIGHTS} has weights that are not finite")


def digest_of_file(path: Path) -> str:
    """Return the digest of a file, in hexadecimal."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16)).hexdigest()


def digest_of_config(config: Mapping[str, Any]) -> str:
    """Return the digest of a configuration, in hexadecimal."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
