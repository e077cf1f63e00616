"""Explanations as JSON, for programs; ``docs/explain.md`` describes the fields."""

from __future__ import annotations

from typing import Any

from treedot._pages.printable import printable_json
from treedot.models.explain.decision import Explanation, FragmentShare
from treedot.models.explain.model import FragmentWeight, ModelExplanation
from treedot.models.explain.pair import PairExplanation, SharedFragment

VERSION = 2


def explanation_json(found: Explanation) -> str:
    """Return an explanation as JSON."""
    flip = None
    if found.flip is not None:
        flip = {
            "node": found.flip.node,
            "subtree": str(found.flip.subtree),
            "decision": _plain(found.flip.decision),
            "column": found.flip.column,
        }
    return _dumped(
        {
            "format": "treedot explanation",
            "version": VERSION,
            "trees": [
                {"column": column, "tree": str(tree), "node_values": values.tolist()}
                for column, tree, values in found.trees
            ],
            "target": _plain(found.target),
            "score": found.score,
            "others": found.others,
            "bias": found.bias,
            "supporting": [_share(share) for share in found.supporting],
            "opposing": [_share(share) for share in found.opposing],
            "flip": flip,
            "flip_sought": found.flip_sought,
        }
    )


def pair_json(found: PairExplanation) -> str:
    """Return what two trees share as JSON."""
    return _dumped(
        {
            "format": "treedot pair explanation",
            "version": VERSION,
            "a": str(found.a),
            "b": str(found.b),
            "value": found.value,
            "values_a": found.values_a.tolist(),
            "values_b": found.values_b.tolist(),
            "others": found.others,
            "fragments": [_share(shared) for shared in found.fragments],
        }
    )


def model_json(found: ModelExplanation) -> str:
    """Return what a model has learned as JSON."""
    classes = [
        {
            "target": _plain(name),
            "supporting": [*map(_share, supporting)],
            "opposing": [*map(_share, opposing)],
        }
        for name, (supporting, opposing) in found.fragments.items()
    ]
    return _dumped(
        {
            "format": "treedot model explanation",
            "version": VERSION,
            "classes": classes,
            "n_fragments": found.n_fragments,
            "n_trees": found.n_trees,
            "complete": found.complete,
        }
    )


def _share(share: FragmentShare | SharedFragment | FragmentWeight) -> dict[str, Any]:
    return {**share._asdict(), "fragment": str(share.fragment)}


def _plain(name: Any) -> Any:
    """Return the name of a class as JSON has it: numbers and truth values as such, all else as text."""
    return name if isinstance(name, (str, int, float, bool, type(None))) else str(name)


def _dumped(fields: dict[str, Any]) -> str:
    return printable_json(fields, indent=1) + "\n"
