"""Check the docstrings of all public names with numpydoc's validation, and with three rules of our own.

The public names are those in ``__all__`` of ``MODULES``, and of their classes the methods and properties that
treedot defines. An override without a docstring inherits one if its parameters are the same. Our own rules:

- TD01: the type of a parameter that has a default states it, as in ``int, default=10``.
- TD02: a class documents each attribute that ``fit`` sets (``classes_``), and a named tuple or data class
  each field, under ``Attributes`` or ``Parameters``.
- TD03: an entry under ``Attributes`` has a type and a description.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from numpydoc.docscrape import NumpyDocString, get_doc_object
from numpydoc.validate import Validator, validate

PACKAGE = "treedot"
MODULES = [
    "treedot",
    "treedot.batch",
    "treedot.clones",
    "treedot.clones.report",
    "treedot.errors",
    "treedot.kernels",
    "treedot.models",
    "treedot.models.explain",
    "treedot.readers",
    "treedot.search",
    "treedot.trees",
    "treedot.vectors",
    "treedot.vectors.fidelity",
    "treedot.vectors.gpu",  # needs no PyTorch to be imported
]

LEFT_OUT = {
    "ES01": "many summaries need no extension",
    "SA01": "only main classes have relatives worth naming",
    "EX01": "the example of a class, or a page of docs/, shows most methods",
}


def main() -> int:
    """Print every fault; return 1 where there is one."""
    faults = [f"{name}: {code} {text}" for name, kind in public().items() for code, text in check(name, kind)]
    print("\n".join(faults) or "The docstrings of all public names are complete.")
    return bool(faults)


def public() -> dict[str, Any]:
    """Return the public objects by the names under which they are defined."""
    found: dict[str, Any] = {}
    for module in map(importlib.import_module, MODULES):
        for thing in (getattr(module, name) for name in names_of(module)):
            if isinstance(thing, ModuleType):
                continue
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing
            for base in inspect.getmro(thing) if inspect.isclass(thing) else ():
                if base.__module__.startswith(PACKAGE):
                    found |= {f"{base.__module__}.{base.__qualname__}.{name}": f for name, f in members(base)}
    return found


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a module: ``__all__``, or else the functions and classes that it defines."""
    own = [
        name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__
    ]
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods and properties that a class itself defines, but for overrides that inherit all."""
    documented = FunctionType | property | functools.cached_property | classmethod | staticmethod
    for name, member in vars(kind).items():
        is_public = name == "__call__" or not name.startswith("_")
        if is_public and isinstance(member, documented) and not inherits(kind, name):
            yield name, member


def inherits(kind: type, name: str) -> bool:
    """Return whether a method has no docstring and the parameters of the documented method it overrides."""
    if vars(kind)[name].__doc__:
        return False
    above = [
        getattr(base, name) for base in kind.__mro__[1:] if getattr(vars(base).get(name), "__doc__", None)
    ]
    return bool(above) and parameters(getattr(kind, name)).keys() == parameters(above[0]).keys()


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of anything that can be called."""
    try:
        return dict(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # a property, an exception
        return {}


def check(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    """Yield the code and the text of every fault."""
    loaded = Validator._load_obj(name)
    documented = Validator(get_doc_object(loaded)).doc_all_parameters
    skipped = set(LEFT_OUT)
    if inspect.isclass(thing):
        yield from attribute_faults(thing, set(documented))
        if fields_of(thing):
            skipped.add("PR01")  # TD02 is about the same
    yield from (fault for fault in validate(name)["errors"] if fault[0] not in skipped)
    for parameter in parameters(loaded).values():
        kind, expected = documented.get(parameter.name, ("",))[0], shown(parameter.default)
        if kind and parameter.default is not parameter.empty and f", {expected}" not in kind:
            yield "TD01", f'Parameter "{parameter.name}" needs "{expected}" after its type'


def attribute_faults(kind: type, documented: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the faults of a class by TD02 and TD03, given the parameters that it documents."""
    for entry in NumpyDocString(inspect.getdoc(kind) or "")["Attributes"]:
        documented |= set(entry.name.split(", "))
        if not entry.type or not entry.desc:
            yield "TD03", f'Attribute "{entry.name}" needs a type and a description'
    if missing := (fields_of(kind) | fitted(kind)) - documented:
        yield "TD02", f"Attributes {sorted(missing)} not documented"


def fields_of(kind: type) -> set[str]:
    """Return the fields of a named tuple or of a data class."""
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind) if not field.name.startswith("_")}
    return set(getattr(kind, "_fields", ()))


def fitted(kind: type) -> set[str]:
    """Return the attributes with a trailing underscore that treedot's code sets."""
    own = (base for base in inspect.getmro(kind) if base.__module__.startswith(PACKAGE))
    return {
        name for base in own for name in re.findall(r"self\.([a-z]\w*_)\b[^=\n]* = ", inspect.getsource(base))
    }


def shown(default: Any) -> str:
    """Return a default as a type states it."""
    if isinstance(default, str):
        return f'default="{default}"'
    if isinstance(default, int) and default >= 1024 and default.bit_count() == 1:
        return f"default=2**{default.bit_length() - 1}"
    if default is None or type(default) in (bool, int, float, tuple):
        return f"default={default}"
    return "default="  # and a name for an object


if __name__ == "__main__":
    sys.exit(main())
