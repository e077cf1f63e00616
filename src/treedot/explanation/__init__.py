"""Why: which nodes and fragments a score or a kernel comes from."""

from treedot.explanation.decision import Explanation, FragmentShare, TreeValues, explain
from treedot.explanation.model import ClassFragments, FragmentWeight, ModelExplanation, explain_model
from treedot.explanation.pair import PairExplanation, SharedFragment, explain_pair
from treedot.explanation.removal import Removal

__all__ = [
    "ClassFragments",
    "Explanation",
    "FragmentShare",
    "FragmentWeight",
    "ModelExplanation",
    "PairExplanation",
    "Removal",
    "SharedFragment",
    "TreeValues",
    "explain",
    "explain_model",
    "explain_pair",
]
