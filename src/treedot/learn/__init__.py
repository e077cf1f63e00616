"""The scikit-learn face of treedot."""

from treedot.learn.dual_linear_svc import DualLinearSVC
from treedot.learn.kernel_transformer import KernelTransformer
from treedot.learn.streaming import train_files
from treedot.learn.tree_classifier import TreeClassifier
from treedot.vectors.distributed_tree_vectorizer import DistributedTreeVectorizer
from treedot.vectors.encoder_cache import clear_encoders
from treedot.vectors.fragment_vectorizer import FragmentVectorizer

__all__ = [
    "DistributedTreeVectorizer",
    "DualLinearSVC",
    "FragmentVectorizer",
    "KernelTransformer",
    "TreeClassifier",
    "clear_encoders",
    "train_files",
]
