"""The exact kernels, which the vectors are measured against."""

from treedot.kernels.bounded import BoundedTreeKernel
from treedot.kernels.partial import PartialTreeKernel
from treedot.kernels.route import RouteKernel
from treedot.kernels.smoothed import SmoothedPartialTreeKernel
from treedot.kernels.subset import SubsetTreeKernel
from treedot.kernels.subtree import SubtreeKernel

__all__ = [
    "BoundedTreeKernel",
    "PartialTreeKernel",
    "RouteKernel",
    "SmoothedPartialTreeKernel",
    "SubsetTreeKernel",
    "SubtreeKernel",
]
