"""Compose the vectors of a head and its modifier, for compositional trees."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from treedot._runtime.array_types import FloatArray
from treedot.kernels.label_vectors import LabelVectors
from treedot.kernels.word_vectors import WordVectors, part_of_speech, scaled_to_length_one
from treedot.parameters import checked_choice, checked_flag
from treedot.trees.compositions import composition_of

COMPOSITIONS = ("sum", "product")


class ComposedWordVectors(LabelVectors):
    """The similarity of labels that name a head and its modifier, from the vectors of both words.

    A label is a relation and two words, ``nsubj<grow::v,tree::n>``. Its vector is the sum or the product,
    entry by entry, of the vectors of both words, each of length 1; a word without a vector gets that of the
    other one. The similarity of two labels is the cosine of their vectors, if the heads have the same part of
    speech, and the modifiers, too. With it, ``SmoothedPartialTreeKernel`` is the compositionally smoothed
    partial tree kernel, in which a word is compared together with the word that it depends on.

    Parameters
    ----------
    vectors : WordVectors, mapping of str to sequence of float, or path
        The word vectors, or an argument of ``WordVectors.of``.
    composition : {"sum", "product"}, default="sum"
        How the vectors of both words are composed.
    same_tags : bool, default=True
        Whether labels are similar only if the parts of speech are equal.
    same_relation : bool, default=False
        Whether labels are similar only if the relations are equal.
    words : bool, default=True
        Whether labels of one word, such as ``tree::n``, are similar as with ``WordVectors``; if not, they
        have to be equal, as in KeLP's code.

    See Also
    --------
    SmoothedPartialTreeKernel : The kernel that uses it.
    read_conllu : With ``unit="cgrct"`` or ``"clct"``, reads trees with such labels.

    References
    ----------
    P. Annesi, D. Croce & R. Basili, "Semantic Compositionality in Tree Kernels", CIKM 2014. KeLP has
    ``CompositionalNodeSimilaritySum`` and ``CompositionalNodeSimilarityProduct``.

    Examples
    --------
    >>> composed = ComposedWordVectors({"buy": [1, 0, 0], "car": [0, 1, 0], "bike": [0, 0.6, 0.8]})
    >>> round(composed("dobj<buy::v,car::n>", "dobj<buy::v,bike::n>"), 6)
    0.8
    >>> composed("dobj<buy::v,car::n>", "car::n")
    0.0
    >>> from treedot.kernels import SmoothedPartialTreeKernel
    >>> kernel = SmoothedPartialTreeKernel(composed, decay=0.5, mu=0.5)
    >>> round(kernel("(dobj<buy::v,car::n> NN)", "(dobj<buy::v,bike::n> NN)"), 6)  # 1/8, and .4 (1/4 + 1/8)
    0.275
    """

    def __init__(
        self,
        vectors: WordVectors | Mapping[str, npt.ArrayLike] | str | os.PathLike[str],
        composition: str = "sum",
        *,
        same_tags: bool = True,
        same_relation: bool = False,
        words: bool = True,
    ) -> None:
        self.vectors = WordVectors.of(vectors)
        self.composition = checked_choice("composition", composition, COMPOSITIONS)
        self.same_tags = checked_flag("same_tags", same_tags)
        self.same_relation = checked_flag("same_relation", same_relation)
        self.words = checked_flag("words", words)

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, ComposedWordVectors) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ComposedWordVectors({self.vectors!r}, {self.composition!r})"

    def units(self, labels: Sequence[str]) -> FloatArray:
        parts = [composition_of(label) for label in labels]
        both = np.array([part is not None for part in parts], bool)
        head, modifier = (
            self.vectors.units(
                [label if part is None else part[which] for label, part in zip(labels, parts, strict=True)]
            )
            for which in (1, 2)
        )
        has_head, has_modifier = (side.any(axis=1, keepdims=True) for side in (head, modifier))
        head, modifier = np.where(has_head, head, modifier), np.where(has_modifier, modifier, head)
        composed = head + modifier if self.composition == "sum" else head * modifier
        units: FloatArray = np.where(both[:, None], scaled_to_length_one(composed), head)
        return units

    def _group(self, label: str) -> tuple[str | None, ...] | None:
        part = composition_of(label)
        if part is None:
            return (part_of_speech(label),) if self.words and label in self.vectors else None
        if part.head not in self.vectors and part.modifier not in self.vectors:
            return None
        tags = (part_of_speech(part.head), part_of_speech(part.modifier)) if self.same_tags else (None, None)
        return (*tags, part.relation if self.same_relation else None)
