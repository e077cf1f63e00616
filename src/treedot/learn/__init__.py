"""The scikit-learn face of treedot."""

from treedot.learn.approximate import ApproximateGramTransformer
from treedot.learn.explicit import FragmentSelector
from treedot.learn.fragments import FragmentVectorizer
from treedot.learn.gram import GramTransformer
from treedot.learn.linear import GramLinearSVC
from treedot.learn.vectorizer import TreeVectorizer

__all__ = [
    "ApproximateGramTransformer",
    "FragmentSelector",
    "FragmentVectorizer",
    "GramLinearSVC",
    "GramTransformer",
    "TreeVectorizer",
]
