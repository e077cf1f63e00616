"""The smoothed partial tree kernel of Croce, Moschitti & Basili (2011): similar words match, too."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy.typing as npt

from treedot.errors import ParameterError
from treedot.kernels.label_similarity import Similarity, similar_labels
from treedot.kernels.partial.gram import Families, PartialDelta
from treedot.kernels.partial.kernel import PartialTreeKernel, widest
from treedot.kernels.partial.one_pair import kernel_of_similar
from treedot.kernels.partial.pairwise import sides_of
from treedot.kernels.partial.subsequences import Side
from treedot.kernels.subset.pairwise import Trees
from treedot.kernels.tree_kernel import MATCHING, MAX_PAIRS, Limited
from treedot.kernels.word_vectors import WordVectors
from treedot.parameters import checked_share
from treedot.trees import Forest


class SmoothedPartialTreeKernel(PartialTreeKernel):
    r"""Counts the partial trees that two trees share; nodes with similar labels match partially.

    It is ``PartialTreeKernel`` with the similarity σ of the labels of two nodes as a factor:

    ``Δ(n1, n2) = σ μ (λ² + Σ λ^g ∏ Δ(child of n1, child of n2))``

    for inner nodes, and ``Δ = σ μ λ² terminal_factor`` if at least one node is a leaf. σ is 1 for equal
    labels. For others it is given by ``similarity``, and is 0 if that is less than ``threshold``.

    Parameters
    ----------
    similarity : WordVectors, ComposedWordVectors, mapping, path, or callable
        Word vectors: a ``WordVectors``, a mapping of words to vectors, or the path of a text file. The
        similarity of labels of the same part of speech, such as ``dog::n`` and ``cat::n``, is the cosine of
        their vectors. Or ``ComposedWordVectors``, for labels that name a head and its modifier. Or any
        symmetric function of two labels; it is called once for each pair of different labels.
    decay : float, default=0.4
        The decay λ, as in ``PartialTreeKernel``.
    mu : float, default=0.4
        The factor μ, as in ``PartialTreeKernel``.
    gaps : {"toolkit", "span"}, default="toolkit"
        The meaning of g, as in ``PartialTreeKernel``.
    terminal_factor : float, default=1.0
        The factor of pairs with a leaf, as in ``PartialTreeKernel``.
    max_length : int, default=None
        The longest subsequence of children that counts, as in ``PartialTreeKernel``.
    threshold : float, default=0.01
        Smaller similarities count as 0; from 0 to 1.
    normalize : bool, default=False
        Divide K(a, b) by √(K(a, a) K(b, b)).
    max_pairs : int, default=2**27
        See ``PartialTreeKernel``. It also limits the number of pairs of labels that are compared: of all
        labels, or of the labels of each part of speech.

    See Also
    --------
    PartialTreeKernel : The same kernel with σ = 1 for equal labels and 0 for others.
    ComposedWordVectors : Similarity of labels that name two words.
    DistributedTreeVectorizer : With ``kernel="smoothed"``, vectors for many trees.

    Notes
    -----
    The published formula gives two leaves σ μ λ; KeLP's code computes σ μ λ², and so does this kernel.

    If σ is not a kernel of labels, neither is this one: the matrix may have negative eigenvalues. Cosines are
    a kernel, but need not remain one when small and negative ones are replaced by 0.

    References
    ----------
    D. Croce, A. Moschitti & R. Basili, "Structured Lexical Similarity via Convolution Kernels on Dependency
    Trees", EMNLP 2011. KeLP calls this kernel ``SmoothedPartialTreeKernel``.

    Examples
    --------
    >>> kernel = SmoothedPartialTreeKernel({"dog": [3, 4], "cat": [4, 3]}, decay=0.5, mu=0.5)
    >>> kernel("(NP (NN dog::n))", "(NP (NN cat::n))")  # words: .96/8, NN: .37/2, NP: .435/2
    0.5225
    >>> kernel("(NP (NN dog::n))", "(NP (NN bird::n))")  # NN: 1/8, NP: 3/16
    0.3125
    """

    def __init__(
        self,
        similarity: Similarity | Mapping[str, npt.ArrayLike] | str | os.PathLike[str],
        *,
        decay: float = 0.4,
        mu: float = 0.4,
        gaps: str = "toolkit",
        terminal_factor: float = 1.0,
        max_length: int | None = None,
        threshold: float = 0.01,
        normalize: bool = False,
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        super().__init__(
            decay,
            mu=mu,
            gaps=gaps,
            terminal_factor=terminal_factor,
            max_length=max_length,
            normalize=normalize,
            max_pairs=max_pairs,
        )
        self.similarity = _checked_similarity(similarity)
        self.threshold = checked_share("threshold", threshold)

    def _nodes(self, forest: Forest) -> Families:
        labels = similar_labels(forest.labels, self.similarity, self.threshold, self.max_pairs)
        return Families(forest, labels)

    def _whole(self, forest: Forest, nodes: Families) -> PartialDelta:
        return PartialDelta(nodes, (0, len(forest)))

    def _sides(self, forest: Forest, nodes: Families) -> tuple[Trees, Side]:
        return sides_of(nodes)

    def _limited(self) -> Limited:
        if self.terminal_factor != 1 or not isinstance(self.similarity, WordVectors):
            return MATCHING
        return Limited(instead="compare the vectors of DistributedTreeVectorizer with kernel='smoothed'")

    def _raw_pair(self, x: Forest, y: Forest) -> float:
        most = widest(y)
        self._check_widths(widest(x), most)
        number = {text: k for k, text in enumerate(dict.fromkeys((*x.labels, *y.labels)))}
        labels = similar_labels(list(number), self.similarity, self.threshold, self.max_pairs)
        of_x, of_y = (labels.chosen([number[text] for text in side.labels]) for side in (x, y))
        weights = self._weights(labels.value)
        value = kernel_of_similar(x, y, of_x, of_y, weights, int(most[0]), self.max_pairs)
        return self._pair_of_many(x, y) if value is None else value


def _checked_similarity(
    similarity: Similarity | Mapping[str, npt.ArrayLike] | str | os.PathLike[str],
) -> Similarity:
    """Return the similarity of labels if it is valid, else raise ParameterError."""
    if isinstance(similarity, (str, os.PathLike, Mapping)):
        return WordVectors.of(similarity)
    if callable(similarity):  # WordVectors are callable, too
        return similarity
    raise ParameterError(
        "similarity must be word vectors (a mapping, the path of a file, WordVectors) or a function of two "
        f"labels, not {similarity!r}"
    )
