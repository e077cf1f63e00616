"""Trees to sparse rows of their fragments, as a scikit-learn transformer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from treedot._runtime.sorted_arrays import locate
from treedot.errors import ParameterError, SourceError
from treedot.parameters import checked_integer
from treedot.readers import iter_trees, read_tree, read_trees
from treedot.trees import Forest, Tree
from treedot.vectors.encoder_cache import kept_encoder
from treedot.vectors.sparse.dictionary import FragmentDictionary
from treedot.vectors.sparse.encoder import SparseEncoder
from treedot.vectors.sparse.fitted_rows import FittedRows, exact_log_norms
from treedot.vectors.sparse.idf import DocumentCounts, checked_idf, is_flag
from treedot.vectors.sparse.occurrences import Occurrences
from treedot.vectors.sparse.rows import LearnedColumns
from treedot.vectors.spec import SparseSpec, default_damping, spec_of
from treedot.vectors.transformers import SparseTreeTransformer, check_source

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BATCH = 4096  # trees read at a time
MAX_NAMED = 2**22  # most columns that get names


class FragmentColumns(NamedTuple):
    """Fragments of some trees, as a dictionary, with the columns and signs of those that have a column."""

    dictionary: FragmentDictionary
    number: np.ndarray
    column: np.ndarray
    sign: np.ndarray


class FragmentVectorizer(SparseTreeTransformer):
    """Sparse rows of the fragments of a tree: every fragment within a budget has one column.

    The *cost* of a fragment is a sum over its productions other than the root's: each counts the children
    of its parent, so expanding one of m children costs m. A fragment is *bounded* if its cost is at most the
    budget. The value of a fragment with p productions that occurs ``count`` times is g(count)·√λ^(p - 1).
    The rows are exact, apart from hash collisions. They leave out the large fragments, whose number is
    exponential, so they hardly depend on λ. As a similarity of trees and as input of a linear model they do
    at least as well as the full kernel on all our corpora.

    With ``rest``, dot products approximate the full kernel, ``SubsetTreeKernel``: bounded fragments are
    exact, and the fragments beyond the budget, the *rest*, are approximated.

    Parameters
    ----------
    n_features : int or None, default=2**20
        The number of columns, a power of two. Fragments are hashed into them with random signs, so there is
        nothing to fit. With None, ``fit`` gives each fragment of its trees a column of its own, with a name;
        fragments that it has not seen count only towards the length of a row. The default suits linear
        models of scikit-learn, which keep a weight for every column and class. ``TreeIndex``,
        ``TreeClassifier`` and ``treedot kernel`` keep only the columns that occur, so their default is
        ``2**30``, where hardly any fragments collide. ``train_files`` keeps all weights in arrays of its own;
        its default is ``2**22``.
    decay : float, default=0.4
        The decay λ, in [0, 1]. With smaller values, large fragments count less.
    budget : int or None, default=4
        The largest cost of a fragment. None means all fragments, whose number is exponential: use it only
        for small trees and for comparison.
    damping : {"sqrt", "log1p", "linear"}, default=None
        The function g of the number of occurrences. The default is the square root, and "linear" with a
        ``rest``, which allows nothing else.
    idf : bool or array, default=False
        Multiply every column by ``ln((1 + trees) / (1 + trees that hold it)) + 1``, counted by ``fit``; or by
        given weights, one per column. Not available with a ``rest``.
    normalize : bool, default=True
        Divide every row by the length of its fragments, so that dot products are cosines, apart from hash
        collisions; with a ``rest``, by the exact length √K(a, a).
    rest : {None, "dense", "blocks"}, default=None
        ``None``: only bounded fragments. ``"dense"``: the rest is one dense vector of ``rest_size``
        dimensions, scaled to its exact length. Its errors are about ``1/√rest_size`` for pairs that share
        little and for near-duplicates, and up to four times that for near-duplicates of JSON files and HTML
        pages.
        ``"blocks"``: fragments that begin alike share a block of four columns. Only this ranks pairs that
        share little correctly for λ of 0.6 and more. But it is wrong for pairs that share much, even for a
        tree and itself: rows of trees with dozens of siblings are far too short, and near-duplicates of JSON
        files are missed already at λ = 0.05. Use a budget of 12.
    rest_size : int, default=6144
        The number of dimensions of a dense rest, a multiple of 256.
    random_state : int, default=0
        The seed of all hashes. Only rows with the same seed can be compared.
    dtype : {"float32", "float64"}, default="float32"
        The type of the rows.
    n_jobs : int, default=None
        Threads; -1 for all cores. The rows are the same to the byte.

    Attributes
    ----------
    dictionary_ : FragmentDictionary
        With ``n_features=None``, the ``len(dictionary_)`` fragments that have columns. ``trees()`` lists them
        in the order of the columns; ``documents`` holds for each the number of trees that contain it, out of
        ``n_trees``. The arrays become read-only when they are used.
    documents_ : DocumentCounts
        With ``idf=True`` and hashed columns, a named tuple: ``columns``, those in use, ascending; ``counts``,
        the number of trees that hold each; and ``n_trees``, the number of trees.

    See Also
    --------
    DistributedTreeVectorizer : Dense vectors of all fragments.
    clear_encoders : Drop the keys of labels that are kept in memory.

    Notes
    -----
    The keys of labels are kept for later calls of all vectorizers with the same settings. The process keeps
    at most 1 GiB; the least recently used settings are dropped first.

    Examples
    --------
    >>> from treedot import FragmentVectorizer
    >>> trees = ["(S (NP (NNP Ann)) (VP (VBZ runs)))", "(S (NP (NNP Bob)) (VP (VBZ runs)))"]
    >>> rows = FragmentVectorizer().transform(trees)
    >>> rows.shape, rows.nnz
    ((2, 1048576), 24)
    >>> print(f"{(rows[0] @ rows[1].T).toarray()[0, 0]:.2f}")
    0.78
    >>> vectorizer = FragmentVectorizer(n_features=None, budget=1).fit(["(A (B b))", "(A (B c) (B c))"])
    >>> print(*sorted(vectorizer.get_feature_names_out()), sep=", ")
    (A (B b)), (A B B), (A B), (B b), (B c)
    """

    def __init__(
        self,
        *,
        n_features: int | None = SparseSpec.n_features,
        decay: float = 0.4,
        budget: int | None = 4,
        damping: str | None = None,
        idf: Any = False,
        normalize: bool = True,
        rest: str | None = None,
        rest_size: int = SparseSpec.rest_size,
        random_state: int = 0,
        dtype: str = "float32",
        n_jobs: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.decay = decay
        self.budget = budget
        self.damping = damping
        self.idf = idf
        self.normalize = normalize
        self.rest = rest
        self.rest_size = rest_size
        self.random_state = random_state
        self.dtype = dtype
        self.n_jobs = n_jobs

    @property
    def spec(self) -> SparseSpec:
        """Everything that determines a row, except what ``fit`` learns; ``fingerprint`` covers both."""
        damping = default_damping(self.rest) if self.damping is None else self.damping
        return spec_of(
            SparseSpec, self.n_features, self.decay, self.budget, damping, self.rest, self.rest_size,
            checked_integer("random_state", self.random_state), self.normalize, self.dtype,
        )  # fmt: skip

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn columns or weights if ``n_features`` is None or ``idf`` is True; check the parameters.

        Parameters
        ----------
        X : source of trees, default=None
            Anything that ``read_trees`` reads. A file is read batch by batch.
        y : object, default=None
            Not used.

        Returns
        -------
        FragmentVectorizer
            The vectorizer itself.
        """
        spec, idf = self.spec, self._checked_idf(before_fit=True)
        if self.n_features is None:
            encoder = SparseEncoder(spec, LearnedColumns.make(np.zeros(0, np.uint64)))
            batches = ((batch, encoder.bounded_fragments(batch, self.n_jobs)) for batch in _batches(X))
            self.dictionary_ = FragmentDictionary.of_parts(batches)
            if not len(self.dictionary_):
                what = "every tree is a single node" if self.dictionary_.n_trees else "there are no trees"
                raise SourceError(f"no fragments to learn: {what}")
        elif idf is True:
            encoder = kept_encoder(spec, (), partial(SparseEncoder, spec))
            self.documents_ = DocumentCounts.of(encoder.encode(b, n_jobs=self.n_jobs) for b in _batches(X))
        else:
            check_source(X)
        self._fitted_to = _learned_with(spec)
        return self

    def transform(self, X: Any) -> csr_matrix:
        """Return one sparse row per tree.

        Parameters
        ----------
        X : source of trees
            Anything that ``read_trees`` reads: a Forest, a path, a list of bracket texts or of ``Tree``
            objects.

        Returns
        -------
        csr_matrix of shape (n_trees, n_columns)
            The rows. With a ``rest``, its columns follow those of the bounded fragments.

        See Also
        --------
        clear_encoders : Drop the keys of labels that are kept in memory.
        """
        return self._rows().transform(read_trees(X))

    def transform_fragment(self, fragment: Any) -> csr_matrix:
        """Return the row of one fragment: ±1 in its column, or its vector in the rest, of length about 1.

        Without ``idf`` and ``normalize``, its dot product with a tree's row is the fragment's value in the
        tree: exact for bounded fragments, apart from hash collisions, and an estimate for those in the rest.
        Its dot product with the weights of a linear model is the fragment's weight. A fragment without a
        column, beyond the budget or not in the dictionary, has an empty row.

        Parameters
        ----------
        fragment : tree
            Anything that ``read_tree`` reads.

        Returns
        -------
        csr_matrix of shape (1, n_columns)
            The row.
        """
        return self._encoder().encode_fragment(read_tree(fragment)[0])

    def column_fragments(self, X: Any) -> dict[int, list[Tree]]:
        """Return the bounded fragments of some trees by column.

        A hashed column holds a fragment with a random sign: the fragment's weight in a linear model is
        ``dot_products(transform_fragment(f), coef_)``, while the column's weight may have the opposite sign.

        Parameters
        ----------
        X : source of trees
            Anything that ``read_trees`` reads.

        Returns
        -------
        dict of int to list of Tree
            The fragments of each column, several if they collide.
        """
        found, listed = dict[int, list[Tree]](), self.fragment_columns(X)
        trees = listed.dictionary.trees()
        for number, column in zip(listed.number.tolist(), listed.column.tolist(), strict=True):
            found.setdefault(column, []).append(trees[number])
        return found

    def fragment_columns(self, X: Any, max_fragments: int | None = None) -> FragmentColumns:
        """Return the distinct bounded fragments of some trees, and the columns of those that have one.

        Parameters
        ----------
        X : source of trees
            Anything that ``read_trees`` reads.
        max_fragments : int, default=None
            Stop reading after the batch in which the number of distinct fragments exceeds this.

        Returns
        -------
        FragmentColumns
            The fragments as a ``dictionary``; of those that have a column, the ``number`` in the dictionary,
            the ``column`` and the ``sign``.
        """
        encoder = self._encoder()
        batches = ((batch, encoder.bounded_fragments(batch, self.n_jobs)) for batch in _batches(X))
        dictionary = FragmentDictionary.of_parts(batches, max_fragments)
        key = dictionary.key
        if self.n_features is None:
            number, column = locate(key, encoder.learned.key)
            return FragmentColumns(dictionary, number, column, np.ones(number.size))
        column = (key >> np.uint64(encoder.spec.shift)).astype(np.int64)
        return FragmentColumns(
            dictionary, np.arange(key.size), column, np.where(key & np.uint64(1), -1.0, 1.0)
        )

    def occurrences(self, tree: Any) -> Occurrences:
        """Return all occurrences of bounded fragments in one tree, with their columns and values.

        The values of the fragments of a column add up to the row's value there.

        Parameters
        ----------
        tree : tree
            Anything that ``read_tree`` reads.

        Returns
        -------
        Occurrences
            The occurrences, and for every distinct fragment its column and value.
        """
        encoder, forest = self._encoder(), read_tree(tree)
        log_norm = None if self.rest is None else float(exact_log_norms(forest, encoder.spec.decay)[0])
        return encoder.occurrences(forest, log_norm)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns: fragments as bracket text, or numbers if columns are hashed.

        Parameters
        ----------
        input_features : object, default=None
            Not used.

        Returns
        -------
        array of str of shape (n_columns,)
            The names.
        """
        encoder = self._encoder()
        if encoder.n_columns > MAX_NAMED:
            raise ParameterError(
                f"{encoder.n_columns} hashed columns are too many to name: use column_fragments(trees) to "
                "list the fragments of each column, or n_features=None"
            )
        if self.n_features is None:
            names = [str(fragment) for fragment in self.dictionary_.trees()]
        else:
            names = [f"fragments{k}" for k in range(encoder.n_explicit)]
        names += [f"rest{k}" for k in range(encoder.n_columns - encoder.n_explicit)]
        return np.array(names, dtype=object)

    @property
    def fingerprint(self) -> str:
        """A short stable name of everything that determines a row, including what ``fit`` learned."""
        return self._rows().fingerprint

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters and the fitted state to a file, atomically.

        Parameters
        ----------
        path : path
            The file.
        """
        self._rows().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that ``save`` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        FragmentVectorizer
            The vectorizer.

        Raises
        ------
        SourceError
            If the file cannot be read, or does not hold a vectorizer.
        """
        return cls._of_rows(FittedRows.load(path))

    @classmethod
    def _of_rows(cls, rows: FittedRows) -> Self:
        """Return the vectorizer with the settings and learned columns of ``rows``."""
        spec, parameters = rows.spec, rows.parameters or {}
        made = cls(
            n_features=spec.n_features, decay=spec.decay, budget=spec.budget,
            damping=parameters.get("damping", spec.damping), idf=rows.idf, normalize=spec.normalize,
            rest=spec.rest, rest_size=spec.rest_size, random_state=spec.seed, dtype=spec.dtype,
            n_jobs=parameters.get("n_jobs"),
        )  # fmt: skip
        if isinstance(rows.learned, FragmentDictionary):
            made.dictionary_ = rows.learned
        elif rows.learned is not None:
            made.documents_ = rows.learned
        made._fitted_to = _learned_with(spec)
        return made

    @property
    def _is_stateless(self) -> bool:
        return self.n_features is not None and not (is_flag(self.idf) and self.idf)

    @property
    def _n_features_out(self) -> int:
        return self._encoder().n_columns

    def _rows(self) -> FittedRows:
        """Return everything that determines a row."""
        spec, idf, learned = self.spec, self._checked_idf(), None
        if not self._is_stateless:
            self._check_fitted()
            learned = self.dictionary_ if self.n_features is None else self.documents_
        return FittedRows(spec, idf, learned, {"damping": self.damping, "n_jobs": self.n_jobs})

    def _encoder(self) -> SparseEncoder:
        return self._rows().encoder()

    def _check_fitted(self) -> None:
        check_is_fitted(self)
        if self._fitted_to != _learned_with(self.spec):
            raise ParameterError("n_features, budget or random_state have changed since fit: call fit again")

    def _checked_idf(self, before_fit: bool = False) -> bool | np.ndarray:
        """Return ``idf``, checked against the number of columns, which ``fit`` may still have to learn."""
        n_columns = self.n_features
        if n_columns is None and not before_fit and hasattr(self, "dictionary_"):
            n_columns = len(self.dictionary_)
        return checked_idf(self.idf, n_columns, self.rest)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = not self._is_stateless
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        learned = "dictionary_" if self.n_features is None else "documents_"
        return self._is_stateless or hasattr(self, learned)


def _learned_with(spec: SparseSpec) -> tuple[Any, ...]:
    """Return the settings that learned columns depend on."""
    return spec.n_features, spec.budget, spec.seed


def _batches(X: Any) -> Iterator[Forest]:
    return iter([X]) if isinstance(X, Forest) else iter_trees(X, batch_size=BATCH)
