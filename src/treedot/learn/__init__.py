"""The scikit-learn face of treedot."""

from treedot.learn.approximate import ApproximateGramTransformer
from treedot.learn.explicit import FragmentSelector, FragmentVectorizer
from treedot.learn.gram import GramTransformer
from treedot.learn.linear import GramLinearSVC
from treedot.learn.stratified import StratifiedTreeVectorizer
from treedot.learn.vectorizer import TreeVectorizer

__all__ = [
    "ApproximateGramTransformer",
    "FragmentSelector",
    "FragmentVectorizer",
    "GramLinearSVC",
    "GramTransformer",
    "StratifiedTreeVectorizer",
    "TreeVectorizer",
]
