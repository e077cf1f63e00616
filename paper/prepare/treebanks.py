"""Treebanks in Penn brackets: annotation removed, one tree per row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from paper.prepare.downloads import Downloads, text_lines
from paper.prepare.parses import Parses
from paper.prepare.penn import cleaned, rooted, sentence
from paper.prepare.tables import ROWS, Table
from treedot.errors import SourceError
from treedot.readers import read_trees
from treedot.trees import Tree

SENTIMENTS = set("01234")
PERMISSIVE = ("academic", "bio", "court", "interview", "news", "voyage")  # genres of GUM under CC BY or BY-SA


def sentiment_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``sst_train``, ``sst_dev`` and ``sst_test``."""
    tables = []
    for part in ("train", "dev", "test"):
        path = found.file(f"trees/{part}.txt")
        trees = list(read_trees(path, format="brackets"))
        trees = trees[: ROWS[f"sst_{part}"]]  # one copy has the development set after the training set
        if strange := {tree.label for tree in trees} - SENTIMENTS:
            raise SourceError(f"{path}: the root {min(strange)!r} is not a sentiment from 0 to 4")
        rows = [(f"{part}-{k}", tree.label, sentence(tree), tree) for k, tree in enumerate(trees)]
        tables.append(Table(f"sst_{part}", ("id", "label", "text", "tree"), rows))
    return tables


def penn_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``ptb_sample``, the part of the Penn Treebank that NLTK distributes."""
    rows = []
    for path in found.files("combined/wsj_*.mrg"):
        for k, (raw, tree) in enumerate(_cleaned(path)):
            rows.append((f"{path.stem}.{k}", path.stem[4:6], sentence(tree), tree, raw))
    return [Table("ptb_sample", ("id", "section", "text", "tree", "tree_raw"), rows)]


def craft_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``craft``, biomedical articles."""
    rows = []
    for path in found.files("penn/*.tree"):
        for k, (_, tree) in enumerate(_cleaned(path)):
            rows.append((f"{path.stem}.{k}", path.stem, sentence(tree), tree))
    return [Table("craft", ("id", "article", "text", "tree"), rows)]


def gum_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``gum_permissive``, the genres of GUM whose texts may be passed on."""
    splits, part = {}, ""
    for line in text_lines(found.file("splits.md")):
        if line.startswith("## "):
            part = line[3:].strip()
        elif line.strip().startswith("* "):
            splits[line.strip()[2:].strip()] = part
    rows = []
    for genre in PERMISSIVE:
        for path in found.files(f"const/GUM_{genre}_*.ptb"):
            split = splits.get(path.stem)
            if split is None:
                raise SourceError(f"splits.md does not list {path.stem}")
            for k, (_, tree) in enumerate(_cleaned(path)):
                rows.append((genre, split, f"{path.stem}.{k}", sentence(tree), tree))
    return [Table("gum_permissive", ("genre", "split", "id", "text", "tree"), rows)]


def questionbank_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``questionbank``: the file writes < for an apostrophe, and (? ?) for the end of a question."""
    path = found.file("4000qs.txt")
    rows = []
    for k, line in enumerate(text_lines(path)):
        text = re.sub(r"\([?!](?=\s)", "(.", line.replace("<", "'"))
        tree = cleaned(rooted(read_trees([text])[0]))
        if tree is None:
            raise SourceError(f"{path}:{k + 1}: nothing is left of the tree without its empty elements")
        tree = _tagged(tree)
        rows.append((f"qb-{k}", sentence(tree), tree))
    return [Table("questionbank", ("id", "text", "tree"), rows)]


def _tagged(tree: Tree) -> Tree:
    """Return the tree with a tag for every word: the file writes ( -LRB-) for (-LRB- -LRB-)."""
    if len(tree.children) == 1 and tree.children[0].is_leaf:
        return tree
    kept = [child for child in tree.children if child.label]
    return Tree(tree.label, [_own_tag(child.label) if child.is_leaf else _tagged(child) for child in kept])


def _own_tag(word: str) -> Tree:
    return Tree("." if word in ("!", "?") else word, [word])


def _cleaned(path: Path) -> Iterator[tuple[Tree, Tree]]:
    """Yield each tree of a file of Penn brackets: as it is, and without annotation."""
    for tree in read_trees(path, format="brackets"):
        raw = rooted(tree)
        bare = cleaned(raw)
        if bare is not None:
            yield raw, bare
