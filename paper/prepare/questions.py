"""The UIUC questions: classes from one source, trees from another, matched by their words."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from paper.prepare.downloads import Downloads, text_lines
from paper.prepare.parses import Parses
from paper.prepare.penn import ROOT, words
from paper.prepare.tables import Table
from treedot.errors import SourceError
from treedot.readers import read_trees
from treedot.trees import Tree

LABELS = {"train": ("train_5500.label", "qc/train.txt"), "test": ("TREC_10.label", "qc/test.txt")}
TREES = {"train": "NUM_train.dat", "test": "NUM_test.dat"}
DEPENDENCIES = {"train": "train_5500.coarse.klp.gz", "test": "TREC_10.coarse.klp.gz"}
FORMS = ("grct", "lct", "loct", "cgrct", "clct")  # of dependency trees in KeLP
MOST_SENTENCES = 5  # that a question was split into
BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}


def constituency_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``qc_train`` and ``qc_test``: questions with the trees of SVM-LIGHT-TK's demonstration."""
    columns = ("id", "coarse", "fine", "text", "tree", "tree_source")
    tables = []
    for part in LABELS:
        trees = matched(found.file(TREES[part]))
        rows = []
        for k, (fine, text) in enumerate(_labelled(found.file(*LABELS[part]))):
            tree, source = trees.get(_key(text.split()), ("", "parser"))
            tree = tree or parses.tree([text])
            rows.append((f"{part}-{k}", fine.split(":")[0], fine, text, tree, source))
        tables.append(Table(f"qc_{part}", columns, rows))
    return tables


def dependency_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``qc_train_dep`` and ``qc_test_dep``: the same questions with the trees of KeLP."""
    tables = []
    for part in LABELS:
        path = found.file(DEPENDENCIES[part])
        examples = gzip.decompress(path.read_bytes()).decode().splitlines()
        labelled = list(_labelled(found.file(*LABELS[part])))
        if len(examples) != len(labelled):
            raise SourceError(f"{path} has {len(examples)} examples for {len(labelled)} questions")
        rows = []
        for k, ((fine, text), line) in enumerate(zip(labelled, examples, strict=True)):
            forms = dict(re.findall(r"\|BT:(\w+)\| (.*?) \|ET\|", line))
            if missing := set(FORMS) - set(forms):
                raise SourceError(f"{path}:{k + 1}: no tree {sorted(missing)[0]!r}")
            rows.append((f"{part}-{k}", fine.split(":")[0], fine, text, *(forms[form] for form in FORMS)))
        tables.append(Table(f"qc_{part}_dep", ("id", "coarse", "fine", "text", *FORMS), rows))
    return tables


def _labelled(path: Path) -> Iterator[tuple[str, str]]:
    for k, line in enumerate(text_lines(path), 1):
        fine, _, text = line.strip().partition(" ")
        if not re.fullmatch(r"[A-Z]+:\w+", fine) or not text:
            raise SourceError(
                f"{path}:{k}: expected a class and a question, as in 'NUM:dist How far is it ?'"
            )
        yield fine, " ".join(text.split())


def matched(path: Path) -> dict[str, tuple[str, str]]:
    """Return the trees of SVM-LIGHT-TK by the words of the question, with how each was made.

    The source splits some questions into sentences, so up to five trees in a row are put under one ROOT as
    well. A tree in which two words share a tag is left out: a parser has to make it anew.
    """
    trees = list(read_trees(path, format="svmlight"))
    keys = [_key(words(tree)) for tree in trees]
    found: dict[str, tuple[str, str]] = {}
    for count in range(1, MOST_SENTENCES + 1):
        source = "svmlighttk" if count == 1 else f"svmlighttk-joined{count}"
        for start in range(len(trees) - count + 1):
            some = trees[start : start + count]
            key = "".join(keys[start : start + count])
            if key not in found and all(map(_is_tagged, some)):
                joined = Tree(ROOT, [child for tree in some for child in tree.children])
                found[key] = (str(joined), source)
    return found


def _is_tagged(tree: Tree) -> bool:
    """Return whether every word has a tag of its own."""
    return all(len(node.children) == 1 for node in tree.postorder() if any(c.is_leaf for c in node.children))


def _key(tokens: list[str]) -> str:
    """Return words as one text without quotes, backslashes, spaces and case, in which the sources differ."""
    text = "".join(tokens).lower()
    for name, bracket in BRACKETS.items():
        text = text.replace(name, bracket)
    return re.sub(r"""[`'"\\]""", "", text)
