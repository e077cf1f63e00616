"""Trees to dense vectors: distributed trees as a scikit-learn transformer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from treedot.kernels.word_vectors import WordVectors
from treedot.parameters import checked_integer
from treedot.readers import read_tree, read_trees
from treedot.vectors.decoding.decoder import DecodedTree, Decoder, check_decodable
from treedot.vectors.decoding.fragments import FragmentCounts, estimate_counts
from treedot.vectors.decoding.productions import Productions
from treedot.vectors.dense.encoding import DenseEncoding
from treedot.vectors.dense.reference import fragment_vector
from treedot.vectors.dense.word_labels import WordLabels
from treedot.vectors.spec import DenseSpec, spec_of
from treedot.vectors.transformers import StatelessTreeTransformer


class DistributedTreeVectorizer(StatelessTreeTransformer):
    """Distributed trees: vectors whose dot products approximate the subset or a partial tree kernel.

    The vector of a tree is ``T̃ = Σ s(n)`` over its nodes, with
    ``s(n) = n ⋄ (c1 + √λ s(c1)) ⋄ … ⋄ (cm + √λ s(cm))`` for a node with children c1 … cm and
    ``s(n) = 0`` for a leaf (Zanzotto & Dell'Arciprete 2012, Eq. 6): the weighted sum of the vectors of
    all tree fragments, in time linear in the tree. There is nothing to fit: a vector depends only on
    the tree and the parameters.

    With ``kernel="partial"``, s(n) is the sum over all partial trees rooted at n. In a partial tree, a node
    has any of its children, in their order: ``s(n) = √μ (λ n + Σ E_k)``, with
    ``E_k = κ (n + B_(k-1)) ⋄ s(c_k)`` and ``B_k = λ B_(k-1) + E_k`` for each child; κ is 1 for
    ``gaps="toolkit"`` and λ for ``"span"``. Dot products approximate ``PartialTreeKernel`` with the same
    parameters and ``terminal_factor=1``. With another factor, its matrices may have negative eigenvalues, so
    no vectors have such dot products.

    With ``kernel="smoothed"``, similar words have similar label vectors: the dot product of ``dog::n`` and
    ``cat::n`` is the cosine of their word vectors. Dot products approximate ``SmoothedPartialTreeKernel``,
    except that negative cosines and cosines below its threshold are not set to 0, which dot products cannot
    do.

    Parameters
    ----------
    n_components : int, default=2**13
        The dimension d. A multiple of 256 for ``"mixed"``, a power of two for ``"convolution"``.
    decay : float, default=0.4
        The decay λ, in [0, 1]. With smaller values, large fragments count less, and the approximation is
        better.
    composition : {"mixed", "product", "convolution"}, default="mixed"
        ``"mixed"`` is treedot's own; the others are the paper's shuffled γ-product ⊠ and shuffled
        circular convolution ⊡. Use those two only for sentences: in HTML, JSON and code they
        give false duplicates, thousands of them among 200 HTML pages (see the page on algebras).
    random_state : int, default=0
        The seed of all random vectors. Only vectors with the same seed can be compared.
    normalize : bool, default=True
        Scale every vector to norm 1, so that dot products approximate the normalised kernel,
        K(a, b) / √(K(a, a) K(b, b)).
    dtype : {"float32", "float64"}, default="float32"
        The type of the vectors and of all arithmetic.
    kernel : {"subset", "partial", "smoothed"}, default="subset"
        Which kernel dot products approximate: ``SubsetTreeKernel``, ``PartialTreeKernel`` or
        ``SmoothedPartialTreeKernel``. The last two need ``composition="mixed"``.
    mu : float, default=0.4
        The factor μ, in [0, 1], of every node of a partial tree.
    gaps : {"toolkit", "span"}, default="toolkit"
        How skipped children are penalised: see ``PartialTreeKernel``.
    max_length : int, default=None
        The most children of a node in a partial tree, up to 64. A limit of n takes n times as long as no
        limit.
    similarity : WordVectors, mapping or path, default=None
        For ``kernel="smoothed"``, word vectors of at most ``n_components`` dimensions: a ``WordVectors``, a
        mapping of words to vectors, or the path of a text file. It is read once, and again by every clone;
        later changes to it have no effect.
    n_jobs : int, default=None
        Threads; -1 for all cores. The vectors are the same to the byte.
    device : str, default="cpu"
        "cpu", or "cuda" (or "cuda:1", …) to make the vectors on a GPU. They differ only in rounding. A GPU
        makes float32 vectors with ``"mixed"`` or ``"product"``, and ``n_components`` must be a multiple of
        512 up to 16384. To use vectors on the GPU without copying them, see
        ``treedot.vectors.gpu.GpuEncoder``.

    See Also
    --------
    FragmentVectorizer : Sparse rows of small fragments, which are exact and faster.
    clear_encoders : Drop the label vectors that are kept in memory.

    Notes
    -----
    The vector of a label is drawn when the label first occurs, and kept for later calls of all vectorizers
    with the same settings. The process keeps at most 1 GiB; the least recently used settings are dropped
    first.

    References
    ----------
    F. M. Zanzotto and L. Dell'Arciprete (2012), *Distributed Tree Kernels*, ICML.

    Examples
    --------
    >>> from treedot import DistributedTreeVectorizer
    >>> trees = ["(S (NP (NNP Ann)) (VP (VBZ runs)))", "(S (NP (NNP Bob)) (VP (VBZ runs)))"]
    >>> vectors = DistributedTreeVectorizer().transform(trees)
    >>> vectors.shape
    (2, 8192)
    >>> print(f"{vectors[0] @ vectors[1]:.1f}")  # SubsetTreeKernel(normalize=True) gives 0.77
    0.8
    >>> partial = DistributedTreeVectorizer(kernel="partial", mu=0.4).transform(trees)
    >>> print(f"{partial[0] @ partial[1]:.1f}")  # PartialTreeKernel(normalize=True) gives 0.84
    0.8
    >>> smoothed = DistributedTreeVectorizer(kernel="smoothed", similarity={"Ann": [3, 4], "Bob": [4, 3]})
    >>> ann, bob = smoothed.transform(["(S (NP Ann::n) (VP runs::v))", "(S (NP Bob::n) (VP runs::v))"])
    >>> print(f"{ann @ bob:.2f}")  # SmoothedPartialTreeKernel(…, normalize=True) gives 0.99
    0.99
    """

    def __init__(
        self,
        *,
        n_components: int = 8192,
        decay: float = 0.4,
        composition: str = "mixed",
        random_state: int = 0,
        normalize: bool = True,
        dtype: str = "float32",
        kernel: str = "subset",
        mu: float = 0.4,
        gaps: str = "toolkit",
        max_length: int | None = None,
        similarity: WordVectors | Mapping[str, npt.ArrayLike] | str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.n_components = n_components
        self.decay = decay
        self.composition = composition
        self.random_state = random_state
        self.normalize = normalize
        self.dtype = dtype
        self.kernel = kernel
        self.mu = mu
        self.gaps = gaps
        self.max_length = max_length
        self.similarity = similarity
        self.n_jobs = n_jobs
        self.device = device

    @property
    def spec(self) -> DenseSpec:
        """Everything that determines a vector; its ``fingerprint`` names it."""
        seed, words = checked_integer("random_state", self.random_state), self._words
        return spec_of(
            DenseSpec, self.n_components, self.decay, self.composition, seed, self.normalize, self.dtype,
            self.kernel, self.mu, self.gaps, self.max_length, None if words is None else words.fingerprint,
        )  # fmt: skip

    @property
    def _words(self) -> WordVectors | None:
        """The similarity as word vectors; the same object is read only once, since a file may be large."""
        words: WordVectors | None
        given, words = self.__dict__.get("_read", (None, None))
        if given is not self.similarity:
            words = None if self.similarity is None else WordVectors.of(self.similarity)
            self._read = self.similarity, words
        return words

    @property
    def _encoding(self) -> DenseEncoding:
        return DenseEncoding(self.spec, self._words, self.device)

    @classmethod
    def _of_spec(cls, spec: DenseSpec, words: WordVectors | None = None) -> Self:
        """Return the vectorizer for a spec and the word vectors that the spec names."""
        own = {name: x for name, x in asdict(spec).items() if name not in ("seed", "version")}
        made = cls(random_state=spec.seed, **own | {"similarity": words})
        made.spec.require_same(spec)
        return made

    def transform(self, X: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return one vector per tree.

        Parameters
        ----------
        X : source of trees
            Anything that ``read_trees`` reads: a Forest, a path, a list of bracket texts or of ``Tree``
            objects.
        out : array of shape (n_trees, n_components), default=None
            Where to write the vectors, for instance a memory map.

        Returns
        -------
        array of shape (n_trees, n_components)
            The vectors; ``out`` if it is given.

        Raises
        ------
        ParameterError
            If a parameter is invalid, or ``out`` has the wrong shape or type.
        RangeError
            If a vector is too large for its type.

        See Also
        --------
        clear_encoders : Drop the label vectors that are kept in memory.
        """
        return self._encoding.transform(read_trees(X), self.n_jobs, out)

    def transform_fragment(self, fragment: Any) -> np.ndarray:
        """Return f̂(τ), the vector of one fragment: nearly a unit vector, nearly orthogonal to all others.

        With ``normalize=False``, its dot product with a tree's vector estimates the fragment's coordinate in
        the tree: the number of its occurrences times √λ^(productions - 1). With ``kernel="partial"`` the
        fragment is a partial tree, which may be a single node, with its weight in ``PartialTreeKernel``. With
        ``kernel="smoothed"``, the dot product sums over all partial trees, each times the cosines of its
        labels with those of the fragment.

        Parameters
        ----------
        fragment : tree
            Anything that ``read_tree`` reads.

        Returns
        -------
        array of shape (n_components,)
            The vector.
        """
        spec, words = self.spec, self._words
        algebra: Any = spec.algebra()
        labels = None if words is None else WordLabels(algebra, words)
        return fragment_vector(read_tree(fragment)[0], algebra, labels).astype(spec.dtype)

    def fit_productions(self, trees: Any) -> Productions:
        """Return the productions of trees, the vocabulary of ``decode``.

        Nothing of the vectorizer changes, and the result serves all vectorizers.

        Parameters
        ----------
        trees : source of trees
            Anything that ``read_trees`` reads. Productions themselves, as trees of two levels, will do.

        Returns
        -------
        Productions
            The distinct productions; ``save`` and ``load`` keep them in a file.

        See Also
        --------
        decode : Read trees back from vectors.

        Examples
        --------
        >>> DistributedTreeVectorizer().fit_productions(["(S (NP Ann) (VP runs))"])
        <Productions: 3, 1 of them at roots>
        """
        return Productions.of(trees)

    def decode(self, vectors: Any, productions: Any) -> list[DecodedTree]:
        """Return the trees that vectors encode, each with a certificate.

        A tree grows from its root, by those known productions that explain most of the vector. It is
        certified if its vector is equal up to rounding, and if no tree that differs from it by one exchange
        or move of subtrees comes near. That is an argument, not a proof. Of other vectors you get the best
        tree, its distance, and the productions found. The time is linear in the number of known productions.

        Parameters
        ----------
        vectors : array of shape (n_trees, n_components), or Vectors
            Vectors that a vectorizer with these parameters made, also if they were stored as float16.
        productions : Productions, or source of trees
            The known productions, or trees that contain them. ``Productions`` keep their vectors for the next
            call, which makes a call with few vectors several times as fast.

        Returns
        -------
        list of DecodedTree
            For each vector ``tree``, ``is_certified``, ``distance``, ``counts`` and more.

        Raises
        ------
        ParameterError
            If vectors of these parameters cannot be decoded (``kernel`` is not "subset", or ``decay`` is 0),
            or ``vectors`` has the wrong shape, or contains NaN.
        SpecMismatchError
            If ``vectors`` were made with other parameters.

        See Also
        --------
        contains : Estimate how often a fragment occurs, without known productions.

        References
        ----------
        L. Ferrone, F. M. Zanzotto and X. Carreras (2015), *Decoding Distributed Tree Structures*, SLSP. The
        first author's code (``cyk.py`` of github.com/lorenzoferrone/pyCYK) parses the sentence by a grammar,
        and ranks the trees of the chart by the vector; here the sentence is not given.

        Examples
        --------
        >>> trees = ["(S (NP (NNP Ann)) (VP (VBZ runs)))", "(S (NP (NNP Bob)) (VP (VBZ sings)))"]
        >>> vectorizer = DistributedTreeVectorizer(n_components=1024)
        >>> (found,) = vectorizer.decode(vectorizer.transform(["(S (NP (NNP Ann)) (VP (VBZ sings)))"]), trees)
        >>> print(found.tree, found.is_certified)
        (S (NP (NNP Ann)) (VP (VBZ sings))) True
        """
        known = productions if isinstance(productions, Productions) else Productions.of(productions)
        return list(Decoder(self.spec, known, self.n_jobs).decode(vectors))

    def contains(self, vectors: Any, fragments: Any, norms: npt.ArrayLike | None = None) -> FragmentCounts:
        """Return how often fragments occur in the trees of vectors, estimated by dot products.

        The estimate is ``⟨v, f̂⟩ / (√λ^(p - 1) ‖f̂‖²)`` for a fragment of p productions with the vector f̂.
        Its standard error is about ``‖v‖ / √d``, divided by the length that one occurrence has in v.

        Parameters
        ----------
        vectors : array of shape (n_vectors, n_components), or Vectors
            Vectors that a vectorizer with these parameters made.
        fragments : source of trees
            The fragments, as trees of at least two nodes.
        norms : array of shape (n_vectors,), default=None
            For normalised vectors, their norms before normalisation, such as the ``norm`` that ``decode``
            finds.

        Returns
        -------
        FragmentCounts
            ``counts`` and ``errors``, each of shape (n_vectors, n_fragments).

        Raises
        ------
        ParameterError
            If the shapes are wrong, or if vectors are normalised and ``norms`` is missing.

        See Also
        --------
        transform_fragment : The vector of a fragment.

        Examples
        --------
        >>> vectorizer = DistributedTreeVectorizer(normalize=False)
        >>> vectors = vectorizer.transform(["(S (NP (NNP Ann)) (VP (VBZ runs)))"])
        >>> counts, errors = vectorizer.contains(vectors, ["(NP (NNP Ann))", "(NP (NNP Bob))"])
        >>> print(counts.round().astype(int))
        [[1 0]]
        """
        spec = self.spec
        check_decodable(spec)
        return estimate_counts(vectors, read_trees(fragments), spec, norms)

    @property
    def _n_features_out(self) -> int:
        return self.n_components
