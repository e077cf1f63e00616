"""Trees of source code without the texts of names and literals."""

from __future__ import annotations

import numpy as np

from treedot.languages import LANGUAGES
from treedot.trees import Forest


def blurred(forest: Forest) -> Forest:
    """Return trees that ``read_code`` made without the texts of their names and literals.

    They are the trees that ``identifiers="blur", literals="blur"`` gives, without their columns. Trees whose
    column ``language`` does not name a programming language stay as they are.
    """
    languages = np.array([str(name) for name in forest.columns.get("language", [""] * len(forest))])
    below = forest.parent
    is_text = (forest.arity == 0) & (below >= 0)
    is_text &= forest.arity[below] == 1
    kept = np.ones(forest.n_nodes, bool)
    for language in LANGUAGES.keys() & set(languages.tolist()):
        entry = LANGUAGES[language]
        kinds = {*entry.identifiers, *entry.literals}
        has_text = np.array([label in kinds for label in forest.labels])
        here = (languages == language)[forest.tree_of_node]
        kept &= ~(here & is_text & has_text[forest.label[below]])
    arity = forest.arity.copy()
    arity[below[~kept]] = 0
    ends = np.concatenate([[0], np.cumsum(kept)])
    return Forest(forest.label[kept], arity[kept], ends[forest.offsets], forest.labels)
