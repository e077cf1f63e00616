"""The first section of the tour: trees become vectors, and dot products estimate the exact kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import treedot as td
from treedot.cli.tour.growth import growth_part
from treedot.cli.tour.plots import scatter
from treedot.cli.tour.scaling import COMPONENTS, DECAY, SIZES, WAYS
from treedot.cli.tour.section import Section, beside, code, paragraph, picture, step
from treedot.kernels import list_fragments
from treedot.models.explain.web import coloured_pair, fragment_boxes
from treedot.trees.drawing import tree_html
from treedot.vectors.fidelity import different_pairs, spearman

FIRST = "(S (NP (DT the) (NN bird)) (VP (VBZ sees) (NP (DT the) (NN tree))))"
SECOND = "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN bird))))"
THERE = ("(DT the)", "(NP DT NN)", "(NP (DT the) (NN tree))", "(S NP (VP (VBZ sees) NP))")
NOT_THERE = ("(DT a)", "(NP (DT the) (NN cat))")
LISTED = 6  # shared fragments that are drawn
DECAYS = (DECAY, 0.6)
COMPARED = 400  # functions whose kernels and dot products are compared
STEPS = len(DECAYS) + len(WAYS) * len(SIZES)  # that ``report`` is called for, at most


class Fidelity(NamedTuple):
    """Dot products of dense vectors beside the exact normalised kernel, for all pairs of different trees."""

    decay: float
    exact: np.ndarray
    estimate: np.ndarray
    error: float
    correlation: float


def vectors_section(compared: td.Forest, functions: td.Forest, report: Callable[[], object]) -> Section:
    """Make the section from trees to compare, and functions to cut into pieces; report every step."""
    fidelities = []
    for decay in DECAYS:
        fidelities.append(_fidelity(compared, decay))
        report()
    growth, lines = growth_part(functions, report)
    errors = " and ".join(f"{one.error:.3f} at λ = {one.decay:g}" for one in fidelities)
    agreement = f"  dot products of {len(compared)} functions differ from the exact kernel by {errors} (RMS)"
    body = _pair() + _agreement(len(compared), fidelities) + growth + _readings()
    return Section("vectors", "Trees become vectors", body, [agreement, *lines])


def _pair() -> str:
    found = td.explain_pair(FIRST, SECOND, td.SubsetTreeKernel(DECAY, normalize=True), n_fragments=LISTED)
    first, second = (set(list_fragments(tree)) for tree in (FIRST, SECOND))
    vectors = td.DistributedTreeVectorizer(n_components=COMPONENTS, decay=DECAY).transform([FIRST, SECOND])
    introduction = paragraph(
        "A <em>fragment</em> is a connected piece of a tree in which every node has all of its children or "
        "none. The subset tree kernel counts the fragments that two trees share. One with <i>p</i> inner "
        "nodes has "
        'the weight <span class="formula">λ<sup><i>p</i> − 1</sup></span>.'
    )
    trees = picture(
        coloured_pair(found),
        f"The first sentence has {len(first)} different fragments, the second {len(second)}, and "
        f"{len(first & second)} are in both. A strong colour marks a node that is part of many shared "
        "fragments, or of heavy ones.",
    )
    fragments = picture(
        fragment_boxes((f"{shared.value:.3f}", shared.fragment) for shared in found.fragments),
        f"These shared fragments add most to the kernel. All shared fragments add up to {found.value:.3f} (λ "
        f"= {DECAY}; a tree has 1 with itself). The vectors of the two sentences, {COMPONENTS:,} numbers "
        f"each, have the dot product {float(vectors[0] @ vectors[1]):.3f}, and are made without listing any "
        "fragment.",
    )
    return introduction + trees + fragments


def _fidelity(forest: td.Forest, decay: float) -> Fidelity:
    gram = td.SubsetTreeKernel(decay=decay, normalize=True).gram(forest, n_jobs=-1)
    vectorizer = td.DistributedTreeVectorizer(n_components=COMPONENTS, decay=decay, n_jobs=-1)
    estimate = td.dot_products(vectorizer.transform(forest)).astype(float)
    pairs = different_pairs(len(forest))
    error = float(np.sqrt(np.mean((estimate - gram)[pairs] ** 2)))
    return Fidelity(decay, gram[pairs], estimate[pairs], error, spearman(gram, estimate))


def _agreement(n_trees: int, fidelities: list[Fidelity]) -> str:
    introduction = paragraph(
        f"The plots show all pairs of {n_trees} parsed functions of Python's standard library. Every "
        f"function is one vector of {COMPONENTS:,} numbers from {code('DistributedTreeVectorizer')}, after "
        "<cite>Distributed Tree Kernels</cite> (Zanzotto and Dell'Arciprete, 2012)."
    )
    plots = picture(
        beside(*((f"λ = {one.decay:g}", _scatter(one) + _agreement_words(one)) for one in fidelities)),
        "A point on the dotted line is a pair whose dot product equals the exact kernel. A larger λ gives "
        "more weight to large fragments, which few pairs share, so that more kernels are near 0. Choose a λ "
        "at which the kernels that matter are larger than the error; vectors with more numbers have smaller "
        "errors.",
    )
    return step("Dot products against the exact kernel") + introduction + plots


def _agreement_words(one: Fidelity) -> str:
    return paragraph(
        f"Half of the kernels are below {np.median(one.exact):.3f}. The error, as a root mean square, is "
        f"{one.error:.3f}. The rank correlation with the exact kernel is {one.correlation:.3f}."
    )


def _scatter(one: Fidelity) -> str:
    title = f"Dot products against exact kernels at λ = {one.decay:g}"
    return scatter(title, one.exact, one.estimate, "exact kernel", "dot product")


def _readings() -> str:
    vectorizer = td.DistributedTreeVectorizer(n_components=COMPONENTS, decay=DECAY, normalize=False)
    vector = vectorizer.transform([FIRST])[0]
    true = list_fragments(FIRST, DECAY)
    boxes = []
    for fragment in map(td.Tree.parse, THERE + NOT_THERE):
        estimate = float(vector @ vectorizer.transform_fragment(fragment))
        boxes.append((f"{estimate:.2f} <small>true: {true.get(fragment, 0.0):.2f}</small>", fragment))
    introduction = paragraph(
        f"Every fragment has a vector of its own ({code('transform_fragment')}). Its dot product with the "
        "vector of a tree estimates how often the fragment occurs in the tree, times "
        '<span class="formula">√λ<sup><i>p</i> − 1</sup></span>.'
    )
    fragments = picture(
        tree_html(td.Tree.parse(FIRST)) + fragment_boxes(boxes),
        "Above each fragment is its dot product with the vector of the sentence, and the true value. The "
        f"first {len(THERE)} fragments occur in the sentence, the last {len(NOT_THERE)} do not. The length "
        f"of the vector, divided by √{COMPONENTS:,}, is the error to expect: {_noise(vector):.2f}.",
    )
    return step("Read a fragment from a vector") + introduction + fragments


def _noise(vector: np.ndarray) -> float:
    return float(np.linalg.norm(vector)) / COMPONENTS**0.5
