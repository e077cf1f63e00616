"""The definition of pairs of similar blocks, in plain Python and with time to spare.

``find_duplicate_blocks`` is tested against it, on code in which no run is equal in too many places.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import product
from typing import Any, NamedTuple

from treedot.clones.blocks.duplicate_blocks import MIN_BITS, Run
from treedot.clones.blocks.equal_runs import SEED_NODES
from treedot.clones.blocks.run_similarity import STRETCH
from treedot.clones.blocks.similar_runs import MIN_LINES
from treedot.clones.information import BACKGROUND
from treedot.trees import Forest, Tree


class Statement(NamedTuple):
    """A statement: its subtree, its first node and the one after its last, and its lines."""

    tree: Tree
    start: int
    end: int
    lines: tuple[int, int]


Body = list[Statement]
Key = tuple[int, int]  # of a body: its node, and its first statement's first node


class Definition:
    """The blocks of some files."""

    def __init__(self, files: Forest, threshold: float, min_nodes: int) -> None:
        self.threshold, self.min_nodes = threshold, min_nodes
        self.productions: list[tuple[str, ...] | None] = []  # of every node, in post-order
        self.bodies: dict[Key, Body] = {}
        self.parent = files.parent.tolist()
        children: defaultdict[int, Body] = defaultdict(list)
        stretches: Counter[tuple[str, ...]] = Counter()
        n_stretches: Counter[str] = Counter()  # of each language
        languages: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        columns = (files.columns[name] for name in ("language", "statements"))
        for tree, language, rows, offset in zip(files, *columns, files.offsets, strict=False):
            nodes = _post_order(tree)
            found = [_production(node) for node in nodes]
            self.productions += found
            for start in range(0, len(found), STRETCH):
                n_stretches[language] += 1
                inside = {p for p in found[start : start + STRETCH] if p}
                stretches.update(inside)
                for p in inside:
                    languages[p].add(language)
            for number, *lines, _, _ in [] if rows is None else rows.tolist():
                node = int(offset) + number
                statement = Statement(nodes[number], node + 1 - _size(nodes[number]), node + 1, tuple(lines))
                children[self.parent[node]].append(statement)
        for node, body in children.items():
            key, end = (node, -1), -1
            for statement in sorted(body, key=lambda statement: statement.end):
                if statement.start != end:
                    key = node, statement.start
                self.bodies.setdefault(key, []).append(statement)
                end = statement.end
        self.bits = {
            p: math.log2((sum(n_stretches[name] for name in languages[p]) + BACKGROUND) / n)
            for p, n in stretches.items()
        }
        self._matched: dict[tuple[Key, Key], list[tuple[Run, Run]]] = {}

    def pairs(self) -> set[tuple[Run, Run]]:
        """Return the pairs of blocks that no other pair contains."""
        found = {pair for x, y in product(self.bodies, repeat=2) for pair in self._pairs(x, y)}
        return {pair for pair in found if not any(pair != other and _holds(other, pair) for other in found)}

    def _pairs(self, x: Key, y: Key) -> list[tuple[Run, Run]]:
        """Return the pairs of similar runs of two bodies, the first run before the second."""
        matched = self.matched(x, y)
        candidates = [
            ((a[0], d[0]), (b[0], d[1]))
            for (a, b), (c, e) in product(matched, repeat=2)
            for d in [(c[1], e[1])]
            if a[0] <= c[0] and a[1] <= c[1] and b[0] <= e[0] and b[1] <= e[1]
        ]
        return [
            (a, b)
            for a, b in candidates
            if a[1] <= b[0]
            and min(self._lines(x, a), self._lines(y, b)) >= MIN_LINES
            and self._are_blocks(a, b)
        ]

    def _lines(self, body: Key, run: Run) -> int:
        """Return the number of lines of a run of a body."""
        inside = [s.lines for s in self.bodies[body] if run[0] <= s.start and s.end <= run[1]]
        return inside[-1][1] - inside[0][0] + 1

    def _are_blocks(self, a: Run, b: Run) -> bool:
        x, y = (Counter(p for p in self.productions[start:end] if p) for start, end in (a, b))
        bits = sum(self.bits[p] for p in x.keys() & y.keys())
        is_large = min(a[1] - a[0], b[1] - b[0]) >= self.min_nodes
        return is_large and _similarity(x, y) >= self.threshold and bits >= MIN_BITS

    def matched(self, x: Key, y: Key) -> list[tuple[Run, Run]]:
        """Return the pairs of longest equal runs of two bodies, and of alike statements."""
        if (x, y) not in self._matched:
            self._matched[x, y] = [*self._equal(x, y), *self._alike(x, y)]
        return self._matched[x, y]

    def _equal(self, x: Key, y: Key) -> list[tuple[Run, Run]]:
        a, b = self.bodies[x], self.bodies[y]
        found = []
        for i, j in product(range(len(a)), range(len(b))):
            if (x == y and i >= j) or (i and j and a[i - 1].tree == b[j - 1].tree):
                continue
            n = 0
            while i + n < len(a) and j + n < len(b) and a[i + n].tree == b[j + n].tree:
                n += 1
            apart = x != y or n <= j - i
            if n and apart and a[i + n - 1].end - a[i].start >= SEED_NODES[0]:
                found.append(((a[i].start, a[i + n - 1].end), (b[j].start, b[j + n - 1].end)))
        return [(one, other) for one, other in found if one < other]

    def _alike(self, x: Key, y: Key) -> list[tuple[Run, Run]]:
        found = []
        for one, other in product(self.bodies[x], self.bodies[y]):
            a, b = (one.start, one.end), (other.start, other.end)
            inside = product(self._inside(one), self._inside(other))
            if a[1] <= b[0] and any(self.matched(*bodies) for bodies in inside):
                multisets = (Counter(p for p in self.productions[start:end] if p) for start, end in (a, b))
                if _similarity(*multisets) >= self.threshold:
                    found.append((a, b))
        return found

    def _inside(self, statement: Statement) -> list[Key]:
        """Return the bodies of a statement that lie in no other statement inside it."""
        inner = [body for body in self.bodies if statement.start <= body[0] < statement.end]
        inside = {node.end - 1 for body in inner for node in self.bodies[body]}

        def is_direct(body: Key) -> bool:
            node = body[0]
            while node != statement.end - 1:
                if node in inside:
                    return False
                node = self.parent[node]
            return True

        return [body for body in inner if is_direct(body)]


def _similarity(a: Counter[Any], b: Counter[Any]) -> float:
    either = (a | b).total()
    return (a & b).total() / either if either else 0.0


def _holds(outer: tuple[Run, Run], inner: tuple[Run, Run]) -> bool:
    return all(x[0] <= y[0] and y[1] <= x[1] for x, y in zip(outer, inner, strict=True))


def _post_order(tree: Tree) -> list[Tree]:
    return [node for child in tree.children for node in _post_order(child)] + [tree]


def _size(tree: Tree) -> int:
    return 1 + sum(map(_size, tree.children))


def _production(tree: Tree) -> tuple[str, ...] | None:
    return (tree.label, *(child.label for child in tree.children)) if tree.children else None
