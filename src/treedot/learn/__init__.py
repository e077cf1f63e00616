"""The scikit-learn face of treedot."""

from treedot.learn.approximate import ApproximateGramTransformer
from treedot.learn.gram import GramTransformer
from treedot.learn.vectorizer import TreeVectorizer

__all__ = ["ApproximateGramTransformer", "GramTransformer", "TreeVectorizer"]
