"""Targets: objects that make cases and run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from fuzz.mutations import mutate


class Target(Protocol):
    """A case is bytes; a rejected case raises one of treedot's errors.

    ``needs`` are the modules that the target requires.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Return names of modules."""

    def make(self, random: Random) -> bytes:
        """Return a case."""

    def run(self, data: bytes, folder: Path) -> None:
        """Run a case, in a writable folder."""


@dataclass(frozen=True)
class FileTarget:
    """Files that are damaged and then read.

    Parameters
    ----------
    suffix : str
        The suffix of the file's name.
    seeds : callable
        Returns sound files, or their plain content.
    check : callable
        Reads a file, and raises if the result is wrong.
    pack : callable
        Makes a file from its plain content, adding lengths, checksums or compression, which would reveal any
        damage at once. So half of the cases are damaged before packing, the others after it.
    damage : callable
        Changes bytes; other seeds can be mixed in.
    needs : tuple of str
        The modules that it requires.
    """

    suffix: str
    seeds: Callable[[], list[bytes]]
    check: Callable[[Path], None]
    pack: Callable[[bytes], bytes] = bytes
    damage: Callable[[bytes, list[bytes], Random], bytes] = mutate
    needs: tuple[str, ...] = ()

    def make(self, random: Random) -> bytes:
        """Damage one of the seeds."""
        seeds = self.seeds()
        plain = random.choice(seeds)
        if self.pack is bytes or random.random() < 0.5:
            return self.pack(self.damage(plain, seeds, random))
        return mutate(self.pack(plain), [self.pack(random.choice(seeds))], random)

    def run(self, data: bytes, folder: Path) -> None:
        """Write the file and read it."""
        path = folder / f"case{self.suffix}"
        path.write_bytes(data)
        self.check(path)


class WrongResultError(Exception):
    """A result was accepted but wrong."""


def require(condition: object, message: str) -> None:
    """Raise if a result is wrong."""
    if not condition:
        raise WrongResultError(message)
