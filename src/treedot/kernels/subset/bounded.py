"""The bounded tree kernel, which counts only fragments within a budget of cost."""

from __future__ import annotations

from treedot._runtime.array_types import FloatArray, IntArray
from treedot._runtime.threads import ONE_THREAD, Threads
from treedot.errors import ParameterError
from treedot.kernels.subset import one_pair
from treedot.kernels.subset.gram import FragmentKernel
from treedot.kernels.subset.pairwise import trees_by_production
from treedot.kernels.tree_kernel import MAX_PAIRS, Limited
from treedot.parameters import checked_integer
from treedot.trees import Forest
from treedot.trees.nodes import Nodes

MAX_BUDGET = 256  # a node roots fewer than 4^(budget + 1) fragments, so every kernel fits into a float


class BoundedTreeKernel(FragmentKernel):
    """Counts the tree fragments of bounded cost that two trees share.

    A fragment grows from the production at its root by expanding one node after another. Expanding one of m
    siblings costs m, and the cost of a fragment is the sum over its expansions. The kernel is the subset tree
    kernel restricted to fragments that cost at most ``budget``. Δ is a polynomial in x, cut off after that
    power: ``Δ(n1, n2) = ∏ (1 + λ x^m Δ(children))`` for nodes with equal productions of m children, else 0.
    The kernel is the sum of all coefficients of Δ over all pairs of nodes.

    A node roots at most about 4^budget fragments, however large the tree.

    Parameters
    ----------
    decay : float, default=0.4
        The decay λ, in [0, 1]; small values let large fragments count less.
    normalize : bool, default=False
        Divide by √(K(a, a) K(b, b)).
    budget : int, default=4
        The largest cost of a fragment, from 0 (single productions) to 256.
    max_pairs : int, default=2**27
        See ``TreeKernel``; each matching pair counts budget + 1 times, once for every coefficient of Δ.

    See Also
    --------
    SubsetTreeKernel : The kernel of all fragments.
    FragmentVectorizer : Sparse rows with the same fragments.

    Examples
    --------
    >>> a, b = "(S (NP (DT a) (NN tree)) (VP grows))", "(S (NP (DT a) (NN tree)) (VP sings))"
    >>> [BoundedTreeKernel(decay=0.5, budget=budget)(a, b) for budget in (0, 2, 4, 6)]
    [4.0, 5.5, 6.25, 6.375]
    """

    def __init__(
        self,
        decay: float = 0.4,
        *,
        normalize: bool = False,
        budget: int = 4,
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        super().__init__(decay, normalize=normalize, max_pairs=max_pairs)
        self.budget = checked_integer("budget", budget, at_least=0)
        if self.budget > MAX_BUDGET:
            raise ParameterError(
                f"budget must be at most {MAX_BUDGET}, not {self.budget}: use SubsetTreeKernel for no bound"
            )

    @property
    def _budget(self) -> int:
        return self.budget

    def _limited(self) -> Limited:
        instead = f"compare the rows of FragmentVectorizer with budget={self.budget}"
        return Limited("coefficients of matching pairs of nodes", instead)

    def _raw_pair(self, x: Forest, y: Forest) -> float:
        value = one_pair.sum_of_pair(x, y, self.decay, self.max_pairs, self.budget)
        return super()._raw_pair(x, y) if value is None else value

    def _raw_pairs(
        self, x: Forest, rows: IntArray, columns: IntArray, threads: Threads = ONE_THREAD
    ) -> FloatArray:
        return self._fast_pairs(Nodes(x), x.derived(trees_by_production), rows, columns, threads)
