"""Why: which nodes and fragments a score or a kernel comes from."""

from treedot.explanation.decision import Explanation, FragmentShare, explain
from treedot.explanation.pair import PairExplanation, SharedFragment, explain_pair
from treedot.explanation.removal import Removal

__all__ = [
    "Explanation",
    "FragmentShare",
    "PairExplanation",
    "Removal",
    "SharedFragment",
    "explain",
    "explain_pair",
]
