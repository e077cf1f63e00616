"""Write and read folders of two files: ``config.json``, and arrays in ``weights.safetensors``.

The configuration holds two digests: one of the arrays' file, one of the rest of the configuration. They
reveal folders that are damaged, truncated, or mixed from two. The configuration holds no paths, and reading a
folder executes none of its content.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from treedot._runtime.array_types import Array
from treedot._storage.files import check_parent, existing_folder, open_plain, read_plain, write_folder
from treedot._storage.locks import lock
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.errors import SourceError, TreedotError

CONFIG, WEIGHTS = "config.json", "weights.safetensors"
MAX_CONFIG = 1 << 26  # bytes
ATTEMPTS = 100  # attempts to read a folder while other processes replace it

T = TypeVar("T")


class DescribedFolder(NamedTuple):
    """A kind of folder.

    Attributes
    ----------
    noun : str
        The word for it in messages, such as "model".
    versions : tuple of int
        The versions that are read.
    renew : str
        The advice for folders of other versions, such as "train again".
    """

    noun: str
    versions: tuple[int, ...]
    renew: str

    @property
    def format(self) -> str:
        """The name of the format in the configuration."""
        return f"treedot {self.noun}"

    def write(
        self,
        path: str | os.PathLike[str],
        config: Mapping[str, Any],
        arrays: Mapping[str, Array],
        *,
        overwrite: bool = False,
    ) -> None:
        """Write a folder; ``overwrite`` allows replacing an existing one of the same kind."""
        target = Path(path)
        with self._replaceable(target, overwrite), write_folder(target) as aside:
            write_arrays(aside / WEIGHTS, {"file": self.format}, arrays)
            whole = {"format": self.format, **config, "weights": digest_of_file(aside / WEIGHTS)}
            whole["digest"] = digest_of_config(whole)
            text = json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False)
            (aside / CONFIG).write_text(text + "\n", encoding="utf-8")

    @contextlib.contextmanager
    def _replaceable(self, target: Path, overwrite: bool) -> Iterator[None]:
        """Check that a folder may be written to ``target``, and lock it against other processes."""
        self.check_target(target, overwrite)
        with lock(target):
            self.check_target(target, overwrite)
            yield

    def check_target(self, target: Path, overwrite: bool) -> None:
        """Raise SourceError if ``target`` may not be written, so that training need not run first."""
        check_parent(target)
        found = existing_folder(target)
        if found.exists() and not (overwrite and self.describes(found)):
            what = f"it is not a {self.noun}"
            if self.describes(found):
                what = f"to replace the {self.noun}, use overwrite=True"
            raise SourceError(f"cannot write {target}: it exists; {what}")

    def describes(self, folder: Path) -> bool:
        """Whether a folder holds nothing but one of this kind, of any version and possibly damaged."""
        try:
            names = set(os.listdir(folder))
            config = read_plain(folder / CONFIG, 200) if CONFIG in names else b""
        except (OSError, SourceError):
            return False
        return names <= {CONFIG, WEIGHTS} and f'"format": "{self.format}"'.encode() in config

    def read(
        self, path: str | os.PathLike[str], restore: Callable[[dict[str, Any], dict[str, Array]], T]
    ) -> T:
        """Return what ``restore`` makes of the checked configuration and the arrays of a folder.

        If another process replaces the folder meanwhile, the new one is read, never one file of each.
        """
        name = f"the {self.noun} {os.fspath(path)}"
        for _ in range(ATTEMPTS):
            before = _identity(path)
            try:
                found = self._read_folder(existing_folder(path), restore)
            except (SourceError, OSError) as error:
                if _identity(path) == before:
                    raise SourceError(f"cannot read {name}: {error}") from None
            else:
                if _identity(path) == before:
                    return found
        raise SourceError(f"cannot read {name}: other processes keep replacing it; try again")

    def _read_folder(self, folder: Path, restore: Callable[[dict[str, Any], dict[str, Array]], T]) -> T:
        if not folder.is_dir():
            raise SourceError("it is a file, not a folder" if folder.exists() else "no such folder")
        config = self._read_config(_regular(folder / CONFIG))
        weights = _regular(folder / WEIGHTS)
        if digest_of_file(weights) != config.get("weights"):
            raise SourceError(f"{WEIGHTS} is damaged, or belongs to another {self.noun}")
        try:
            return restore(config, read_arrays(weights)[1])
        except TreedotError as error:
            raise SourceError(str(error)) from None

    def _read_config(self, path: Path) -> dict[str, Any]:
        """Read a configuration and verify its digest."""
        text = read_plain(path, MAX_CONFIG + 1)
        if len(text) > MAX_CONFIG:
            raise SourceError(f"{CONFIG} is larger than {MAX_CONFIG >> 20} MiB")
        try:
            config = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{CONFIG} is truncated, or is not JSON: {error}") from None
        if not isinstance(config, dict) or config.get("format") != self.format:
            raise SourceError(f"{CONFIG} does not describe a {self.format}")
        version = config.get("version")
        if version not in self.versions:
            readable = " and ".join(map(str, self.versions))
            raise SourceError(
                f"{CONFIG} has version {version!r}, but this treedot reads {readable}: "
                f"{self.renew}, or update treedot"
            )
        if config.pop("digest", None) != digest_of_config(config):
            raise SourceError(f"{CONFIG} was changed after it was written: its digest does not match")
        return config


def _identity(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _regular(path: Path) -> Path:
    """Return ``path`` if it is a plain file, not a link, which could lead anywhere."""
    if path.is_symlink() or not path.is_file():
        raise SourceError(f"{path.name} is missing, or is not a plain file")
    return path


def digest_of_file(path: Path) -> str:
    """Return the digest of a file, in hexadecimal."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16)).hexdigest()


def digest_of_config(config: Mapping[str, Any]) -> str:
    """Return the digest of a configuration, in hexadecimal."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
