"""Find the smallest subtree whose removal changes a decision; its root stays as a leaf."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treedot.errors import LimitError
from treedot.models.explain.linear import LinearFunction, Part
from treedot.models.inputs.table import Table
from treedot.trees import Forest, Tree

BATCH_NODES = 2**16
MAX_NODES = 2**25  # nodes of all pruned trees together


class Removal(NamedTuple):
    """A subtree whose removal changes the decision.

    Attributes
    ----------
    node : int
        The root of the subtree, in post-order from 0; it stays as a leaf.
    subtree : Tree
        The removed subtree.
    decision : object
        The predicted class without the subtree.
    column : str, optional
        The tree column of the subtree, if the model has named columns.
    """

    node: int
    subtree: Tree
    decision: Any
    column: str | None = None


def pruned(forest: Forest, nodes: np.ndarray) -> Forest:
    """Return one copy of a single tree for each of ``nodes``, in which this node is a leaf.

    Examples
    --------
    >>> forest = Forest.from_tree(Tree.parse("(S (A a) (B b))"))
    >>> [str(tree) for tree in pruned(forest, np.array([1, 4]))]
    ['(S A (B b))', '(S)']
    """
    size, every = forest.subtree_size, np.arange(forest.n_nodes)
    kept = [np.r_[every[: node - size[node] + 1], every[node:]] for node in nodes]
    which = np.concatenate(kept)
    arity = forest.arity[which]
    offsets = np.cumsum([0, *(part.size for part in kept)])
    arity[offsets[:-1] + nodes - size[nodes] + 1] = 0
    return Forest(forest.label[which], arity, offsets, forest.labels)


def smallest_flip(model: LinearFunction, table: Table) -> Removal | None:
    """Return the smallest subtree whose removal changes the predicted class, or None if there is none.

    Pruned trees are encoded and normalised again. Of equally small subtrees, the first in the order of the
    columns and in post-order is returned.
    """
    if model.classes is None:
        return None
    scores = [part.scores(table) for part in model.parts]
    whole = model.bias + sum(scores)
    before = int(model.best(whole)[0])
    found = [
        _smallest(model, part, table[part.column], whole - own, before)
        for part, own in zip(model.parts, scores, strict=True)
        if part.vectorizer is not None
    ]
    return min((flip for flip in found if flip is not None), key=lambda flip: flip.subtree.size, default=None)


def _smallest(
    model: LinearFunction, part: Part, forest: Forest, others: np.ndarray, before: int
) -> Removal | None:
    """Return the smallest such subtree of one tree; ``others`` is what all other parts add to the scores."""
    inner = np.flatnonzero(forest.arity > 0)
    if inner.size * forest.n_nodes > MAX_NODES:
        raise LimitError(
            f"removing each of {inner.size} subtrees from a tree of {forest.n_nodes} nodes takes too long: "
            "use find_flip=False"
        )
    inner = inner[np.argsort(forest.subtree_size[inner], kind="stable")]
    step = max(1, BATCH_NODES // forest.n_nodes)
    for first in range(0, inner.size, step):
        nodes = inner[first : first + step]
        after = model.best(others + part.scores(Table({part.column: pruned(forest, nodes)})))
        if (after != before).any():
            k = int((after != before).argmax())
            subtree = _subtree(forest, int(nodes[k]))
            return Removal(int(nodes[k]), subtree, model.classes[after[k]], part.column)  # type: ignore[index]
    return None


def _subtree(forest: Forest, node: int) -> Tree:
    here = slice(node - forest.subtree_size[node] + 1, node + 1)
    size = here.stop - here.start
    return Forest(forest.label[here], forest.arity[here], [0, size], forest.labels)[0]
