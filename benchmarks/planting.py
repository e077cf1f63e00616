"""Copies of Python functions, reformatted, renamed and edited to a known degree."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

KINDS: dict[str, tuple[float, bool]] = {  # share of the statements that are edited, whether names change
    "exact": (0.0, False),
    "renamed": (0.0, True),
    "10 % edited": (0.1, False),
    "20 % edited": (0.2, False),
    "20 % edited, renamed": (0.2, True),
    "35 % edited": (0.35, False),
}


@dataclass(frozen=True)
class Planted:
    """A copy of a function: its source, its original, and the kind of edit."""

    source: str
    kind: str
    original: int  # the number of the original function


def plant(functions: Sequence[ast.FunctionDef], per_kind: int, seed: int, smallest: int) -> list[Planted]:
    """Return edited copies of randomly chosen functions; no function is copied twice."""
    chance = random.Random(seed)
    suitable = [k for k, f in enumerate(functions) if len(list(statements(f))) >= smallest]
    chosen = chance.sample(suitable, per_kind * len(KINDS))
    donors = [s for k in chance.sample(suitable, min(300, len(suitable))) for s in statements(functions[k])]
    found = []
    for number, kind in zip(chosen, list(KINDS) * per_kind, strict=True):
        share, renamed = KINDS[kind]
        function = copy.deepcopy(functions[number])
        _edit(function, share, donors, chance)
        if renamed:
            function = _Renaming(chance).visit(function)
        found.append(Planted(ast.unparse(ast.fix_missing_locations(function)) + "\n", kind, number))
    return found


def variants(function: ast.FunctionDef, count: int, share: float, seed: int = 0) -> Iterator[str]:
    """Yield copies of one function; a share of the statements is edited, using its own statements."""
    chance = random.Random(seed)
    donors = list(statements(function))
    for _ in range(count):
        edited = copy.deepcopy(function)
        _edit(edited, share, donors, chance)
        yield ast.unparse(ast.fix_missing_locations(edited)) + "\n"


def statements(function: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements in a function's body, at every depth."""
    return (node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function)


def _bodies(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body:
                yield body


def _edit(function: ast.FunctionDef, share: float, donors: Sequence[ast.stmt], chance: random.Random) -> None:
    """Insert, delete, replace or change the given share of the statements."""
    for _ in range(round(share * len(list(statements(function))))):
        body = chance.choice([b for b in _bodies(function) for _ in b])  # statements are equally likely
        place = chance.randrange(len(body))
        donor = copy.deepcopy(
            chance.choice([d for d in chance.choices(donors, k=9) if _is_simple(d)] or donors)
        )
        action = chance.choice(("insert", "delete", "replace", "change"))
        if action == "insert":
            body.insert(place, donor)
        elif action == "delete" and len(body) > 1 and _is_simple(body[place]):
            del body[place]
        elif action == "replace" and _is_simple(body[place]):
            body[place] = donor
        else:
            body[place] = _Changing(chance).visit(body[place])


def _is_simple(statement: ast.stmt) -> bool:
    return not hasattr(statement, "body")


class _Changing(ast.NodeTransformer):
    """Changes one expression: an operator, a condition, a call's arguments, or a value."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.done = False

    def visit(self, node: ast.AST) -> Any:
        if self.done or isinstance(node, ast.JoinedStr):
            return node
        changed = self._changed(node) if self.chance.random() < 0.5 else None
        if changed is not None:
            self.done = True
            return ast.copy_location(changed, node) if isinstance(changed, ast.expr) else changed
        return self.generic_visit(node)

    def _changed(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.BinOp):
            node.op = self.chance.choice([ast.Add(), ast.Sub(), ast.Mult(), ast.BitAnd()])
            return node
        if isinstance(node, ast.Compare):
            return ast.UnaryOp(ast.Not(), node)
        if isinstance(node, ast.Call):
            node.args.append(ast.Constant(self.chance.randrange(100)))
            return node
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return ast.Call(ast.Name("wrapped", ast.Load()), [node], [])
        return None


class _Renaming(ast.NodeTransformer):
    """Renames every name, attribute and argument consistently; constants change, too."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names: dict[str, str] = {}

    def _new(self, name: str) -> str:
        return self.names.setdefault(name, f"n{len(self.names)}_{self.chance.randrange(10**6)}")

    def visit(self, node: ast.AST) -> Any:
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                setattr(node, field, self._new(name))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self._new(name) for name in node.names]
        if isinstance(node, ast.Constant) and type(node.value) in (int, str):
            node.value = self._other(node.value)
        return node if isinstance(node, ast.JoinedStr) else self.generic_visit(node)

    def _other(self, value: int | str) -> int | str:
        return self.chance.randrange(1000) if isinstance(value, int) else self._new(value)
