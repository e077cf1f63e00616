"""Copies of Python functions, reformatted, renamed and edited to a known degree."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Names = Literal["kept", "local", "all"]  # which names change

KINDS: dict[str, tuple[float, Names]] = {  # share of the statements that are edited, names that change
    "exact": (0.0, "kept"),
    "local names": (0.0, "local"),
    "renamed": (0.0, "all"),
    "10 % edited": (0.1, "kept"),
    "20 % edited": (0.2, "kept"),
    "20 % edited, renamed": (0.2, "all"),
    "35 % edited": (0.35, "kept"),
}
SMALLEST, LARGEST = 10, 40  # statements of a copied function
ACTIONS = ("insert", "delete", "replace")  # a third each
FOREIGN = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Assert)  # statements that fit anywhere


@dataclass(frozen=True)
class Planted:
    """A copy of a function: its source, its original, and the kind of edit."""

    source: str
    kind: str
    original: int  # the number of the original function


def plant(functions: Sequence[ast.FunctionDef], per_kind: int, seed: int) -> list[Planted]:
    """Return edited copies of randomly chosen functions; no function is copied twice."""
    chance = random.Random(seed)
    suitable = [k for k, function in enumerate(functions) if is_suitable(len(list(statements(function))))]
    chosen = chance.sample(suitable, per_kind * len(KINDS))
    donors = foreign_statements([functions[k] for k in chance.sample(suitable, min(300, len(suitable)))])
    return [
        Planted(_text(changed(functions[number], *KINDS[kind], donors, chance)), kind, number)
        for number, kind in zip(chosen, list(KINDS) * per_kind, strict=True)
    ]


def is_suitable(n_statements: int) -> bool:
    """Return whether a function with so many statements may be copied."""
    return SMALLEST <= n_statements <= LARGEST


def variants(function: ast.FunctionDef, count: int, share: float, seed: int = 0) -> Iterator[str]:
    """Yield copies of one function; a share of the statements is edited, using its own statements."""
    chance = random.Random(seed)
    donors = foreign_statements([function])
    for _ in range(count):
        yield _text(changed(function, share, "kept", donors, chance))


def _text(function: ast.AST) -> str:
    return ast.unparse(function) + "\n"


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements below a node, at every depth."""
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.stmt) and inner is not node)


def bodies_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements below a node."""
    for inner in ast.walk(node):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(body := getattr(inner, field, None), list) and body:
                yield body


def foreign_statements(nodes: Sequence[ast.AST]) -> list[ast.stmt]:
    """Return the statements below nodes that can be inserted elsewhere."""
    return [statement for node in nodes for statement in statements(node) if isinstance(statement, FOREIGN)]


def changed(node: Any, share: float, names: Names, foreign: Sequence[ast.stmt], chance: random.Random) -> Any:
    """Return a copy of a function or module with a share of its statements edited, and names changed."""
    copied = copy.deepcopy(node)
    _edit(copied, share, foreign, chance)
    if names != "kept":
        copied = _Renaming(chance, _local_names(copied) if names == "local" else None).visit(copied)
    return ast.fix_missing_locations(copied)


def chosen_to_edit(count: int, share: float, chance: random.Random) -> set[int]:
    """Return a share of the numbers up to ``count``."""
    return set(chance.sample(range(count), round(share * count)))


def _edit(node: ast.AST, share: float, foreign: Sequence[ast.stmt], chance: random.Random) -> None:
    """Insert a foreign statement before, delete or replace a share of the statements, a third each.

    A statement with a body is kept: it gets a foreign one before it.
    """
    every = list(statements(node))
    chosen = {id(every[number]) for number in chosen_to_edit(len(every), share, chance)}
    for body in list(bodies_of(node)):
        new: list[ast.stmt] = []
        for statement in body:
            action = chance.choice(ACTIONS) if id(statement) in chosen else "keep"
            is_compound = hasattr(statement, "body")
            if action in ("insert", "replace") or (action == "delete" and is_compound):
                new.append(copy.deepcopy(chance.choice(foreign)))
            if action in ("keep", "insert") or is_compound:
                new.append(statement)
        body[:] = new or [ast.Pass()]


def _local_names(function: ast.AST) -> set[str]:
    """Return the names of arguments and of variables that are assigned in a function."""
    nodes = list(ast.walk(function))
    found = {node.arg for node in nodes if isinstance(node, ast.arg)}
    found |= {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    found |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    return found.difference(*(n.names for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal))))


class _Renaming(ast.NodeTransformer):
    """Renames consistently: some names, or all names and attributes, with other numbers and strings."""

    def __init__(self, chance: random.Random, local: set[str] | None = None) -> None:
        self.chance = chance
        self.local = local
        self.names: dict[str, str] = {}

    def visit(self, node: ast.AST) -> Any:
        is_variable = isinstance(node, (ast.Name, ast.arg, ast.ExceptHandler))
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str) and (self.local is None or (is_variable and name in self.local)):
                setattr(node, field, self._new(name))
        if self.local is None and isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self._new(name) for name in node.names]
        if self.local is None and isinstance(node, ast.Constant) and type(node.value) in (int, str):
            node.value = self._other(node.value)
        return node if isinstance(node, ast.JoinedStr) and self.local is None else self.generic_visit(node)

    def _new(self, name: str) -> str:
        return self.names.setdefault(name, f"n{len(self.names)}_{self.chance.randrange(10**6)}")

    def _other(self, value: Any) -> int | str:
        return self._new(value) if isinstance(value, str) else self.chance.randrange(1000)
