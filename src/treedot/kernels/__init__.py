"""The exact kernels, which the vectors are measured against."""

from treedot.kernels.partial.kernel import PartialTreeKernel
from treedot.kernels.partial.smoothed import SmoothedPartialTreeKernel
from treedot.kernels.route import RouteKernel
from treedot.kernels.subset.bounded import BoundedTreeKernel
from treedot.kernels.subset.kernel import SubsetTreeKernel
from treedot.kernels.subtree import SubtreeKernel

__all__ = [
    "BoundedTreeKernel",
    "PartialTreeKernel",
    "RouteKernel",
    "SmoothedPartialTreeKernel",
    "SubsetTreeKernel",
    "SubtreeKernel",
]
