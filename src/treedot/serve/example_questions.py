"""The example questions, parsed, with their classes, and a model that learns from them."""

from __future__ import annotations

from importlib.resources import as_file, files

from treedot.readers import read_trees
from treedot.trees import Forest


def questions() -> Forest:
    """Return the questions: trees, with their classes in the column ``label``."""
    with as_file(files("treedot.serve").joinpath("questions.tsv")) as path:
        return read_trees(path)


def train(folder: str) -> None:
    """Train a model on the questions, and save it to a folder."""
    from treedot.models.tree_classifier import TreeClassifier

    forest = questions()
    TreeClassifier().fit(forest, forest.columns["label"]).save(folder, overwrite=True)
