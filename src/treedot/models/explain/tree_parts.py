"""Divide the contribution of one tree to a score among nodes, fragments and a rest, for every input."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import FloatArray
from treedot.errors import LimitError
from treedot.kernels import BoundedTreeKernel, SubsetTreeKernel
from treedot.kernels.tree_kernel import TreeKernel, unit
from treedot.models.explain.linear import Part
from treedot.models.explain.listed_fragments import BUDGET, LEAVES, fragment_encoder, is_counted, log_norms
from treedot.models.explain.pair_shares import weighted_shares
from treedot.models.explain.removal import removal_values
from treedot.models.explain.shares import node_shares
from treedot.models.explain.tree_values import REMOVAL, SHAPLEY, FragmentShare, TreeValues
from treedot.models.inputs.table import Table
from treedot.models.inputs.term_input import TermInput
from treedot.models.inputs.tree_inputs import KernelInput
from treedot.trees import Forest, Tree
from treedot.vectors.dense.reference import fragment_vector
from treedot.vectors.distributed_tree_vectorizer import DistributedTreeVectorizer
from treedot.vectors.fragment_vectorizer import FragmentVectorizer
from treedot.vectors.sparse.occurrences import Occurrences, fragment_at

BEYOND = "fragments beyond the budget"
MAX_FRAGMENT_VECTORS = 4000  # distinct fragments whose dense vectors are computed: less than a second


Listed = tuple[FloatArray, Callable[[int], FragmentShare]]  # contributions of fragments, and their shares


class ExplainedTree(NamedTuple):
    """The values of a tree's nodes, the contributions of its fragments, and parts that belong to no node."""

    values: TreeValues
    others: dict[str, float]
    listed: list[Listed]


def explained_tree(part: Part, forest: Forest, row: int, sign: float) -> ExplainedTree:
    """Explain what one tree adds to the score of a row of weights, times a sign."""
    if isinstance(part.input, KernelInput):
        if isinstance(part.input.kernel, BoundedTreeKernel):
            return _of_bounded_kernel(part, part.input.kernel, part.input.trees, forest, row, sign)
        if is_counted(part.input.kernel):
            return _of_subset_kernel(part, part.input.kernel, part.input.trees, forest, row, sign)
        return _by_removal(part, forest, row, sign)
    if part.vectorizer is not None:
        return _of_fragments(part, part.vectorizer, forest, row, sign)
    made_by: DistributedTreeVectorizer = part.input.vectorizer  # type: ignore[attr-defined]
    if made_by.kernel == "subset":
        return _of_dense_vectors(part, made_by, forest, row, sign)
    return _by_removal(part, forest, row, sign)


def with_terms(found: ExplainedTree, part: Part, forest: Forest, row: int, sign: float) -> ExplainedTree:
    """Add the words or labels of a tree to its explanation, as a single part if values are removals."""
    assert isinstance(part.input, TermInput)
    if found.values.values_are == REMOVAL:
        return found._replace(others=found.others | {part.input.terms: _score(part, forest, row, sign)})
    (terms, nodes), hashed = part.input.occurrences(forest)
    weights = part.input.weights(hashed.column)
    counts = np.bincount(terms.number, minlength=len(terms.names))
    values = np.sqrt(counts) * (np.ones(counts.size) if weights is None else weights)
    length = float(np.linalg.norm(values)) or 1.0
    contributions = sign * part.weights_at(hashed.column)[row] * hashed.sign * values / length
    node_values = found.values.node_values.copy()
    each = (contributions / np.maximum(counts, 1))[terms.number] / 2
    np.add.at(node_values, nodes, each[:, None])  # a single node is there twice

    def share(number: int) -> FragmentShare:
        own = nodes[terms.number == number].tolist()
        occurrences = [sorted(set(pair)) for pair in own]
        return FragmentShare(
            Tree(terms.names[number]), float(contributions[number]), occurrences, part.column
        )

    whole = found.values.contribution + float(contributions.sum())
    return found._replace(
        values=found.values._replace(node_values=node_values, contribution=whole),
        listed=[*found.listed, (contributions, share)],
    )


def _of_fragments(
    part: Part, vectorizer: FragmentVectorizer, forest: Forest, row: int, sign: float
) -> ExplainedTree:
    """Explain a row of fragments."""
    found = vectorizer.occurrences(forest)
    known = found.column >= 0
    contributions = np.zeros(found.value.size)
    contributions[known] = sign * part.weights_at(found.column[known])[row] * found.value[known]
    others = {}
    if vectorizer.rest is not None:
        others[BEYOND] = sign * _beyond(part, vectorizer, forest, row)
    return _divided(part, forest, found, contributions, others)


def _of_dense_vectors(
    part: Part, vectorizer: DistributedTreeVectorizer, forest: Forest, row: int, sign: float
) -> ExplainedTree:
    """Explain a dense vector by the vectors of its bounded fragments; all else is a separate part."""
    spec = vectorizer.spec
    found, length = _few_occurrences(forest, spec.decay), 1.0
    if spec.normalize:
        plain = DistributedTreeVectorizer(
            **{**vectorizer.get_params(), "normalize": False, "dtype": "float64"}
        )
        length = float(np.linalg.norm(plain.transform(forest)[0])) or 1.0
    weights, algebra = part.weights_at(np.arange(spec.n_components))[row], spec.algebra()
    dots = [
        weights @ fragment_vector(fragment_at(forest, found.nodes_of(k)[0]), algebra)
        for k in range(found.counts.size)
    ]
    contributions = sign * np.abs(found.value) / length * np.array(dots, float)
    whole = _score(part, forest, row, sign)
    return _divided(part, forest, found, contributions, {BEYOND: whole - float(contributions.sum())})


