"""Compare two trees: similarity, edit distance, and shared productions."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

from treedot.clones.similarity import multiset_similarity, similarity
from treedot.errors import LimitError
from treedot.readers import read_tree
from treedot.search.tree_edit_distance import edit_distance
from treedot.trees import Forest
from treedot.vectors.sparse.fitted_rows import FittedRows
from treedot.vectors.spec import SparseSpec


class Comparison(NamedTuple):
    """The comparison of two trees; the result of ``compare``.

    Attributes
    ----------
    similarity : float
        The share of the productions of either tree that occur in both.
    cosine : float
        The cosine of their rows of fragments, made by ``FragmentVectorizer(damping="sqrt")``.
    agreement : float or None
        The similarity of their names and literals; None if a tree does not store them separately.
    edits : int or None
        The edit distance; None if the trees are too large for it.
    shared, only_a, only_b : dict
        The productions of both trees, only of the first, and only of the second, as ``label → children``,
        with their numbers of occurrences, most frequent first.
    """

    similarity: float
    cosine: float
    agreement: float | None
    edits: int | None
    shared: dict[str, int]
    only_a: dict[str, int]
    only_b: dict[str, int]

    def __repr__(self) -> str:
        """Return the figures, with only the numbers of productions."""
        shown = (
            f"{name}=<{len(value)} productions>" if isinstance(value, dict) else f"{name}={value!r}"
            for name, value in self._asdict().items()
        )
        return f"Comparison({', '.join(shown)})"


def compare(a: Any, b: Any) -> Comparison:
    """Compare two trees.

    Parameters
    ----------
    a, b : tree
        Two trees, as ``read_tree`` takes them: bracket text, ``Tree``, nested lists, or a Forest of one tree.

    Returns
    -------
    Comparison
        The similarities, the edit distance, and the productions.

    Examples
    --------
    >>> found = compare("(f (a x) (b y))", "(f (a x) (b z))")
    >>> found.similarity, found.edits, found.shared, found.only_a
    (0.5, 1, {'a → x': 1, 'f → a b': 1}, {'b → y': 1})
    """
    x, y = read_tree(a), read_tree(b)
    rows = FittedRows(SparseSpec(damping="sqrt")).transform(Forest.concat([x, y]))
    ours, theirs = productions_of(x), productions_of(y)
    try:
        edits = edit_distance(x, y)
    except LimitError:
        edits = None
    names = [forest.columns.get("blurred", [None])[0] for forest in (x, y)]
    agreement = None if any(texts is None for texts in names) else multiset_similarity(*names)
    return Comparison(
        similarity(x, y),
        float(rows[0].multiply(rows[1]).sum()),
        agreement,
        edits,
        _listed(ours & theirs),
        _listed(ours - theirs),
        _listed(theirs - ours),
    )


def productions_of(forest: Forest) -> Counter[str]:
    """Return how often each production occurs in the trees of a forest, as ``label → children``."""
    start, child = (array.tolist() for array in forest.children)
    text = [forest.labels[label] for label in forest.label.tolist()]
    return Counter(
        f"{text[node]} → {' '.join([text[c] for c in child[first:last]])}"
        for node, (first, last) in enumerate(pairwise(start))
        if last > first
    )


def _listed(productions: Counter[str]) -> dict[str, int]:
    return dict(sorted(productions.items(), key=lambda item: (-item[1], item[0])))
