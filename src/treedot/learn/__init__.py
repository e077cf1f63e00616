"""The scikit-learn face of treedot."""

from treedot.learn.distributed_tree_vectorizer import DistributedTreeVectorizer
from treedot.learn.dual_linear_svc import DualLinearSVC
from treedot.learn.encoders import clear_encoders
from treedot.learn.fragment_vectorizer import FragmentVectorizer
from treedot.learn.kernel_transformer import KernelTransformer
from treedot.learn.streaming import train_files
from treedot.learn.tree_classifier import TreeClassifier

__all__ = [
    "DistributedTreeVectorizer",
    "DualLinearSVC",
    "FragmentVectorizer",
    "KernelTransformer",
    "TreeClassifier",
    "clear_encoders",
    "train_files",
]
