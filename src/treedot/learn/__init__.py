"""The scikit-learn face of treedot."""

from treedot.learn.explicit import FragmentSelector, FragmentVectorizer
from treedot.learn.gram import GramTransformer
from treedot.learn.vectorizer import TreeVectorizer

__all__ = ["FragmentSelector", "FragmentVectorizer", "GramTransformer", "TreeVectorizer"]
