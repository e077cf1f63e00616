"""The definitions: tree fragments, and Collins & Duffy's tree kernel as published, the paper's TK.

Short, plain and slow. Every fast kernel is tested against these functions, and they against enumeration.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from treedot.trees import Tree


def fragment_counts(tree: Tree) -> Counter[Tree]:
    """Return how often each fragment occurs; in a fragment, a child is either cut off or expanded."""
    found: Counter[Tree] = Counter()
    rooted: list[list[Tree]] = []  # R(n) of finished nodes that wait for their parents
    for node in tree.postorder():
        first = len(rooted) - len(node.children)
        choices = [[Tree(c.label), *below] for c, below in zip(node.children, rooted[first:], strict=True)]
        here = [Tree(node.label, chosen) for chosen in itertools.product(*choices)] if node.children else []
        found.update(here)
        rooted[first:] = [here]
    return found


def fragment_values(tree: Tree, decay: float) -> dict[Tree, float]:
    """Return the explicit vector (Eq. 2): √λ^(p-1) for each occurrence of a fragment with p productions."""
    return {
        fragment: count * decay ** ((sum(not node.is_leaf for node in fragment.postorder()) - 1) / 2)
        for fragment, count in fragment_counts(tree).items()
    }


def bounded_fragment_counts(tree: Tree, budget: int) -> Counter[Tree]:
    """Return how often each fragment with a cost of at most ``budget`` occurs."""
    found: Counter[Tree] = Counter()
    rooted: list[list[tuple[Tree, int]]] = []  # as in fragment_counts, with the costs
    for node in tree.postorder():
        family = len(node.children)
        first = len(rooted) - family
        here: list[tuple[tuple[Tree, ...], int]] = [((), 0)]  # the children chosen so far, and their cost
        for child, below in zip(node.children, rooted[first:], strict=True):
            choices = [(Tree(child.label), 0), *((part, family + cost) for part, cost in below)]
            here = [
                ((*chosen, part), cost + extra)
                for chosen, cost in here
                for part, extra in choices
                if cost + extra <= budget
            ]
        rooted[first:] = [[(Tree(node.label, chosen), cost) for chosen, cost in here] if family else []]
        found.update(fragment for fragment, _ in rooted[-1])
    return found


def bounded_fragment_values(
    tree: Tree, budget: int, decay: float, damping: Callable[[int], float] = float
) -> dict[Tree, float]:
    """Return g(count) √λ^(p-1) for each fragment with a cost of at most ``budget``; g is the damping."""
    return {
        fragment: damping(count) * decay ** ((sum(not node.is_leaf for node in fragment.postorder()) - 1) / 2)
        for fragment, count in bounded_fragment_counts(tree, budget).items()
    }


def production(node: Tree) -> tuple[str, ...]:
    """Return a node's label and its children's labels."""
    return (node.label, *(child.label for child in node.children))


def subset_tree_kernel(a: Tree, b: Tree, decay: float) -> float:
    """Return K = Σ Δ(n1, n2) over all pairs of nodes.

    Δ is 0 for terminals and for different productions, otherwise ``∏ (1 + λ Δ(child of n1, child of n2))``.
    So a fragment of p productions counts λ^(p-1).
    """

    def delta(x: Tree, y: Tree) -> float:
        if not x.children or production(x) != production(y):
            return 0.0
        return math.prod(1.0 + decay * delta(c, d) for c, d in zip(x.children, y.children, strict=True))

    return sum(delta(x, y) for x in a.postorder() for y in b.postorder())


def bounded_tree_kernel(a: Tree, b: Tree, budget: int, decay: float) -> float:
    """Return the kernel of the fragments with a cost of at most ``budget``, by listing them."""
    values_a, values_b = (bounded_fragment_values(tree, budget, decay) for tree in (a, b))
    return math.fsum(value * values_b.get(fragment, 0.0) for fragment, value in values_a.items())


def subtree_kernel(a: Tree, b: Tree, decay: float) -> float:
    """Return the kernel of complete subtrees: Σ λ^(p-1) over pairs of equal non-terminal subtrees.

    p is the number of productions (of nodes with children) in the subtree.
    """
    return sum(
        decay ** (sum(not node.is_leaf for node in x.postorder()) - 1)
        for x in a.postorder()
        for y in b.postorder()
        if x == y and not x.is_leaf
    )


def toolkit_subtree_kernel(a: Tree, b: Tree, decay: float, unequal: float, mixed: float) -> float:
    """Return the subtree kernel as SVM-LIGHT-TK and KeLP compute it: ΣΔ over all pairs of inner nodes.

    Δ is 0 for different productions, otherwise λ times a factor for every pair of children: 1 for two leaves,
    ``mixed`` for a leaf and an inner node, ``unequal`` for inner nodes with different productions, and Δ for
    inner nodes with equal productions. If ``mixed`` and ``unequal`` are 0, this is λ times the subtree
    kernel.
    """

    def factor(x: Tree, y: Tree) -> float:
        if x.is_leaf or y.is_leaf:
            return 1.0 if x.is_leaf and y.is_leaf else mixed
        return delta(x, y) if production(x) == production(y) else unequal

    def delta(x: Tree, y: Tree) -> float:
        return decay * math.prod(factor(c, d) for c, d in zip(x.children, y.children, strict=True))

    return sum(
        delta(x, y)
        for x in a.postorder()
        for y in b.postorder()
        if not x.is_leaf and production(x) == production(y)
    )


def partial_tree_kernel(
    a: Tree, b: Tree, decay: float, mu: float, gaps: str = "toolkit", terminal_factor: float = 1.0,
    max_length: int | None = None, similarity: Callable[[str, str], float] = lambda x, y: float(x == y),
) -> float:  # fmt: skip
    """Return Moschitti's (2006) kernel of partial trees: K = Σ Δ(n1, n2) over all pairs of nodes.

    Δ is 0 for different labels, μ λ² terminal_factor if either node is a leaf, and otherwise
    ``μ (λ² + Σ λ^g ∏ Δ(child of n1, child of n2))`` over all pairs of equally long subsequences of the
    children of both. Let d be the number of children from a subsequence's first to its last. Then g is
    d1 + d2 for 'span', and the number of skipped children, d1 + d2 - 2 · length, for 'toolkit'.

    With another ``similarity`` σ of labels, it is Croce et al.'s (2011) smoothed kernel: Δ is multiplied by
    σ.
    """

    def delta(x: Tree, y: Tree) -> float:
        sigma = similarity(x.label, y.label)
        if not sigma:
            return 0.0
        if x.is_leaf or y.is_leaf:
            return sigma * mu * decay**2 * terminal_factor
        below = [[delta(c, d) for d in y.children] for c in x.children]
        longest = min(len(x.children), len(y.children))
        total = decay**2
        for length in range(1, longest + 1 if max_length is None else min(longest, max_length) + 1):
            for i in itertools.combinations(range(len(x.children)), length):
                for j in itertools.combinations(range(len(y.children)), length):
                    spans = (i[-1] - i[0] + 1) + (j[-1] - j[0] + 1)
                    gap = spans - 2 * length if gaps == "toolkit" else spans
                    total += decay**gap * math.prod(below[k][m] for k, m in zip(i, j, strict=True))
        return sigma * mu * total

    return sum(delta(x, y) for x in a.postorder() for y in b.postorder())


def partial_tree_values(
    tree: Tree, decay: float, mu: float, gaps: str = "toolkit", max_length: int | None = None
) -> dict[Tree, float]:
    """Return the explicit vector of the partial tree kernel, by listing all partial trees.

    An occurrence of a partial tree counts √μ for every node, λ for every node that has no children in it, and
    λ^g for every other node. g is the number of the node's children from the first to the last one in the
    partial tree ('span'), or only the number of skipped ones between them ('toolkit').
    """
    found: dict[Tree, float] = {}
    rooted: list[list[tuple[Tree, float]]] = []  # at finished nodes that wait for their parents
    for node in tree.postorder():
        first = len(rooted) - len(node.children)
        below = rooted[first:]
        here = [(Tree(node.label), math.sqrt(mu) * decay)]
        for length in range(1, len(below) + 1 if max_length is None else min(len(below), max_length) + 1):
            for chosen in itertools.combinations(range(len(below)), length):
                span = chosen[-1] - chosen[0] + 1
                weight = math.sqrt(mu) * decay ** (span - length if gaps == "toolkit" else span)
                for parts in itertools.product(*(below[k] for k in chosen)):
                    value = weight * math.prod(part[1] for part in parts)
                    here.append((Tree(node.label, [part[0] for part in parts]), value))
        for part, value in here:
            found[part] = found.get(part, 0.0) + value
        rooted[first:] = [here]
    return found


def route_kernel(a: Tree, b: Tree, decay: float, start: str = "any") -> float:
    """Return Aiolli et al.'s (2009) kernel: Σ λ^k over the pairs of equal routes of k steps.

    A route is the sequence of child positions on the way down from a node (or only from the root) to the node
    itself or a descendant, with the label of the last node.
    """
    routes_a, routes_b = (_routes(tree, start) for tree in (a, b))
    return sum(count * routes_b[route] * decay ** len(route[0]) for route, count in routes_a.items())


def _routes(tree: Tree, start: str) -> Counter[tuple[tuple[int, ...], str]]:
    def below(node: Tree, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
        yield path, node.label
        for position, child in enumerate(node.children):
            yield from below(child, (*path, position))

    starts = [tree] if start == "root" else tree.postorder()
    return Counter(route for node in starts for route in below(node, ()))


def preference_kernel(
    first: tuple[Tree, Tree], second: tuple[Tree, Tree], kernel: Callable[[Tree, Tree], float]
) -> float:
    """Return Shen & Joshi's (2003) kernel of two pairs of trees, of which the first one is better."""
    (a, b), (c, d) = first, second
    return kernel(a, c) + kernel(b, d) - kernel(a, d) - kernel(b, c)


