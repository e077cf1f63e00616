"""Explain scores and kernels by the nodes and fragments that they come from."""

from treedot.models.explain.decision import Explanation, explain, explain_by_removal
from treedot.models.explain.metric import MetricExplanation, explain_metric
from treedot.models.explain.model import ClassFragments, FragmentWeight, ModelExplanation, explain_model
from treedot.models.explain.pair import PairExplanation, SharedFragment, explain_pair
from treedot.models.explain.removal import Removal
from treedot.models.explain.tree_values import FragmentShare, TreeValues

__all__ = [
    "ClassFragments",
    "Explanation",
    "FragmentShare",
    "FragmentWeight",
    "MetricExplanation",
    "ModelExplanation",
    "PairExplanation",
    "Removal",
    "SharedFragment",
    "TreeValues",
    "explain",
    "explain_by_removal",
    "explain_metric",
    "explain_model",
    "explain_pair",
]
