"""The exact kernels, which the vectors are measured against."""

from treedot.kernels.bounded import BoundedTreeKernel
from treedot.kernels.label_selection import LabelSelectionKernel
from treedot.kernels.partial import PartialTreeKernel
from treedot.kernels.smoothed import SmoothedPartialTreeKernel
from treedot.kernels.subset import SubsetTreeKernel
from treedot.kernels.subtree import SubtreeKernel
from treedot.kernels.word_vectors import WordVectors

__all__ = [
    "BoundedTreeKernel",
    "LabelSelectionKernel",
    "PartialTreeKernel",
    "SmoothedPartialTreeKernel",
    "SubsetTreeKernel",
    "SubtreeKernel",
    "WordVectors",
]
