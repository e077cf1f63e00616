import pytest
from paper.rivals.label_selection import LabelSelectionKernel

from strategies import SimilarTags, random_forest
from treedot import PartialTreeKernel, SubsetTreeKernel, SubtreeKernel, Tree
from treedot.errors import LimitError, ParameterError, RangeError
from treedot.kernels import BoundedTreeKernel, RouteKernel, SmoothedPartialTreeKernel, tiled_kernel

THREADS = (2, 3, 7)
KERNELS = [
    SubsetTreeKernel(),
    SubsetTreeKernel(algorithm="TK"),
    SubsetTreeKernel(algorithm="FTK", leaves=True),
    SubsetTreeKernel(leaves=True, convention="collins-duffy"),
    SubsetTreeKernel(max_pairs=3000),
    SubtreeKernel(leaves=True),
    BoundedTreeKernel(budget=3),
    LabelSelectionKernel(["N0", "N1", "N2", "T0", "T1"]),
    PartialTreeKernel(),
    PartialTreeKernel(gaps="span", terminal_factor=2, max_length=2, max_pairs=3000),
    SmoothedPartialTreeKernel(SimilarTags(), terminal_factor=2),
    RouteKernel(),
]


@pytest.fixture(autouse=True)
def _share_little_work(monkeypatch):
    """Give threads work that would not be worth their while."""
    monkeypatch.setattr(tiled_kernel, "SHARED_WORK", 4)
    monkeypatch.setattr(tiled_kernel, "PIECE", 2)


@pytest.mark.slow
@pytest.mark.large
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("normalize", [False, True])
def test_kernels_are_the_same_bytes_whatever_the_threads(kernel, normalize):
    kernel.set_params(normalize=normalize)
    forest = random_forest(5, 70)
    rows, columns = range(0, 70, 2), range(1, 70, 2)

    def values(n_jobs):
        # Copies of the forest: nothing that one call derives from it is there for the next.
        return [
            kernel.gram(forest[:], n_jobs=n_jobs),
            kernel.gram(forest[:20], forest[20:], n_jobs=n_jobs),
            kernel.pairs(forest[:], rows, columns, n_jobs=n_jobs),
            kernel.diagonal(forest[:], n_jobs=n_jobs),
            kernel.log_norms(forest[:], n_jobs=n_jobs),
            kernel.norms(forest[:], n_jobs=n_jobs),
        ]

    once = [array.tobytes() for array in values(None)]
    for threads in THREADS:
        assert [array.tobytes() for array in values(threads)] == once


def test_fragments_that_are_written_out_are_the_same_bytes_whatever_the_threads():
    forest = random_forest(5, 12, nodes=8)
    kernel = SubsetTreeKernel(weighting="distinct", normalize=True)
    for threads in THREADS:
        assert kernel.gram(forest, n_jobs=threads).tobytes() == kernel.gram(forest).tobytes()
        assert (
            kernel.pairs(forest, [0, 5], [1, 5], n_jobs=threads).tolist()
            == kernel.pairs(forest, [0, 5], [1, 5]).tolist()
        )


@pytest.mark.slow
@pytest.mark.large
def test_logarithms_of_huge_kernels_are_the_same_bytes_whatever_the_threads():
    wide = [Tree("S", [Tree("A", [Tree("B", ["b"])])] * n) for n in (900, 1100, 1300)]
    trees = [*wide, *random_forest(0, 3)]
    kernel = SubsetTreeKernel(1.0, normalize=True)
    for threads in THREADS:
        assert kernel.gram(trees, n_jobs=threads).tobytes() == kernel.gram(trees).tobytes()
        assert kernel.gram(trees, wide, n_jobs=threads).tobytes() == kernel.gram(trees, wide).tobytes()
        assert kernel.log_norms(trees, n_jobs=threads).tobytes() == kernel.log_norms(trees).tobytes()


def test_a_chain_has_one_subtree_of_every_height():
    chain = Tree("A", ["x"])
    for _ in range(300):
        chain = Tree("A", [chain])
    trees = [chain, Tree("A", [Tree("B", [chain])])]
    kernel = SubsetTreeKernel()
    assert kernel.gram(trees, n_jobs=3).tobytes() == kernel.gram(trees).tobytes()


@pytest.mark.slow
@pytest.mark.large
def test_errors_are_the_same_whatever_the_threads():
    wide = [Tree("S", [Tree("A", ["b"])] * 2000)] * 200
    for threads in (1, 3):
        with pytest.raises(RangeError, match="the kernel of trees 1 and 1 is too large"):
            SubsetTreeKernel(1.0).gram(wide, n_jobs=threads)
        with pytest.raises(LimitError, match="max_pairs=10"):
            SubsetTreeKernel(algorithm="FTK", max_pairs=10).gram(wide, n_jobs=threads)
    with pytest.raises(ParameterError, match="n_jobs must not be 0"):
        SubsetTreeKernel().gram(["(a b)"], n_jobs=0)


def test_no_tree_and_one_tree_need_no_threads():
    kernel = SubsetTreeKernel(normalize=True)
    assert kernel.gram([], n_jobs=3).shape == (0, 0)
    assert kernel.gram(["(a b)"], ["(c)", "(a b)"], n_jobs=3).tolist() == [[0.0, 1.0]]
    assert kernel.pairs(["(a b)"], [], [], n_jobs=3).shape == (0,)