def composed_similarity(
    a: str, b: str, vectors: Mapping[str, Sequence[float]], composition: str = "sum"
) -> float:
    """Return Annesi et al.'s (2014) similarity of ``relation<head,modifier>``, for partial_tree_kernel.

    It is the cosine of the composed vectors of both words, each of length 1, if heads and modifiers have the
    same parts of speech; a word without a vector gets that of the other one. ``vectors`` has the words
    without their parts of speech, which follow after ``::``.
    """

    def unit(vector: Sequence[float]) -> list[float]:
        length = math.hypot(*vector)
        return [x / length if length else 0.0 for x in vector]

    def composed(words: list[str]) -> list[float]:
        known = [unit(vectors[word]) for word in (word.split("::")[0] for word in words) if word in vectors]
        pairs = zip(known[0], known[-1], strict=True)
        return unit([x + y if composition == "sum" else x * y for x, y in pairs])

    if a == b:
        return 1.0
    first, second = (label.rstrip(">").partition("<")[2].split(",") for label in (a, b))
    if [word.split("::")[1:] for word in first] != [word.split("::")[1:] for word in second]:
        return 0.0
    if not all(any(word.split("::")[0] in vectors for word in words) for words in (first, second)):
        return 0.0
    return math.fsum(x * y for x, y in zip(composed(first), composed(second), strict=True))
