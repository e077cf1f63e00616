"""What a target is: something that makes cases, and something that tries them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from fuzz.mutations import mutate


class Target(Protocol):
    """A case is bytes; a case that may be refused raises one of treedot's errors.

    ``needs`` are the modules without which there is nothing to try.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Return names of modules."""

    def make(self, random: Random) -> bytes:
        """Return a case."""

    def run(self, data: bytes, folder: Path) -> None:
        """Try a case, in a folder that may be written to."""


@dataclass(frozen=True)
class FileTarget:
    """Files that are damaged, and then read.

    Parameters
    ----------
    suffix : str
        What the name of the file ends in.
    seeds : callable
        Returns files that are sound, or the plain content of such files.
    check : callable
        Reads a file, and raises where what it finds is wrong.
    pack : callable
        Makes a file of its plain content, with the lengths, checksums or compression that would give away
        all damage at once: half of the cases are damaged before, the others after it.
    damage : callable
        Changes bytes, with others like them to mix in.
    needs : tuple of str
        The modules that it takes.
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
    """Something was neither refused nor right."""


def require(condition: object, message: str) -> None:
    """Raise where a result is wrong."""
    if not condition:
        raise WrongResultError(message)
