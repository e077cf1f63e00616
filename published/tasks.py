"""Corpora of labelled trees, each with a training set and a test set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treedot import Forest, read_trees

TEST_FOLDS = {"8", "9"}  # of ten, if a corpus has folds but no test set
NEUTRAL = 2  # of five classes, 0 to 4
PAIR = "text_tree", "hypothesis_tree"  # columns
PHRASE = "*"  # is no word of the reviews

BRACKETS = re.compile(r"[()]|[^\s()]+")

Tokens = Callable[[Forest], list[list[str]]]


class Task(NamedTuple):
    """A classification task; ``train`` and ``test`` have the class in the column ``label``.

    If examples are pairs of trees, the trees are the texts, with the hypotheses in brackets in the column
    ``hypothesis_tree``, and the share of the hypothesis's words that are in the text in ``overlap``.
    """

    name: str
    train: Forest
    test: Forest
    tokens: Tokens  # the tokens of every tree, for n-grams

    @property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of the training and test trees."""
        return np.array(self.train.columns["label"]), np.array(self.test.columns["label"])

    @property
    def is_paired(self) -> bool:
        """Whether an example is two trees."""
        return "overlap" in self.train.columns

    @property
    def n_repeated(self) -> int:
        """The number of test trees that are also in the training set."""
        known = set(_names(self.train))
        return sum(name in known for name in _names(self.test))


def read_task(folder: Path, name: str) -> Task:
    """Read one of the tasks of ``TASKS``."""
    return TASKS[name](folder, name)


def words(forest: Forest) -> list[list[str]]:
    """Return the words of every tree, its leaves in lower case."""
    return _texts(forest, forest.arity == 0, [label.lower() for label in forest.labels])


def all_labels(forest: Forest) -> list[list[str]]:
    """Return the labels of all nodes of every tree."""
    return _texts(forest, np.ones(forest.n_nodes, bool), forest.labels)


def bracket_tokens(forest: Forest) -> list[list[str]]:
    """Return the tokens of every tree in brackets.

    Examples
    --------
    >>> bracket_tokens(read_trees(["(S (A a) b)"]))
    [['(', 'S', '(', 'A', 'a', ')', 'b', ')']]
    """
    return [BRACKETS.findall(str(tree)) for tree in forest]


def _questions(folder: Path, name: str) -> Task:
    parts = (read_trees(folder / f"qc_{part}.tsv.gz") for part in ("train", "test"))
    train, test = (_with(part, label=part.columns[name.removeprefix("QC ")]) for part in parts)
    return Task(name, train, test, words)


def _pairs(folder: Path, name: str) -> Task:
    stem = name.lower().replace(" ", "")
    train, test = (
        _with_overlap(read_trees(folder / f"{stem}_{part}.tsv.gz", column=PAIR[0]))
        for part in ("dev", "test")
    )
    return Task(name, train, test, words)


def _sentiment(folder: Path, name: str) -> Task:
    """Read sentences without the labels of their phrases, which reveal the class."""
    parts = (read_trees(folder / f"sst_{part}.tsv.gz") for part in ("train", "test"))
    train, test = (_without_labels(part, two_classes=name == "SST 2") for part in parts)
    return Task(name, train, test, words)


def _folded(file: str, label: str, tokens: Tokens) -> Callable[[Path, str], Task]:
    def read(folder: Path, name: str) -> Task:
        forest = read_trees(folder / file)
        forest = _with(forest, label=forest.columns[label])
        tested = np.array([str(fold) in TEST_FOLDS for fold in forest.columns["fold"]])
        return Task(name, forest[~tested], forest[tested], tokens)

    return read


def _residues(forest: Forest) -> list[list[str]]:
    """Return the residues and linkages of glycans, as in their names."""
    return [re.findall(r"[^()\[\]]+", text) for text in forest.columns["iupac"]]


def _bases(forest: Forest) -> list[list[str]]:
    return [list(text) for text in forest.columns["sequence"]]


TASKS: dict[str, Callable[[Path, str], Task]] = {
    "QC coarse": _questions,
    "QC fine": _questions,
    **dict.fromkeys(("RTE 1", "RTE 2", "RTE 3", "RTE 5"), _pairs),
    "glycans": _folded("glycans.tsv.gz", "kingdom", _residues),
    "RNA": _folded("rna_archive2.tsv.gz", "family", _bases),
    "SST 2": _sentiment,
    "SST 5": _sentiment,
}

FILES = (
    *(f"{name}_{part}.tsv.gz" for name in ("qc", "sst") for part in ("train", "test")),
    *(f"rte{number}_{part}.tsv.gz" for number in (1, 2, 3, 5) for part in ("dev", "test")),
    "glycans.tsv.gz",
    "rna_archive2.tsv.gz",
)


def _with(forest: Forest, **columns: Sequence[Any]) -> Forest:
    """Return the same trees with more columns."""
    parts = forest.label, forest.arity, forest.offsets, forest.labels
    return Forest(*parts, {**forest.columns, **columns})


def _with_overlap(texts: Forest) -> Forest:
    hypotheses = read_trees(list(texts.columns[PAIR[1]]))
    pairs = zip(map(set, words(texts)), map(set, words(hypotheses)), strict=True)
    return _with(texts, overlap=[len(text & asked) / len(asked) for text, asked in pairs])


def _without_labels(forest: Forest, two_classes: bool) -> Forest:
    """Return sentences with one label for all phrases; for two classes, without the neutral ones."""
    label = np.where(forest.arity == 0, forest.label, len(forest.labels))
    stars = np.array(forest.columns["label"]).astype(int)
    labels, columns = [*forest.labels, PHRASE], {"label": stars.tolist()}
    blank = Forest(label, forest.arity, forest.offsets, labels, columns)
    if not two_classes:
        return blank
    return _with(blank, label=(stars > NEUTRAL).astype(int).tolist())[stars != NEUTRAL]


def _names(forest: Forest) -> Iterator[str]:
    second = forest.columns.get(PAIR[1], [""] * len(forest))
    return (f"{tree} {other}" for tree, other in zip(forest, second, strict=True))


def _texts(forest: Forest, chosen: np.ndarray, labels: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in range(len(forest))]
    for tree, label in zip(forest.tree_of_node[chosen], forest.label[chosen], strict=True):
        found[tree].append(labels[label])
    return found
