"""Remove subtrees: how a score changes, and the smallest subtree that changes a decision.

The root of a removed subtree stays as a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treedot.errors import LimitError
from treedot.models.inputs.table import Table
from treedot.trees import Forest, Tree

if TYPE_CHECKING:  # needs scikit-learn
    from treedot.models.explain.linear import LinearFunction, Part

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


def removals(forest: Forest, nodes: np.ndarray, instead: str) -> Iterator[tuple[np.ndarray, Forest]]:
    """Yield batches of nodes of a tree, and the trees in which one of them is a leaf.

    Raises LimitError if the trees have too many nodes; ``instead`` is what to do then.
    """
    if nodes.size * forest.n_nodes > MAX_NODES:
        raise LimitError(
            f"removing each of {nodes.size} subtrees from a tree of {forest.n_nodes} nodes takes too long: "
            f"{instead}"
        )
    step = max(1, BATCH_NODES // forest.n_nodes)
    for first in range(0, nodes.size, step):
        batch = nodes[first : first + step]
        yield batch, pruned(forest, batch)


def removal_values(forest: Forest, value_of: Callable[[Forest], np.ndarray]) -> tuple[float, np.ndarray]:
    """Return the value of a tree, and by how much it falls if each inner node becomes a leaf.

    ``value_of`` returns one number for each tree. The differences have an entry for every node, 0 for leaves.
    """
    whole, values = float(value_of(forest)[0]), np.zeros(forest.n_nodes)
    for nodes, trees in removals(forest, np.flatnonzero(forest.arity > 0), "explain a smaller tree"):
        values[nodes] = whole - value_of(trees)
    return whole, values


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
    found = []
    for column in model.reads.trees:
        reads = [column in part.input.reads.trees for part in model.parts]
        parts = list(compress(model.parts, reads))
        others = whole - sum(compress(scores, reads))
        found.append(_smallest(model, parts, table[column], others, before))
    return min((flip for flip in found if flip is not None), key=lambda flip: flip.subtree.size, default=None)


def _smallest(
    model: LinearFunction, parts: list[Part], forest: Forest, others: np.ndarray, before: int
) -> Removal | None:
    """Return the smallest such subtree of the tree of ``parts``; ``others`` is the rest of the scores."""
    column = parts[0].column
    inner = np.flatnonzero(forest.arity > 0)
    inner = inner[np.argsort(forest.subtree_size[inner], kind="stable")]
    for nodes, trees in removals(forest, inner, "use find_flip=False"):
        cut = Table({column: trees})
        after = model.best(others + sum(part.scores(cut) for part in parts))
        if (after != before).any():
            k = int((after != before).argmax())
            subtree = _subtree(forest, int(nodes[k]))
            return Removal(int(nodes[k]), subtree, model.classes[after[k]], column)  # type: ignore[index]
    return None


def _subtree(forest: Forest, node: int) -> Tree:
    here = slice(node - forest.subtree_size[node] + 1, node + 1)
    size = here.stop - here.start
    return Forest(forest.label[here], forest.arity[here], [0, size], forest.labels)[0]
