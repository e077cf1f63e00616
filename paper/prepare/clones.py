"""BigCloneBench: pairs of Java methods that are clones, and the syntax trees of the methods."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

from paper.prepare.downloads import Downloads
from paper.prepare.parses import Parses
from paper.prepare.tables import Table
from treedot.errors import SourceError
from treedot.trees import Tree

FILES = {  # of the pairs of each type of clones
    "T1": "T1-clones-selected-columns.txt",
    "T2": "T2-clones-selected-columns.txt",
    "T3": "ST3-VST3-clones-simline-selected-columns.txt",
}
MOST_NODES = 1000
NODE = re.compile(r"\(([^():]*)(?::(.*?))?(?=\)|\([A-Z])|(\))", re.S)  # an opened node with its value, or )


def tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``bcb_functions`` and ``bcb_pairs``: the methods of all pairs whose two trees are there."""
    pairs = [pair for kind, file in FILES.items() for pair in _pairs(found.file(file), kind)]
    paths = {path.stem: path for path in found.files("*_[0-9]*_[0-9]*.java")}
    names = {name for pair in pairs for name in pair[:2]}
    trees = {name: java_tree(paths[name]) for name in names & paths.keys()}
    small = {name: tree for name, tree in trees.items() if tree.size <= MOST_NODES}
    pairs = [pair for pair in pairs if pair[0] in small and pair[1] in small]
    classes = clone_classes([(pair[0], pair[1]) for pair in pairs])
    functions = [(name, classes[name], small[name].size, small[name]) for name in sorted(classes)]
    return [
        Table("bcb_functions", ("id", "clone_class", "nodes", "tree"), functions),
        Table("bcb_pairs", ("a", "b", "type", "similarity_line", "similarity_token"), pairs),
    ]


def _pairs(path: Path, kind: str) -> list[tuple[str, str, str, str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    try:
        both = [
            tuple(
                f"{row[f'function_{k}_name'].removesuffix('.java')}_{row[f'function_{k}_startline']}"
                f"_{row[f'function_{k}_endline']}"
                for k in ("one", "two")
            )
            for row in rows
        ]
        similar = [(row["similarity_line"][:6], row["similarity_token"][:6]) for row in rows]
    except (KeyError, AttributeError) as error:
        raise SourceError(f"{path} lacks the column {error}") from error
    return [(a, b, kind, *how) for (a, b), how in zip(both, similar, strict=True)]


def java_tree(path: Path) -> Tree:
    """Return the tree of a method from GumTree's ``(Type:value(Type)…)``; a node without value gets ``-``."""
    open_nodes: list[tuple[str, list[Tree | str]]] = [("", [])]
    for label, value, closing in NODE.findall(path.read_text(encoding="utf-8")):
        if not closing:
            open_nodes.append((label, [value] if value else []))
        elif len(open_nodes) > 1:
            name, children = open_nodes.pop()
            open_nodes[-1][1].append(Tree(name, children or ["-"]))
    if len(open_nodes) != 1 or len(open_nodes[0][1]) != 1:
        raise SourceError(f"{path}: brackets do not match")
    (tree,) = open_nodes[0][1]
    assert isinstance(tree, Tree)
    return tree


def clone_classes(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return the class of every method: that of all methods to which pairs connect it, the largest first."""
    above: dict[str, str] = {}

    def first(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = name = above[above[name]]
        return name

    for a, b in pairs:
        above[first(a)] = first(b)
    sizes = Counter(first(name) for name in list(above))
    names = {root: f"c{k}" for k, (root, _) in enumerate(sizes.most_common())}
    return {name: names[first(name)] for name in above}