def _few_occurrences(forest: Forest, decay: float) -> Occurrences:
    """Return the occurrences of fragments within the largest budget up to ``BUDGET`` with not too many."""
    for budget in range(BUDGET, 0, -1):
        try:
            found = fragment_encoder(decay, budget).occurrences(forest)
        except LimitError:
            continue
        if found.counts.size <= MAX_FRAGMENT_VECTORS:
            return found
    return fragment_encoder(decay, 0).occurrences(forest)


def _of_bounded_kernel(
    part: Part, kernel: BoundedTreeKernel, support: Forest, forest: Forest, row: int, sign: float
) -> ExplainedTree:
    """Explain the scores of a bounded kernel by all of its fragments."""
    found = fragment_encoder(kernel.decay, kernel.budget).occurrences(forest)
    weights = _support_weights(part, kernel, support, forest, row, sign)
    contributions = found.value * _weights_of(found, kernel.decay, kernel.budget, support, weights)
    return _divided(part, forest, found, contributions, {})


def _of_subset_kernel(
    part: Part, kernel: SubsetTreeKernel, support: Forest, forest: Forest, row: int, sign: float
) -> ExplainedTree:
    """Explain the scores of a subset tree kernel: nodes by all fragments, a list of those within a budget."""
    weights = unit(kernel.convention, kernel.decay) * _support_weights(
        part, kernel, support, forest, row, sign
    )
    node_values = weighted_shares(forest, support, weights, kernel.decay)
    found = fragment_encoder(kernel.decay, BUDGET).occurrences(forest)
    contributions = found.value * _weights_of(found, kernel.decay, BUDGET, support, weights)
    whole, own = _score(part, forest, row, sign), float(node_values.sum())
    values = TreeValues(part.column, forest[0], node_values, SHAPLEY, own)
    others = {LEAVES: whole - own} if kernel.leaves else {}
    return _listed(values, others, forest, found, contributions)


def _support_weights(
    part: Part, kernel: TreeKernel, support: Forest, forest: Forest, row: int, sign: float
) -> FloatArray:
    """Return the weight of every support vector, divided by its length and that of the tree."""
    lengths = log_norms(kernel, support) + log_norms(kernel, forest)
    found: FloatArray = sign * part.weights_at(np.arange(len(support)))[row] * np.exp(-lengths)
    return found


def _weights_of(
    found: Occurrences, decay: float, budget: int, support: Forest, weights: FloatArray
) -> FloatArray:
    """Return the weight of every fragment: its weighted sum over the rows of the support vectors."""
    rows = fragment_encoder(decay, budget).encode(support)
    columns, number = np.unique(rows.indices, return_inverse=True)
    each = np.repeat(weights, np.diff(rows.indptr)) * rows.data
    sums = np.append(np.bincount(number.ravel(), each, columns.size), 0.0)
    place = np.minimum(np.searchsorted(columns, found.column), columns.size)
    known = np.append(columns, -1)[place] == found.column
    return np.where(known, sums[place], 0.0)


def _by_removal(part: Part, forest: Forest, row: int, sign: float) -> ExplainedTree:
    """Explain the score by how much the removal of each subtree lowers it."""

    def value_of(trees: Forest) -> FloatArray:
        found: FloatArray = sign * part.scores(Table({part.column: trees}))[:, row]
        return found

    whole, node_values = removal_values(forest, value_of)
    values = TreeValues(part.column, forest[0], node_values, REMOVAL, whole)
    return ExplainedTree(values, {}, [])


def _divided(
    part: Part, forest: Forest, found: Occurrences, contributions: FloatArray, others: dict[str, float]
) -> ExplainedTree:
    """Divide the contributions of fragments among the nodes."""
    node_values = node_shares(found, contributions, forest.n_nodes)
    values = TreeValues(part.column, forest[0], node_values, SHAPLEY, float(node_values.sum()))
    return _listed(values, others, forest, found, contributions)


def _listed(
    values: TreeValues,
    others: dict[str, float],
    forest: Forest,
    found: Occurrences,
    contributions: FloatArray,
) -> ExplainedTree:
    def share(number: int) -> FragmentShare:
        nodes = found.nodes_of(number)
        return FragmentShare(
            fragment_at(forest, nodes[0]), float(contributions[number]), nodes, values.column
        )

    return ExplainedTree(values, others, [(contributions, share)])


def _score(part: Part, forest: Forest, row: int, sign: float) -> float:
    return float(sign * part.scores(Table({part.column: forest}))[0, row])


def _beyond(part: Part, vectorizer: FragmentVectorizer, forest: Forest, row: int) -> float:
    """Return the contribution of the fragments beyond the budget."""
    matrix, width = vectorizer.transform(forest), vectorizer.n_features
    beyond = matrix.indices >= (len(vectorizer.dictionary_) if width is None else width)
    weights = part.weights_at(matrix.indices[beyond])[row]
    return float(weights @ matrix.data[beyond].astype(float))
