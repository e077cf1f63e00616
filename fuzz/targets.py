"""What is fuzzed, by name: one entry each."""

from __future__ import annotations

from random import Random

from fuzz.computations import COMPUTATIONS
from fuzz.objects import OBJECTS
from fuzz.readers import READERS
from fuzz.stored import STORED
from fuzz.target import Target

TARGETS: dict[str, Target] = {**READERS, **OBJECTS, **STORED, **COMPUTATIONS}


def make_case(name: str, seed: int, number: int) -> bytes:
    """Return a case: the same for the same target, seed and number."""
    return TARGETS[name].make(Random(f"{seed} {name} {number}"))
