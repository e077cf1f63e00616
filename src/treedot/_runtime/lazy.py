"""Load the names of a package when they are first used."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # importing ``typing`` would take most of the time of ``import treedot``
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, read from its stub.

    The stub, ``__init__.pyi``, has one line ``from module import name as name`` for every name; type checkers
    read the same lines. A line ``from package import module as module`` makes a module an attribute of the
    package; ``__all__`` does not list it.
    """
    with open(file.removesuffix("c") + "i", encoding="utf-8") as stub:
        homes = {line.split()[3]: line.split()[1] for line in stub if line.startswith("from ")}
    homes.pop("__version__", None)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names, sorted(name for name, home in homes.items() if home != package)
