"""Prepare pairs of texts: link their equal words, and measure their lexical overlap."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from treedot.models.inputs.links import Pairs
from treedot.models.inputs.overlap import LexicalOverlap
from treedot.models.inputs.table import Columns, read_table
from treedot.parameters import checked_flag
from treedot.vectors.transformers import TreeTransformer

OVERLAP = "overlap"


class PairTransformer(TreeTransformer):
    """Link the words that two trees of a pair have in common, and measure their lexical overlap.

    The input is a table with two columns of trees, such as a text and a hypothesis that may follow from it.
    The output is a table with both columns and the column ``overlap``:

    - In the trees, the placeholder ``#k`` replaces the k-th content word of the hypothesis that the text has,
      too, in both trees. So a tree kernel sees where the words of one tree are in the other. Content words
      have the tag of a noun, verb, adjective, adverb or number, and case does not matter.
    - The overlap is the share of the hypothesis's words that the text has. Words count with their inverse
      document frequency ``ln((N + 1) / (df + 1))``, where df of the N training trees hold the word. It is
      computed before words are replaced.

    ``fit`` learns document frequencies, and nothing else.

    Parameters
    ----------
    columns : sequence of two str, default=('text', 'hypothesis')
        The columns of trees.
    link : bool, default=True
        Whether to link words; without, the trees are left as they are.

    Attributes
    ----------
    overlap_ : LexicalOverlap
        The document frequencies.

    See Also
    --------
    TreeClassifier : With ``pair_columns``, does the same and trains on the result.

    References
    ----------
    A. Moschitti and F. M. Zanzotto (2007), *Fast and effective kernels for relational learning from texts*,
    ICML; F. M. Zanzotto and L. Dell'Arciprete (2012), *Distributed tree kernels*, ICML, section 5.2.

    Examples
    --------
    >>> from treedot.models import PairTransformer
    >>> pairs = {
    ...     "text": ["(S (NP (NNP Ann)) (VP (VBD met) (NP (NNP Bob))))", "(S (NN rain) (VBD fell))"],
    ...     "hypothesis": ["(S (NP (NNP Bob)) (VP (VBD met)))", "(S (NN snow) (VBD fell))"],
    ... }
    >>> found = PairTransformer().fit_transform(pairs)
    >>> print(found["text"][0], found["hypothesis"][0], sep="; ")
    (S (NP (NNP Ann)) (VP (VBD #2) (NP (NNP #1)))); (S (NP (NNP #1)) (VP (VBD #2)))
    >>> found["overlap"].round(2)
    array([1.  , 0.36])
    """

    def __init__(self, *, columns: Any = ("text", "hypothesis"), link: bool = True) -> None:
        self.columns = columns
        self.link = link

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the document frequencies of words.

        Parameters
        ----------
        X : table
            The training pairs: a data frame, an Arrow table, a dictionary of columns, a ``Forest`` with
            columns or a file.
        y : object, default=None
            Not used.

        Returns
        -------
        PairTransformer
            The transformer itself.

        Raises
        ------
        ParameterError
            If a parameter is invalid, or a column is missing.
        """
        self.overlap_ = LexicalOverlap.learned(self._read(X))
        return self

    def transform(self, X: Any) -> dict[str, Any]:
        """Return the linked trees and the overlap of every pair.

        Parameters
        ----------
        X : table
            The pairs.

        Returns
        -------
        dict of str to Forest or array
            Both columns of trees, and ``overlap``, an array of shape (n_pairs,) from 0 to 1.
        """
        check_is_fitted(self)
        read = self._read(X)
        shown = read.linked() if checked_flag("link", self.link) else read
        first, second = self.columns
        return {first: shown.texts, second: shown.hypotheses, OVERLAP: self.overlap_(read)}

    def _read(self, X: Any) -> Pairs:
        names = Columns.make(None, [OVERLAP], None, self.columns)._replace(numbers=(), pair=())
        table = read_table(X, names)
        return Pairs(*(table[name] for name in names.trees))
