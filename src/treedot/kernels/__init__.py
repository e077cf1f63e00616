"""The exact kernels: the truth that the vectors are measured against."""

from treedot.kernels.approximate import ApproximateTreeKernel
from treedot.kernels.bounded import BoundedTreeKernel
from treedot.kernels.fragments import count_fragments, fragments
from treedot.kernels.subset import SubsetTreeKernel
from treedot.kernels.subtree import SubtreeKernel

__all__ = [
    "ApproximateTreeKernel",
    "BoundedTreeKernel",
    "SubsetTreeKernel",
    "SubtreeKernel",
    "count_fragments",
    "fragments",
]
