"""Explain scores and kernels by the nodes and fragments that they come from."""

from treedot.models.explain.decision import Explanation, explain
from treedot.models.explain.model import ClassFragments, FragmentWeight, ModelExplanation, explain_model
from treedot.models.explain.pair import PairExplanation, SharedFragment, explain_pair
from treedot.models.explain.removal import Removal
from treedot.models.explain.tree_values import FragmentShare, TreeValues

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
