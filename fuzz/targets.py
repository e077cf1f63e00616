"""The targets by name."""

from __future__ import annotations

from importlib.util import find_spec
from random import Random

from fuzz.code import CODE
from fuzz.computations import COMPUTATIONS
from fuzz.documents import DOCUMENTS
from fuzz.folders import FOLDERS
from fuzz.models import MODELS
from fuzz.objects import OBJECTS
from fuzz.projects import PROJECTS
from fuzz.readers import READERS
from fuzz.stored import STORED
from fuzz.target import Target

_ALL: dict[str, Target] = {
    **READERS, **DOCUMENTS, **CODE, **PROJECTS, **OBJECTS, **STORED, **MODELS, **FOLDERS, **COMPUTATIONS,
}  # fmt: skip


def missing_modules(target: Target) -> list[str]:
    """Return the modules that a target needs but that are not installed."""
    return [module for module in target.needs if find_spec(module) is None]


TARGETS = {name: target for name, target in _ALL.items() if not missing_modules(target)}
LEFT_OUT = {name: missing for name, target in _ALL.items() if (missing := missing_modules(target))}


def make_case(name: str, seed: int, number: int) -> bytes:
    """Return a case: the same for the same target, seed and number."""
    return TARGETS[name].make(Random(f"{seed} {name} {number}"))
