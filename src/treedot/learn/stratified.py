"""Trees to sparse rows as a scikit-learn transformer."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from treedot.encode import StratifiedEncoder, StratifiedSpec
from treedot.learn.inputs import StatelessTreeTransformer
from treedot.parameters import checked_integer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class StratifiedTreeVectorizer(StatelessTreeTransformer):
    """Sparse rows whose dot products follow the subset tree kernel far more closely than dense vectors.

    A dense vector mixes all fragments, so that those that cannot match are noise. Here a fragment whose
    *cost* stays below a budget is one explicit number, and larger ones share small blocks with only those
    that begin alike: two trees without a large fragment that begins alike in both get their exact kernel.
    There is nothing to fit: a tree's row depends on the tree and the parameters alone.

    Parameters
    ----------
    n_features : int
        The number of columns, a power of two. Strata are hashed into them, with random signs, so that
        collisions add noise but no bias. The default suits linear models, which keep a number for every
        column; for kernels and search, which do not, ``2**30`` leaves hardly any collision.
    decay : float
        λ in [0, 1].
    budget : int
        How far fragments are told apart, from 1 to 32. A production below a node with m children costs m;
        on parsed sentences, time and size of the rows grow by about a quarter with each step.
    random_state : int
        The seed of all hashes. Only rows with the same seed belong together.
    normalize : bool
        Scale every row to norm 1, so that dot products approximate the normalised kernel.
    dtype : {"float32", "float64"}
        The type of the rows.
    n_jobs : int, optional
        Threads; -1 for all cores. The rows are the same to the byte.

    Examples
    --------
    >>> from treedot import StratifiedTreeVectorizer, SubsetTreeKernel
    >>> trees = ["(S (NP (NNP Ann)) (VP (VBZ runs)))", "(S (NP (NNP Bob)) (VP (VBZ runs)))"]
    >>> rows = StratifiedTreeVectorizer().transform(trees)
    >>> rows.shape, rows.nnz
    ((2, 1048576), 30)
    >>> print(f"{(rows[0] @ rows[1].T).toarray()[0, 0]:.4f} {SubsetTreeKernel()(*trees):.4f}")
    5.5840 5.5840
    """

    def __init__(
        self,
        n_features: int = 2**20,
        decay: float = 0.4,
        budget: int = 10,
        random_state: int = 0,
        normalize: bool = False,
        dtype: str = "float32",
        n_jobs: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.decay = decay
        self.budget = budget
        self.random_state = random_state
        self.normalize = normalize
        self.dtype = dtype
        self.n_jobs = n_jobs

    @property
    def spec(self) -> StratifiedSpec:
        """Everything that determines a row; its ``fingerprint`` names it."""
        return StratifiedSpec(
            n_features=self.n_features,
            decay=self.decay,
            budget=self.budget,
            seed=checked_integer("random_state", self.random_state),
            normalize=self.normalize,
            dtype=self.dtype,
        )

    def transform(self, X: Any) -> csr_matrix:
        """Return one sparse row per tree, for any source of trees (see ``read_trees``)."""
        return _encoder(self.spec).encode(X, n_jobs=self.n_jobs)

    def fragment(self, fragment: Any) -> csr_matrix:
        """Return f̂(τ), the row of one fragment, of norm 1.

        Its dot product with a tree's row is the fragment's coordinate in the tree, how often it occurs
        times √λ^(productions - 1): exact but for collisions where the fragment is a number of its own, an
        estimate where it shares a block. With the weights of a linear model it is the fragment's weight.
        """
        return _encoder(self.spec).fragment(fragment)

    @property
    def _n_features_out(self) -> int:
        return self.n_features


@lru_cache(maxsize=4)
def _encoder(spec: StratifiedSpec) -> StratifiedEncoder:
    """Keep the last encoders, whose label keys are worth reusing."""
    return StratifiedEncoder(spec)
